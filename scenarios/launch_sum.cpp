// SPDX-License-Identifier: Apache-2.0
#include "scenarios/launch_sum.h"

#include <algorithm>
#include <cstddef>

namespace mtsim::scenarios {

namespace {

/// Every count of a launch that grows with its work: f(of a, of b). The programs of `a` are those of `b`, or more.
template <typename F>
void for_each_count(sim::LaunchResult& a, const sim::LaunchResult& b, const F& f) {
  f(a.cycles, b.cycles);
  for (std::size_t c = 0; c < std::min(a.cores.size(), b.cores.size()); ++c) {
    sim::CoreReport& core = a.cores[c];
    const sim::CoreReport& other = b.cores[c];
    for (std::size_t i = 0; i < core.cycles.size(); ++i) f(core.cycles[i], other.cycles[i]);
    f(core.kernel_calls, other.kernel_calls);
    f(core.packets, other.packets);
    f(core.instructions, other.instructions);
    for (std::size_t i = 0; i < core.units.size(); ++i) f(core.units[i], other.units[i]);
  }
  for (std::size_t from = 0; from < a.bytes.read.size(); ++from) {
    for (std::size_t to = 0; to < a.bytes.read[from].size(); ++to) {
      f(a.bytes.read[from][to], b.bytes.read[from][to]);
      f(a.bytes.written[from][to], b.bytes.written[from][to]);
    }
  }
  for (sim::KernelCalls& called : a.kernels) {
    const auto other = std::find_if(b.kernels.begin(), b.kernels.end(),
                                    [&](const sim::KernelCalls& k) { return k.code == called.code; });
    if (other != b.kernels.end()) f(called.calls, other->calls);
  }
  f(a.dma_transfers, b.dma_transfers);
}

}  // namespace

void append(sim::LaunchResult& all, const sim::LaunchResult& next) {
  for_each_count(all, next, [](std::int64_t& sum, std::int64_t count) { sum += count; });
  for (const sim::KernelCalls& called : next.kernels) {
    const bool known = std::any_of(all.kernels.begin(), all.kernels.end(),
                                   [&](const sim::KernelCalls& k) { return k.code == called.code; });
    if (!known) all.kernels.push_back(called);
  }
  std::sort(all.kernels.begin(), all.kernels.end(),
            [](const sim::KernelCalls& a, const sim::KernelCalls& b) { return a.program < b.program; });
  for (std::size_t c = 0; c < std::min(all.cores.size(), next.cores.size()); ++c) {
    all.cores[c].sm_bytes = std::max(all.cores[c].sm_bytes, next.cores[c].sm_bytes);
    all.cores[c].am_bytes = std::max(all.cores[c].am_bytes, next.cores[c].am_bytes);
  }
  for (const auto list : {&sim::LaunchResult::findings, &sim::LaunchResult::notes, &sim::LaunchResult::suppressed})
    (all.*list).insert((all.*list).end(), (next.*list).begin(), (next.*list).end());
  all.gsm_bytes = std::max(all.gsm_bytes, next.gsm_bytes);
  all.fault = next.fault;
}

sim::LaunchResult extrapolated(const sim::LaunchResult& fewer, const sim::LaunchResult& more, std::int64_t times) {
  sim::LaunchResult all = more;
  for_each_count(all, fewer, [times](std::int64_t& count, std::int64_t before) { count += times * (count - before); });
  return all;
}

}  // namespace mtsim::scenarios
