// SPDX-License-Identifier: Apache-2.0
// Runs cases of operators on one simulated cluster: prepares, launches, verifies. `op`, scenarios, the fit and the
// regression harness use it; the cluster is elaborated once and reset between cases.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/operator.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/trace.h"

namespace mtsim::scenarios {

/// How a case is simulated, whatever the operator. `mtsim op` has an option for each (command_op.cpp).
struct CaseOptions {
  sim::Depth depth = sim::Depth::timing;
  bool memo = true;        // timing: cycles of calls may come from earlier ones, on disk too
  bool verify = false;     // functional depth only
  std::uint64_t seed = 1;  // of the operands
  bool hazards = true;     // look for DMA races
  // A launch that takes longer throws sim::LaunchCut, with skip_pieces one that would; 0: no limit.
  std::int64_t max_cycles = 0;
  // Timing depth: of many equal pieces (OperatorCase::pieces) a few are simulated, the others take what the last
  // two of those take.
  bool skip_pieces = false;
};

class Watch;

struct OperatorRequest {
  const Operator* op = nullptr;
  CaseSpec spec;
  CaseOptions options;
};

struct OperatorOutcome {
  OperatorRequest request;
  Json plan;                                      // OperatorCase::plan
  std::string plan_text;                          // OperatorCase::plan_text
  sim::LaunchResult launch;                       // of all launches
  std::int64_t pieces = 1, simulated_pieces = 1;  // OperatorCase::pieces
  Json results = Json::object();                  // OperatorCase::results
  std::string results_text;
  std::optional<Verification> verification;  // absent after a fault
  double latency_ms = 0;                     // launch included
  double gmac_s = 0;                         // multiply-accumulates, 10^9 a second; 0 for operators without
  double peak_gmac_s = 0;                    // of the cluster in this type
  double ideal_bytes = 0;                    // least DDR traffic
  double ddr_gb_s = 0;                       // ideal_bytes over the time from the program's start
  double utilisation = 0;                    // 0..1: of the peak MAC rate, of the DDR bandwidth without MACs
  // Of the microkernels that were called.
  std::vector<std::string> assumed_instructions;
  std::vector<std::string> assumed_packet_rules;
  double wall_s = 0;  // on the host

  const Operator& op() const { return *request.op; }
  std::string shape() const { return shape_text(op(), request.spec.shape); }
  /// The word of the first variant group; "" for an operator without.
  std::string variant() const {
    if (plan.contains("variant")) return plan.at("variant");  // what was chosen automatically
    return request.spec.variant.empty() ? "" : request.spec.variant.front();
  }
  /// No fault, no finding, and right when asked to verify.
  bool passed() const;
};

class OperatorRunner {
 public:
  explicit OperatorRunner(sim::Machine machine);
  ~OperatorRunner();

  const sim::Machine& machine() const { return m_machine; }
  /// Later cases run on `machine`, which may differ in every number but cores and memory sizes.
  void set_machine(sim::Machine machine);
  /// Later cases are watched by `watch`, which outlives them.
  void set_watch(Watch& watch) { m_watch = &watch; }

  /// Throws UsageError for shapes the DDR cannot hold, kernels::KernelError for tiles that do not fit, ProgramFailed
  /// when the simulation cannot go on, sim::LaunchCut.
  OperatorOutcome run(const OperatorRequest& request);

 private:
  sim::Cluster& cluster(const CaseOptions& options, sim::Observer* observer);
  sim::LaunchResult launch(const OperatorRequest& request, OperatorCase& the_case);
  sim::LaunchResult launch_pieces(const OperatorRequest& request, OperatorCase& the_case, std::int64_t& simulated);

  sim::Machine m_machine;
  Watch* m_watch = nullptr;
  std::unique_ptr<sim::Observers> m_observers;  // outlives m_cluster's launches
  std::unique_ptr<sim::Cluster> m_cluster;
};

const char* to_string(sim::Depth depth);
/// UsageError with the known words.
sim::Depth parse_depth(const std::string& name);

}  // namespace mtsim::scenarios
