// SPDX-License-Identifier: Apache-2.0
// A small machine with round numbers, so that tests can count cycles by hand: 1 GHz, hence 1 GB/s = 1 byte a cycle.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/cluster.h"

namespace mtsim::sim {

inline constexpr int k_cores = 4;
inline constexpr std::int64_t k_launch = 1000, k_issue = 40, k_wait = 22, k_start = 50, k_rendezvous = 200,
                              k_barrier = 100, k_verb = 5, k_call = 7;
inline constexpr double k_ddr = 10, k_gsm = 40, k_port = 20;  // bytes a cycle

MachineConfig bench_machine();

/// The process's cluster, reset to `machine` and `options`.
Cluster& fresh(const ClusterOptions& options = {}, const MachineConfig& machine = bench_machine());

/// One row of `bytes`.
inline Rows row(std::int64_t bytes) { return {1, bytes, 0}; }

/// Cycles `body` takes on this core.
template <class Body>
std::int64_t cycles_of(Dsp& dsp, Body&& body) {
  const std::int64_t before = dsp.now();
  body();
  return dsp.now() - before;
}

/// From issue to the return of the wait, for a transfer that is served in `service` cycles.
constexpr std::int64_t move_cycles(std::int64_t service) { return k_issue + k_start + service + k_wait; }

inline std::int64_t of(const CoreReport& report, CycleClass c) { return report.cycles[static_cast<std::size_t>(c)]; }

/// The message of the SimError `program` ends in.
std::string refusal(Cluster& cluster, const DspProgram& program, int cores = 1);

std::vector<std::byte> numbers(std::size_t bytes);
std::vector<std::byte> read(Cluster& cluster, Pointer source, std::size_t bytes);

/// Copies `count` vectors of 128 bytes within AM and reads one word of SM: 4 + 16 * count + 7 cycles.
inline const std::string k_copy_kernel =
    ".param from, R10, pointer am\n.param to, R12, pointer am\n.param scale, R14, pointer sm\n.param count, R16, "
    "count\n"
    " SMVAGA.M1 R10, AR0\n| SMVAGA.M2 R12, AR1\n"
    " SMVAGA.M1 R14, AR8\n"
    " SNOP 2\n"
    "loop: VLDW *AR0++[16], VR0\n| SLDW *AR8, R20\n| SSUB.M1 1, R16, R16\n"
    " SLT 0, R16, R0\n"
    " SNOP 7\n"
    " [R0] SBR loop\n| VSTW VR0, *AR1++[16]\n"
    " SNOP 6\n"
    " SBR R63\n"
    " SNOP 6\n";
constexpr std::int64_t copy_cycles(std::int64_t count) { return 4 + 16 * count + 7; }
Kernel load(Cluster& cluster, const std::string& text, const std::string& entry = "");

}  // namespace mtsim::sim
