// SPDX-License-Identifier: Apache-2.0
// What a run is judged by.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "runtime/serving/serve.h"

namespace mtsim::runtime {

/// Seconds. Nearest rank: a value that a request had.
struct Percentiles {
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0, mean = 0, worst = 0;
};
Percentiles percentiles(std::vector<double> values);

/// What a user wants of a request. Infinite: anything.
struct ServiceLevel {
  double ttft_s = std::numeric_limits<double>::infinity();  // at most
  double tpot_s = std::numeric_limits<double>::infinity();
  /// "ttft=2,tpot=0.2" in seconds; either may be left out. Throws RuntimeError.
  static ServiceLevel parse(const std::string& text);
  bool met_by(const RequestRecord& request) const;
  /// Whether anything is asked.
  bool is_bound() const;
};

struct ServingMetrics {
  std::int64_t finished = 0, rejected = 0, preemptions = 0;
  double makespan_s = 0;
  double tokens_per_s = 0;         // B * N / T_latency of III-D1
  double steady_tokens_per_s = 0;  // of the middle half of the tokens
  double requests_per_s = 0;
  Percentiles ttft, tpot, end_to_end;  // tpot: of requests with more than one token
  double attainment = 0;               // share of all requests, rejected ones too, that met the service level
  double goodput_requests_per_s = 0, goodput_tokens_per_s = 0;                          // of those
  double mean_queued = 0, mean_buffer_bytes = 0, mean_decoding = 0, mean_kv_bytes = 0;  // over time
};
ServingMetrics metrics_of(const ServingResult& result, const ServiceLevel& level);

}  // namespace mtsim::runtime
