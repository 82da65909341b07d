// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/explore/exploration.h"
#include "scenarios/ranks.h"
#include "scenarios/watch.h"
#include "scenarios/workers.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

// Each fitted to the same cells by another mechanism (docs/machine.md).
const std::vector<std::string> k_calibrated = {"mt3000", "mt3000-exposed", "mt3000-rowcost"};

constexpr const char* k_csv_writer = "--csv";

struct Options {
  std::int64_t m = 0, n = 0, k = 0;
  std::string dtype = "f32", sums = "promoted";
  std::int64_t k_promote = 0;
  std::vector<std::string> only;
  std::string dataflows;
  std::int64_t top = 1000, jobs = 0;
  std::string csv, dram_trace;
};

/// "k2=128:256".
Restrictions parse_only(const std::vector<std::string>& texts) {
  Restrictions only;
  for (const std::string& text : texts) {
    const auto [name, values] = split_set(text);
    for (std::size_t at = 0; at <= values.size();) {
      const std::size_t end = std::min(values.find(':', at), values.size());
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(values.data() + at, values.data() + end, value);
      if (error != std::errc{} || stop != values.data() + end || value < 0 || value > INT32_MAX) {
        throw UsageError(fmt::format("--only {}: '{}' is no whole number; write --only {}=128:256", text,
                                     values.substr(at, end - at), name));
      }
      only[name].push_back(value);
      at = end + 1;
    }
  }
  return only;
}

int run(const Options& options, const CommonOptions& common) {
  const Operator& gemm = require_operator("gemm");
  ExploreRequest request;
  request.query = {{options.m, options.n, options.k}, parse_dtype(gemm, options.dtype)};
  const bool is_f16 = request.query.dtype == DType::f16;
  if (!is_f16 && (options.sums != "promoted" || options.k_promote > 0))
    throw UsageError("explore gemm: --sums and --k-promote are of FP16; those of f32 are FP32");
  request.query.sums = options.sums == "f16"   ? kernels::GemmSums::f16
                       : options.sums == "f32" ? kernels::GemmSums::f32
                                               : kernels::GemmSums::promoted;
  if (is_f16 && request.query.sums != kernels::GemmSums::f16) {
    const auto fallback = kernels::GemmTiles::of(DType::f16, {.sums = request.query.sums}).k_promote;
    request.query.k_promote = options.k_promote > 0 ? options.k_promote : fallback;
  }
  request.only = parse_only(options.only);
  if (!options.dataflows.empty()) request.query.dataflows = split_list(options.dataflows, "--dataflow");
  request.top = static_cast<std::size_t>(options.top);
  request.processes = options.jobs > 0 ? static_cast<std::size_t>(options.jobs) : usable_cores(Ranks::on_this_host());
  if (!common.machine.empty()) request.machine_arguments += " --machine " + common.machine;
  for (const std::string& set : common.sets) request.machine_arguments += " --set " + set;
  if (common.machine.empty()) {
    for (const std::string& name : k_calibrated) {
      request.machines.push_back(sim::Machine::load(name, common.sets));
      require_memory_model(request.machines.back());
    }
  } else {
    request.machines.push_back(load_machine(common));
  }
  if (!options.csv.empty()) {
    sim::require_writable(options.csv, k_csv_writer);
    request.journal = options.csv + ".journal";
  }
  const std::optional<Exploration> explored = explore(request);
  if (!explored) return k_exit_done;
  const Exploration& exploration = *explored;
  if (!options.csv.empty()) {
    sim::write_file(options.csv, k_csv_writer, exploration_csv(request, exploration));
    std::error_code ignored;
    std::filesystem::remove(request.journal, ignored);
  }
  emit(common, exploration_json(request, exploration), exploration_text(request, exploration));
  if (exploration.points.empty()) return k_exit_failed;
  if (!options.dram_trace.empty()) {
    WatchOptions watching;
    watching.dram_trace = options.dram_trace;
    OperatorRunner runner(request.machines.front());
    Watch watch(watching, runner.machine().config());
    runner.set_watch(watch);
    const Candidate& best = exploration.best().point;
    OperatorRequest again;
    again.op = &gemm;
    again.spec = {{options.m, options.n, options.k},
                  request.query.dtype,
                  parse_variant(gemm, variant_of(request, best)),
                  best.tile};
    runner.run(again);
    watch.finish();
  }
  return k_exit_done;
}

}  // namespace

Command add_explore(CLI::App& app, CommonOptions& common) {
  CLI::App* sub = app.add_subcommand("explore", "Find the best block sizes of an operator, and say why");
  sub->require_subcommand(1);
  CLI::App* gemm = sub->add_subcommand("gemm", "Y[m,n] = X[m,k] * W[k,n]");
  auto options = std::make_shared<Options>();
  gemm->add_option("--m", options->m, "Rows of X and Y")->check(whole_number(1))->required();
  gemm->add_option("--n", options->n, "Columns of W and Y")->check(whole_number(1))->required();
  gemm->add_option("--k", options->k, "Columns of X, rows of W")->check(whole_number(1))->required();
  gemm->add_option("--dtype", options->dtype, "Element type (f32 (default) or f16)");
  gemm->add_option("--sums", options->sums, "FP16: where sums are FP32 (promoted (default), f16 or f32)")
      ->check(CLI::IsMember({"promoted", "f16", "f32"}));
  gemm->add_option("--k-promote", options->k_promote, "FP16: products summed in FP16 (default as mtsim op gemm)")
      ->check(whole_number(1));
  gemm->add_option("--only", options->only,
                   fmt::format("Values of a dimension, instead of its whole grid: k2=128:256 (repeatable); of {}",
                               fmt::join(k_gemm_dimensions, ", ")))
      ->type_name("KEY=V[:V...]");
  gemm->add_option("--dataflow", options->dataflows,
                   "What stays in AM: large_m (Y) or w_stationary (W); both by default, separated by a comma");
  gemm->add_option("--top", options->top, "Points to simulate, the best by their bound (default 1000)")
      ->check(whole_number(1));
  gemm->add_option("--jobs", options->jobs, "Processes of a rank (default: its share of the host's cores)")
      ->check(whole_number(1));
  gemm->add_option(
          "--csv", options->csv,
          "Every simulated point; what is done is kept in FILE.journal until the end, so that the same command "
          "goes on after a kill")
      ->type_name("FILE");
  gemm->add_option("--dram-trace", options->dram_trace, "DDR requests of the best point")->type_name("FILE");
  add_json_option(*gemm, common);
  add_machine_options(*gemm, common);
  gemm->footer(R"(
Without --machine the best points are compared on the three calibrated machines; --set applies to each. Under mpirun
all ranks share the work, and rank 0 writes.
  mtsim explore gemm --m 8192 --n 4096 --k 4096 --dtype f16
  mtsim explore gemm --m 4096 --n 4096 --k 4096 --set ddr.bandwidth_gb_s=60 --csv points.csv
  mpirun --bind-to none -n 4 mtsim explore gemm --m 4096 --n 4096 --k 4096)");
  return {sub, [options, &common] { return run(*options, common); }};
}

}  // namespace mtsim::scenarios
