// SPDX-License-Identifier: Apache-2.0
// What users send: prompts with an arrival time and a number of tokens to generate.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::runtime {

struct Request {
  std::int64_t id = 0;  // its place in the workload
  double arrival_s = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;
  std::vector<std::int32_t> ids = {};  // of the prompt, where values are computed
};

/// By arrival.
using Workload = std::vector<Request>;

/// All there at once: what the paper measures with.
Workload uniform_workload(std::int64_t requests, std::int64_t prompt_tokens, std::int64_t output_tokens);
/// Exponential times between arrivals, the same for a seed on every host.
Workload poisson_workload(std::int64_t requests, double per_second, std::int64_t prompt_tokens,
                          std::int64_t output_tokens, std::uint64_t seed);

struct TraceOptions {
  std::int64_t first = 0, requests = -1;  // rows; -1: all
  double speed = 1;                       // arrivals so much faster
};
/// A CSV with a header that names the columns in any order: arrival (TIMESTAMP: seconds, or date and time), prompt and
/// output tokens (ContextTokens, GeneratedTokens, and other usual names). Other columns are skipped. Times count from
/// the first row taken; rows are sorted by them. Throws RuntimeError with file:line:column.
Workload trace_workload(const std::string& path, const TraceOptions& options);

/// The same from text; `file` is its name in messages.
Workload parse_trace(std::string_view text, const std::string& file, const TraceOptions& options);

}  // namespace mtsim::runtime
