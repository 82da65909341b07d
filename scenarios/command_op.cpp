// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/operator_runner.h"
#include "scenarios/progress.h"
#include "scenarios/watch.h"

namespace mtsim::scenarios {

namespace {

/// What the user gave for one operator, words as written.
struct OpOptions {
  const Operator* op = nullptr;
  CLI::App* app = nullptr;
  OperatorRequest request;
  std::string dtype;
  std::string variant;
  std::map<std::string, bool> flags;  // OperatorInfo::flags
  std::string depth;
  bool no_memo = false;
  WatchOptions watch;
};

int op_command(const OpOptions& options, const CommonOptions& common) {
  OperatorRequest request = options.request;
  request.op = options.op;
  request.spec.dtype = parse_dtype(*options.op, options.dtype);
  std::string variant = options.variant;
  for (const auto& [word, given] : options.flags) {
    if (given) variant += (variant.empty() ? "" : ",") + word;
  }
  request.spec.variant = parse_variant(*options.op, variant);
  options.op->check_tile(request.spec.tile, request.spec.dtype);
  request.options.memo = !options.no_memo;
  request.options.depth = !options.depth.empty()   ? parse_depth(options.depth)
                          : request.options.verify ? sim::Depth::functional
                                                   : sim::Depth::timing;
  OperatorRunner runner(load_machine(common));
  Watch watch(options.watch, runner.machine().config());
  runner.set_watch(watch);
  OperatorOutcome outcome;
  {
    Progress progress{std::string(options.op->info().name)};
    outcome = runner.run(request);
  }
  emit(common, operator_json(outcome, runner.machine()), operator_text(outcome, runner.machine()));
  watch.finish();  // a trace that cannot be written loses no result
  return outcome.passed() ? k_exit_done : k_exit_failed;
}

/// How a case is simulated, the same for every operator: the fields of CaseOptions.
void add_run_options(CLI::App& sub, OpOptions& options) {
  sub.add_option("--depth", options.depth,
                 "functional moves every byte, timing skips data; the same cycles (default timing)");
  sub.add_flag("--no-memo", options.no_memo,
               "Timing depth: profile every microkernel call anew and keep nothing on disk");
  sub.add_flag("--verify", options.request.options.verify, "Compare with FP64; implies functional depth");
  sub.add_flag("--skip-pieces", options.request.options.skip_pieces,
               "Timing depth: simulate a few of many equal pieces (heads) and take the others to be like the last two");
  sub.add_option("--seed", options.request.options.seed, "Of the random operands (default 1)")->check(whole_number(0));
}

/// "best or paper, and automatic, large_m or small_m; the first of each by default".
std::string variant_help(const OperatorInfo& info) {
  std::vector<std::string> groups;
  for (const VariantGroup& group : info.variants) {
    groups.push_back(
        fmt::format("{} or {}", fmt::join(group.words.begin(), group.words.end() - 1, ", "), group.words.back()));
  }
  return fmt::format("{}; the first of each by default", fmt::join(groups, ", and "));
}

void add_operator(CLI::App& parent, OpOptions& options, CommonOptions& common) {
  const OperatorInfo& info = options.op->info();
  CLI::App* sub = parent.add_subcommand(std::string(info.name), std::string(info.summary));
  options.app = sub;
  options.dtype = to_string(info.dtypes.front());
  add_dimension_options(*sub, info, options.request.spec.shape);
  sub->add_option("--dtype", options.dtype, dtype_help(info));
  if (!info.variants.empty()) sub->add_option("--variant", options.variant, variant_help(info));
  for (const std::string_view word : info.flags) {
    sub->add_flag(fmt::format("--{}", word), options.flags[std::string(word)], fmt::format("As --variant {}", word));
  }
  if (!info.tiles.empty()) sub->add_option("--tile", options.request.spec.tile, std::string(info.tiles));
  add_run_options(*sub, options);
  add_hazard_options(*sub, options.watch);
  add_trace_options(*sub, options.watch);
  add_mistake_option(*sub, options.watch);
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  std::string footer = "\nExit status 1 after a fault, a DMA finding, or a result outside the error bound.";
  for (const auto example : info.examples) footer += fmt::format("\n  mtsim op {} {}", info.name, example);
  sub->footer(footer);
}

}  // namespace

Command add_op(CLI::App& app, CommonOptions& common) {
  CLI::App* op = app.add_subcommand("op", "Run one operator on one cluster");
  op->require_subcommand(1);
  auto all = std::make_shared<std::list<OpOptions>>();
  for (const Operator* each : operators()) {
    OpOptions& options = all->emplace_back();
    options.op = each;
    add_operator(*op, options, common);
  }
  op->footer("\n  mtsim op gemm --m 720 --n 256 --k 2048 --dtype f32 --verify");
  return {op, [all, &common] {
            const auto chosen =
                std::find_if(all->begin(), all->end(), [](const OpOptions& o) { return o.app->parsed(); });
            return op_command(*chosen, common);
          }};
}

}  // namespace mtsim::scenarios
