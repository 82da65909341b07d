// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <exception>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <span>

#include "runtime/comm/mpirun.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/explore/attention_space.h"
#include "scenarios/explore/exploration.h"
#include "scenarios/explore/gemm_space.h"
#include "scenarios/rank_pool.h"
#include "scenarios/watch.h"
#include "scenarios/workers.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

// Each fitted to the same cells by another mechanism (docs/machine.md).
const std::vector<std::string> k_calibrated = {"mt3000", "mt3000-exposed", "mt3000-rowcost"};

constexpr const char* k_csv_writer = "--csv";

/// What the user gave for one operator, words as written.
struct ExploreOptions {
  CLI::App* app = nullptr;
  Shape shape;
  std::string dtype, kinds;
  std::vector<std::string> only;
  std::int64_t top = 1000, jobs = 0;
  std::string csv, dram_trace;
  // gemm.
  std::string sums = "promoted";
  std::int64_t k_promote = 0;
  // attention.
  bool causal = false;
};

std::shared_ptr<Query> gemm_query(const ExploreOptions& options) {
  const DType dtype = parse_dtype(require_operator("gemm"), options.dtype);
  const bool is_f16 = dtype == DType::f16;
  if (!is_f16 && (options.sums != "promoted" || options.k_promote > 0))
    throw UsageError("explore gemm: --sums and --k-promote are of FP16; those of f32 are FP32");
  const kernels::GemmSums sums = options.sums == "f16"   ? kernels::GemmSums::f16
                                 : options.sums == "f32" ? kernels::GemmSums::f32
                                                         : kernels::GemmSums::promoted;
  if (sums == kernels::GemmSums::f16 && options.k_promote > 0)
    throw UsageError("explore gemm: --k-promote is of sums that are promoted; --sums f16 has none");
  std::int64_t k_promote = 0;
  if (is_f16 && sums != kernels::GemmSums::f16)
    k_promote =
        options.k_promote > 0 ? options.k_promote : kernels::GemmTiles::of(DType::f16, {.sums = sums}).k_promote;
  const Shape& shape = options.shape;
  auto query = std::make_shared<GemmQuery>(kernels::GemmShape{shape[0], shape[1], shape[2]}, dtype, sums, k_promote);
  query->explore_kinds(options.kinds, "--dataflow", GemmQuery::k_spaces);
  return query;
}

std::shared_ptr<Query> attention_query(const ExploreOptions& options) {
  auto query = std::make_shared<AttentionQuery>(
      options.shape, parse_dtype(require_operator("attention"), options.dtype), options.causal);
  query->explore_kinds(options.kinds, "--variant", AttentionQuery::k_spaces);
  return query;
}

/// Everything asked for, checked; files are asked whether they can be written by the rank that writes them.
ExploreRequest read(const ExploreOptions& options, std::shared_ptr<Query> query, const CommonOptions& common,
                    bool leads) {
  ExploreRequest request;
  const OperatorInfo& info = query->op.info();
  for (std::size_t d = 0; d < info.dimensions.size(); ++d) {
    if (query->shape[d] > INT32_MAX)
      throw UsageError(fmt::format("--{} {}: too large; at most 2^31-1", info.dimensions[d].name, query->shape[d]));
  }
  query->only = parse_only(options.only, query->dimensions());
  request.query = std::move(query);
  request.top = static_cast<std::size_t>(options.top);
  request.processes =
      options.jobs > 0 ? static_cast<std::size_t>(options.jobs) : usable_cores(runtime::mpirun::ranks_on_this_host());
  if (!common.machine.empty()) request.machine_arguments += " --machine " + shell_quoted(common.machine);
  for (const std::string& set : common.sets) request.machine_arguments += " --set " + shell_quoted(set);
  if (common.machine.empty()) {
    for (const std::string& name : k_calibrated) {
      request.machines.push_back(sim::Machine::load(name, common.sets));
      require_memory_model(request.machines.back());
    }
  } else {
    request.machines.push_back(load_machine(common));
  }
  if (leads && !options.csv.empty()) {
    sim::require_writable(options.csv, k_csv_writer);
    // A device keeps nothing that a later run could go on from.
    std::error_code ignored;
    const auto kind = std::filesystem::status(options.csv, ignored).type();
    if (kind == std::filesystem::file_type::regular || kind == std::filesystem::file_type::not_found)
      request.journal = options.csv + ".journal";
  }
  if (leads && !options.dram_trace.empty()) sim::require_writable(options.dram_trace, "--dram-trace");
  return request;
}

void trace_best(const ExploreRequest& request, const Candidate& best, const std::string& file) {
  WatchOptions watching;
  watching.dram_trace = file;
  OperatorRunner runner(request.machines.front());
  Watch watch(watching, runner.machine().config());
  runner.set_watch(watch);
  OperatorRequest whole = request.query->request(best);
  whole.options.skip_pieces = false;
  runner.run(whole);
  watch.finish();
}

using MakeQuery = std::shared_ptr<Query> (*)(const ExploreOptions&);

