// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>

#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/gemm_runner.h"
#include "scenarios/progress.h"

namespace mtsim::scenarios {

namespace {

struct Options {
  GemmRequest request;
  std::string dtype = "f32";
  std::string variant = "best,automatic";
  std::string tile;
  std::string depth;
  bool no_memo = false;
};

int run(const Options& options, const CommonOptions& common) {
  GemmRequest request = options.request;
  require_gemm_dtype(options.dtype);
  request.sequence = parse_sequence(options.variant);
  request.tiles = kernels::parse_gemm_tiles(options.tile, kernels::DType::f32);
  request.memo = !options.no_memo;
  request.depth = !options.depth.empty() ? parse_depth(options.depth)
                  : request.verify       ? sim::Depth::functional
                                         : sim::Depth::timing;
  GemmRunner runner(load_machine(common));
  GemmOutcome outcome;
  {
    Progress progress("gemm");
    outcome = runner.run(request);
  }
  emit(common, gemm_json(outcome, runner.machine()), gemm_text(outcome, runner.machine()));
  return outcome.passed() ? k_exit_done : k_exit_failed;
}

}  // namespace

Command add_op(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<Options>();
  CLI::App* op = app.add_subcommand("op", "Run one operator on one cluster");
  op->require_subcommand(1);
  CLI::App* sub = op->add_subcommand("gemm", "Y[m,n] = X[m,k] * W[k,n], row-major");
  sub->add_option("--m", options->request.shape.m, "Rows of X and Y")->check(whole_number(1))->required();
  sub->add_option("--n", options->request.shape.n, "Columns of W and Y")->check(whole_number(1))->required();
  sub->add_option("--k", options->request.shape.k, "Columns of X, rows of W")->check(whole_number(1))->required();
  sub->add_option("--dtype", options->dtype, "Element type (f32)");
  sub->add_option("--variant", options->variant,
                  "best or paper (its own sequence), and automatic, large_m (W broadcast) or small_m (X broadcast)");
  sub->add_option("--tile", options->tile, "Block sizes, e.g. mg=720,kg=2048,k2=128,n2=256 (the paper's by default)");
  sub->add_option("--depth", options->depth,
                  "functional moves every byte, timing skips data; the same cycles (default timing)");
  sub->add_flag("--no-memo", options->no_memo,
                "Timing depth: profile every microkernel call anew and keep nothing on disk");
  sub->add_flag("--verify", options->request.verify, "Compare with FP64; implies functional depth");
  sub->add_option("--seed", options->request.seed, "Of the random operands in [-1, 1) (default 1)")
      ->check(whole_number(0));
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  op->footer("\n  mtsim op gemm --m 720 --n 256 --k 2048 --dtype f32 --verify");
  sub->footer(R"(
Exit status 1 after a fault, a DMA finding, or a result outside the error bound.
  mtsim op gemm --m 720 --n 256 --k 2048 --dtype f32 --verify
  mtsim op gemm --m 4096 --n 4096 --k 4096 --set ddr.bandwidth_gb_s=60 --json -
  mtsim op gemm --m 8 --n 4096 --k 4096 --variant paper,small_m)");
  return {sub, [options, &common] { return run(*options, common); }};
}

}  // namespace mtsim::scenarios
