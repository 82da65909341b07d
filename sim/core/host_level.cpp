// SPDX-License-Identifier: Apache-2.0
#include <cpuid.h>

#include <cstdlib>
#include <stdexcept>
#include <string_view>

#include "sim/core/decode.h"

namespace mtsim::sim {

namespace {

// clang's __builtin_cpu_supports does not know this one.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

}  // namespace

const char* to_string(HostLevel level) {
  switch (level) {
    case HostLevel::baseline: return "baseline";
    case HostLevel::avx2: return "avx2";
    case HostLevel::avx512: return "avx512";
  }
  return "?";
}

std::vector<HostLevel> supported_host_levels() {
  std::vector<HostLevel> levels = {HostLevel::baseline};
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (avx2) levels.push_back(HostLevel::avx2);
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    levels.push_back(HostLevel::avx512);
  }
  return levels;
}

Loop loop_of(HostLevel level) {
  switch (level) {
    case HostLevel::avx512: return k_loop_avx512;
    case HostLevel::avx2: return k_loop_avx2;
    case HostLevel::baseline: break;
  }
  return k_loop_baseline;
}

HostLevel best_host_level() {
  static const HostLevel level = [] {
    const auto levels = supported_host_levels();
    const char* wanted = std::getenv("MTSIM_HOST_LEVEL");
    if (wanted == nullptr) return levels.back();
    for (const HostLevel candidate : levels) {
      if (std::string_view(wanted) == to_string(candidate)) return candidate;
    }
    std::string known;
    for (const HostLevel candidate : levels) known += (known.empty() ? "" : ", ") + std::string(to_string(candidate));
    throw std::runtime_error("MTSIM_HOST_LEVEL=" + std::string(wanted) + ": this host runs " + known);
  }();
  return level;
}

}  // namespace mtsim::sim