int explore_command(const ExploreOptions& options, MakeQuery make_query, const CommonOptions& common) {
  const bool leads = runtime::mpirun::rank() == 0;
  ExploreRequest request;
  try {
    request = read(options, make_query(options), common, leads);
    for (const sim::Machine& machine : request.machines) request.query->space(machine.config());
  } catch (const std::exception& error) {
    if (leads) throw;
    RankPool::refuse(error.what());  // rank 0 says it, once
    return k_exit_usage;
  }
  const std::optional<Exploration> explored = explore(request);
  if (!explored) return k_exit_done;
  const Exploration& exploration = *explored;
  std::exception_ptr not_written;
  try {
    if (!options.csv.empty()) sim::write_file(options.csv, k_csv_writer, exploration_csv(request, exploration));
    std::error_code ignored;
    if (!request.journal.empty()) std::filesystem::remove(request.journal, ignored);
  } catch (...) {
    not_written = std::current_exception();  // what was found is printed all the same
  }
  emit(common, exploration_json(request, exploration), exploration_text(request, exploration));
  if (not_written) std::rethrow_exception(not_written);
  if (exploration.points.empty()) return k_exit_failed;
  if (!options.dram_trace.empty()) trace_best(request, exploration.best().point, options.dram_trace);
  return k_exit_done;
}

std::string only_help(std::span<const SpaceDimension> dimensions) {
  std::vector<std::string> words;
  for (const SpaceDimension& d : dimensions)
    words.push_back(d.meaning.empty() ? std::string(d.name) : fmt::format("{} ({})", d.name, d.meaning));
  return fmt::format("Values of a dimension, instead of its whole grid: {}=128:256 (repeatable); of {}",
                     dimensions[1].name, fmt::join(words, ", "));
}

/// What all operators have.
ExploreOptions& add_operator(CLI::App& parent, std::list<ExploreOptions>& all, const Operator& op,
                             std::span<const SpaceDimension> dimensions, CommonOptions& common) {
  const OperatorInfo& info = op.info();
  ExploreOptions& options = all.emplace_back();
  CLI::App* sub = options.app = parent.add_subcommand(std::string(info.name), std::string(info.summary));
  add_dimension_options(*sub, info, options.shape);
  options.dtype = to_string(info.dtypes.front());
  sub->add_option("--dtype", options.dtype, dtype_help(info));
  sub->add_option("--only", options.only, only_help(dimensions))->type_name("KEY=V[:V...]");
  sub->add_option("--top", options.top, "Points to simulate, the best by their bound (default 1000)")
      ->check(whole_number(1));
  sub->add_option("--jobs", options.jobs, "Processes of a rank (default: its share of the host's cores)")
      ->check(whole_number(1));
  sub->add_option("--csv", options.csv,
                  "Every simulated point; what is done is kept in FILE.journal until the end, so that the same command "
                  "goes on after a kill")
      ->type_name("FILE");
  sub->add_option("--dram-trace", options.dram_trace, "DDR requests of the best point")->type_name("FILE");
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  return options;
}

constexpr const char* k_footer = R"(
Without --machine the best points are compared on the three calibrated machines; --set applies to each. Under mpirun
all ranks share the work, and rank 0 writes.
)";

}  // namespace

Command add_explore(CLI::App& app, CommonOptions& common) {
  CLI::App* sub = app.add_subcommand("explore", "Find the best block sizes of an operator, and say why");
  sub->require_subcommand(1);
  auto all = std::make_shared<std::list<ExploreOptions>>();

  ExploreOptions& gemm = add_operator(*sub, *all, require_operator("gemm"), gemm_dimensions(), common);
  gemm.app->add_option("--sums", gemm.sums, "FP16: where sums are FP32 (promoted (default), f16 or f32)")
      ->check(CLI::IsMember({"promoted", "f16", "f32"}));
  gemm.app->add_option("--k-promote", gemm.k_promote, "FP16: products summed in FP16 (default as mtsim op gemm)")
      ->check(whole_number(1));
  gemm.app->add_option("--dataflow", gemm.kinds,
                       "What stays in AM: large_m (Y) or w_stationary (W); both by default, separated by a comma");
  gemm.app->footer(std::string(k_footer) + R"(  mtsim explore gemm --m 8192 --n 4096 --k 4096 --dtype f16
  mtsim explore gemm --m 4096 --n 4096 --k 4096 --set ddr.bandwidth_gb_s=60 --csv points.csv
  mpirun --bind-to none -n 4 mtsim explore gemm --m 4096 --n 4096 --k 4096)");

  ExploreOptions& attention = add_operator(*sub, *all, require_operator("attention"), attention_dimensions(), common);
  attention.app->add_flag("--causal", attention.causal, "A token sees the keys up to its own");
  attention.app->add_option("--variant", attention.kinds,
                            "mt (Q and O stay) or flash (K and V stay); both by default, separated by a comma");
  attention.app->footer(std::string(k_footer) + R"(  mtsim explore attention --batch 4 --heads 32 --seq 2048
  mtsim explore attention --heads 32 --kv-heads 4 --seq 4096 --causal --dtype f16 --only mr=16:32:64)");

  return {sub, [all, &common] {
            const bool is_gemm = all->front().app->parsed();
            return explore_command(is_gemm ? all->front() : all->back(), is_gemm ? gemm_query : attention_query,
                                   common);
          }};
}

}  // namespace mtsim::scenarios
