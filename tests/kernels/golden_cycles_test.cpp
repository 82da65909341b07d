// SPDX-License-Identifier: Apache-2.0
// Cycles of every kernel as the golden file has them. MTSIM_REGRESS_UPDATE=1 (make regress-update) rewrites it, to be
// reviewed as a diff.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench_cluster.h"
#include "kernels/library.h"
#include "sim/core/executor.h"

namespace mtsim::kernels {
namespace {

struct Call {
  std::string kernel;
  std::string entry;
  std::vector<std::uint64_t> arguments;
  std::string text;  // the arguments that matter
};

std::vector<Call> calls() {
  std::vector<Call> result;
  for (const std::uint64_t k : {4u, 250u, 256u}) {
    for (const char* entry : {"accumulate", "write_only"}) {
      result.push_back({"gemm_f32_6x128", entry, {0, 0, 0, k, 4 * k, 512, 512}, fmt::format("k={}", k)});
    }
  }
  for (const std::uint64_t k : {8u, 128u, 256u}) {
    for (const char* entry : {"accumulate", "write_only", "accumulate_f32", "write_only_f32"}) {
      result.push_back({"gemm_f16_6x256", entry, {0, 0, 0, k, 2 * k, 512, 1024}, fmt::format("k={}", k)});
    }
  }
  for (const char* entry : {"narrow", "merge"}) result.push_back({"gemm_narrow_6x256", entry, {0, 0, 1024, 512}, ""});
  result.push_back({"zero_am", "", {0, 1024}, "bytes=1024"});
  result.push_back({"zero_sm_column", "", {0, 30, 1024}, "rows=30"});
  return result;
}

/// The shipped machine with its fitted numbers pinned, so that a new fit does not move the golden cycles.
sim::MachineConfig golden_machine() { return machine({"ddr.bandwidth_gb_s=32", "dma.broadcast_rendezvous_us=6"}); }

std::string lines() {
  std::string text = "# Cycles of each kernel. `make regress-update` rewrites this file; review the diff.\n";
  for (const Call& call : calls()) {
    const sim::DecodedProgram decoded(program(call.kernel), {});
    const sim::RunResult result = sim::profile(decoded, call.arguments, {.entry = call.entry}).result;
    REQUIRE(result.status == sim::RunStatus::done);
    text += fmt::format("{:20} {:14} {:30} {:>10}\n", call.kernel, call.entry, call.text, result.cycles);
  }
  const GemmShape shapes[] = {{720, 256, 2048}, {1024, 1024, 4096}, {721, 129, 2050}, {6, 4096, 4096}};
  for (const DType dtype : k_dtypes) {
    for (const GemmShape& shape : shapes) {
      for (const GemmVariant variant : {GemmVariant::best, GemmVariant::paper}) {
        const GemmPlan plan = plan_gemm(shape, dtype, GemmTiles::of(dtype), {.variant = variant}, golden_machine());
        if (plan.variant != variant) continue;  // small M has one sequence
        const GemmRun run = run_gemm(fresh({sim::Depth::timing}, golden_machine()), plan);
        text += fmt::format("{:20} {:14} {:30} {:>10}\n", fmt::format("gemm {}", to_string(dtype)),
                            variant == GemmVariant::best ? "best" : "paper",
                            fmt::format("m={} n={} k={}", shape.m, shape.n, shape.k), run.result.cycles);
      }
    }
  }
  return text;
}

}  // namespace

TEST_CASE("kernels take the cycles of the golden file", "[regress]") {
  const std::string now = lines();
  if (const char* update = std::getenv("MTSIM_REGRESS_UPDATE"); update != nullptr && std::string(update) == "1") {
    std::ofstream(MTSIM_GOLDEN_CYCLES) << now;
    SUCCEED("rewritten");
    return;
  }
  std::ostringstream golden;
  golden << std::ifstream(MTSIM_GOLDEN_CYCLES).rdbuf();
  CHECK(now == golden.str());
}

}  // namespace mtsim::kernels
