// SPDX-License-Identifier: Apache-2.0
// Workloads that are made up.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "runtime/error.h"
#include "runtime/serving/request.h"

namespace mtsim::runtime {
namespace {

void check(std::int64_t requests, std::int64_t prompt_tokens, std::int64_t output_tokens) {
  if (requests >= 1 && prompt_tokens >= 1 && output_tokens >= 1) return;
  throw RuntimeError(fmt::format("a workload of {} requests of {} prompt and {} output tokens: each is at least 1",
                                 requests, prompt_tokens, output_tokens));
}

}  // namespace

Workload uniform_workload(std::int64_t requests, std::int64_t prompt_tokens, std::int64_t output_tokens) {
  check(requests, prompt_tokens, output_tokens);
  Workload workload;
  for (std::int64_t id = 0; id < requests; ++id) workload.push_back({id, 0, prompt_tokens, output_tokens});
  return workload;
}

Workload poisson_workload(std::int64_t requests, double per_second, std::int64_t prompt_tokens,
                          std::int64_t output_tokens, std::uint64_t seed) {
  check(requests, prompt_tokens, output_tokens);
  if (!(per_second > 0) || !std::isfinite(per_second))
    throw RuntimeError(fmt::format("{} requests a second: a rate is above 0", per_second));
  // std::exponential_distribution differs between libraries; the generator itself does not.
  std::mt19937_64 random(seed);
  constexpr double k_unit = 0x1p-53;
  Workload workload;
  double at = 0;
  for (std::int64_t id = 0; id < requests; ++id) {
    const double uniform = (static_cast<double>(random() >> 11) + 0.5) * k_unit;  // inside (0, 1)
    at -= std::log(uniform) / per_second;
    workload.push_back({id, at, prompt_tokens, output_tokens});
  }
  return workload;
}

}  // namespace mtsim::runtime
