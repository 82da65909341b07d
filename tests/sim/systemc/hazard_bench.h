// SPDX-License-Identifier: Apache-2.0
// Small DSP programs and what the hazard monitor says of them. Every verdict is asked for in both depths and on
// machines whose DMA is ten times slower and faster: it must not depend on either.
#pragma once

#include <catch2/catch.hpp>

#include <optional>

#include "zone_bench.h"

namespace hazard {

using namespace mtsim::sim;

inline constexpr Pointer k_ddr_start{Space::ddr, -1, 0};
inline constexpr Pointer k_gsm_start{Space::gsm, -1, 0};
inline constexpr std::int64_t k_bytes = 1024;  // of a buffer
inline constexpr std::int64_t k_vectors = k_bytes / 128;

inline MachineConfig with_dma_times(double factor) {
  MachineConfig machine = bench_machine();
  machine.dma.start_us *= factor;
  machine.dma.broadcast_rendezvous_us *= factor;
  machine.cluster.barrier_us *= factor;
  machine.ddr.bandwidth_gb_s /= factor;
  machine.cluster.gsm_bandwidth_gb_s /= factor;
  machine.cluster.port_bandwidth_gb_s /= factor;
  return machine;
}

/// What does not depend on when things happened.
inline std::string summary(const Finding& finding) {
  std::string text = finding.kind;
  for (const FindingEnd& end : finding.ends) {
    text += "\n  " + end.str();
  }
  return text + "\n  missing: " + finding.missing_edge + "\n  times: " + std::to_string(finding.count);
}

using Body = std::function<void(Dsp&, const Kernel& copy)>;

/// The findings of `body`, the same in all circumstances.
inline LaunchResult judged(const Body& body, int cores = 1) {
  std::optional<LaunchResult> first;
  std::vector<std::string> expected;
  for (const Depth depth : {Depth::functional, Depth::timing}) {
    for (const double factor : {1.0, 0.1, 10.0}) {
      Cluster& cluster = fresh({.depth = depth}, with_dma_times(factor));
      const Kernel copy = load(cluster, k_copy_kernel);
      LaunchResult result = cluster.launch([&](Dsp& dsp) { body(dsp, copy); }, cores);
      REQUIRE_FALSE(result.fault);
      std::vector<std::string> found;
      for (const auto* list : {&result.findings, &result.notes}) {
        for (const Finding& finding : *list) found.push_back(summary(finding));
      }
      if (!first) {
        first = std::move(result);
        expected = found;
      }
      INFO("DMA times scaled by " << factor << (depth == Depth::timing ? ", timing" : ", functional"));
      CHECK(found == expected);
    }
  }
  return *first;
}

inline std::vector<std::string> kinds(const std::vector<Finding>& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings) list.push_back(finding.kind);
  return list;
}

inline std::vector<std::string> kinds(const Body& body, int cores = 1) { return kinds(judged(body, cores).findings); }

using Kinds = std::vector<std::string>;
inline const Kinds k_clean = {};

/// Copies a buffer in AM that holds something; the scalar parameter is loaded and never used.
inline void copy_am(Dsp& dsp, const Kernel& copy, Pointer from, Pointer to) {
  dsp.call(copy, {from, to, Pointer{Space::sm, static_cast<std::int16_t>(dsp.thread_id()), 0}, k_vectors});
}

inline int load_am(Dsp& dsp, Pointer to, Pointer from = k_ddr_start) {
  return dsp.dma_p2p(from, row(k_bytes), to, row(k_bytes));
}

}  // namespace hazard
