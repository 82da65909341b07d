// SPDX-License-Identifier: Apache-2.0
// Simulated time is a whole number of core cycles: 1.8 GHz does not fit a picosecond grid, so one SystemC picosecond
// (its default resolution) stands for one cycle. Nothing else in the project knows that.
#pragma once

#include <cmath>
#include <cstdint>
#include <systemc>

namespace mtsim::sim {

inline sc_core::sc_time cycles_to_sc(std::int64_t cycles) {
  return sc_core::sc_time::from_value(static_cast<sc_core::sc_time::value_type>(cycles));
}

/// Cycles since the process's simulation began.
inline std::int64_t now_cycles() { return static_cast<std::int64_t>(sc_core::sc_time_stamp().value()); }

inline std::int64_t microseconds_to_cycles(double microseconds, double cycles_per_us) {
  return std::llround(microseconds * cycles_per_us);
}

}  // namespace mtsim::sim
