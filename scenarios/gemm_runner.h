// SPDX-License-Identifier: Apache-2.0
// Runs GEMMs on one simulated cluster: allocates and fills the operands, launches, verifies. `op gemm`, scenarios and
// the fit use it; the cluster is elaborated once and reset between cases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "scenarios/verify.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// How an operator goes about it: what --variant chooses.
struct GemmSequence {
  kernels::GemmDataflow dataflow = kernels::GemmDataflow::automatic;
  kernels::GemmVariant variant = kernels::GemmVariant::best;
};

struct GemmRequest {
  kernels::GemmShape shape;
  GemmSequence sequence;
  kernels::GemmTiles tiles;
  sim::Depth depth = sim::Depth::timing;
  bool memo = true;        // timing: cycles of calls may come from earlier ones, on disk too
  bool verify = false;     // functional depth only
  std::uint64_t seed = 1;  // of the operands, uniform in [-1, 1)
};

struct GemmOutcome {
  GemmRequest request;
  kernels::GemmPlan plan;
  sim::LaunchResult launch;
  std::optional<Verification> verification;  // absent after a fault
  double latency_ms = 0;
  double gmac_s = 0;       // multiply-accumulates, 10^9 a second
  double utilisation = 0;  // of the cluster's peak MAC rate, 0..1
  double peak_gmac_s = 0;
  // Of the microkernels that were called.
  std::vector<std::string> assumed_instructions;
  std::vector<std::string> assumed_packet_rules;
  double wall_s = 0;  // on the host

  /// No fault, no finding, and right when asked to verify.
  bool passed() const;
};

class GemmRunner {
 public:
  explicit GemmRunner(sim::Machine machine);
  ~GemmRunner();

  const sim::Machine& machine() const { return m_machine; }
  /// Later cases run on `machine`, which may differ in every number but cores and memory sizes.
  void set_machine(sim::Machine machine);

  /// Throws UsageError for shapes the DDR cannot hold, kernels::KernelError for tiles that do not fit, ProgramFailed
  /// when the simulation cannot go on.
  GemmOutcome run(const GemmRequest& request);

 private:
  sim::Machine m_machine;
  std::unique_ptr<sim::Cluster> m_cluster;
};

/// "large_m", "small_m", "automatic".
const char* to_string(kernels::GemmDataflow dataflow);
/// "best", "paper".
const char* to_string(kernels::GemmVariant variant);
const char* to_string(sim::Depth depth);
/// One word for the variant, the dataflow or both: "paper", "small_m", "paper,large_m"; what is not named keeps its
/// default. UsageError with the known words.
GemmSequence parse_sequence(const std::string& words);
sim::Depth parse_depth(const std::string& name);
/// UsageError unless `dtype` is one the operator has.
void require_gemm_dtype(const std::string& dtype);

}  // namespace mtsim::scenarios
