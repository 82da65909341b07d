// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/error.h"

namespace mtsim::runtime {

double RequestRecord::tpot_s() const {
  return output_tokens > 1 ? (finish_s - first_token_s) / static_cast<double>(output_tokens - 1) : 0;
}

double ServingResult::tokens_per_s() const {
  const auto tokens = std::accumulate(emissions.begin(), emissions.end(), std::int64_t{0},
                                      [](std::int64_t sum, const Emission& e) { return sum + e.tokens; });
  return makespan_s > 0 ? static_cast<double>(tokens) / makespan_s : 0;
}

double ServingResult::steady_tokens_per_s(double share) const {
  std::int64_t all = 0;
  for (const Emission& emission : emissions) all += emission.tokens;
  const auto skipped = static_cast<std::int64_t>(static_cast<double>(all) * (1 - share) / 2);
  std::int64_t before = 0, counted = 0;
  double begin_s = -1, end_s = -1;
  for (const Emission& emission : emissions) {
    before += emission.tokens;
    if (before <= skipped) continue;
    if (begin_s < 0) {  // its own tokens came in the time before
      begin_s = emission.at_s;
      continue;
    }
    if (before > all - skipped) break;
    counted += emission.tokens;
    end_s = emission.at_s;
  }
  return end_s > begin_s ? static_cast<double>(counted) / (end_s - begin_s) : tokens_per_s();
}

Percentiles percentiles(std::vector<double> values) {
  Percentiles result;
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  const auto rank = [&](double share) {
    const auto at = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
    return values[std::clamp<std::size_t>(at, 1, values.size()) - 1];
  };
  result = {rank(0.50), rank(0.90), rank(0.95), rank(0.99), 0, values.back()};
  result.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  return result;
}

ServiceLevel ServiceLevel::parse(const std::string& text) {
  ServiceLevel level;
  const auto bad = [&](const std::string& why) {
    return RuntimeError(
        fmt::format("service level '{}': {}; write ttft=SECONDS,tpot=SECONDS, either alone too", text, why));
  };
  if (text.empty()) throw bad("it is empty");
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t end = std::min(text.find(',', from), text.size());
    const std::string part = text.substr(from, end - from);
    from = end + 1;
    const std::size_t equals = part.find('=');
    double* const place = part.starts_with("ttft=")   ? &level.ttft_s
                          : part.starts_with("tpot=") ? &level.tpot_s
                                                      : nullptr;
    if (place == nullptr) throw bad(fmt::format("'{}' is neither ttft= nor tpot=", part));
    if (std::isfinite(*place)) throw bad(fmt::format("{} is there twice", part.substr(0, equals)));
    double value = 0;
    const char *first = part.data() + equals + 1, *last = part.data() + part.size();
    const auto [stop, error] = std::from_chars(first, last, value);
    if (error != std::errc() || stop != last || !(value > 0) || !std::isfinite(value))
      throw bad(fmt::format("'{}' is no time above 0", part.substr(equals + 1)));
    *place = value;
  }
  return level;
}

bool ServiceLevel::is_bound() const { return std::isfinite(ttft_s) || std::isfinite(tpot_s); }

bool ServiceLevel::met_by(const RequestRecord& request) const {
  return request.outcome == Outcome::finished && request.ttft_s() <= ttft_s && request.tpot_s() <= tpot_s;
}

ServingMetrics metrics_of(const ServingResult& result, const ServiceLevel& level) {
  ServingMetrics metrics;
  metrics.rejected = result.rejected;
  metrics.preemptions = result.preemptions;
  metrics.makespan_s = result.makespan_s;
  metrics.tokens_per_s = result.tokens_per_s();
  metrics.steady_tokens_per_s = result.steady_tokens_per_s();
  std::vector<double> ttft, tpot, end_to_end;
  std::int64_t met = 0, met_tokens = 0;
  for (const RequestRecord& request : result.requests) {
    if (request.outcome != Outcome::finished) continue;
    ++metrics.finished;
    ttft.push_back(request.ttft_s());
    if (request.output_tokens > 1) tpot.push_back(request.tpot_s());
    end_to_end.push_back(request.finish_s - request.arrival_s);
    if (!level.met_by(request)) continue;
    ++met;
    met_tokens += request.output_tokens;
  }
  metrics.ttft = percentiles(std::move(ttft));
  metrics.tpot = percentiles(std::move(tpot));
  metrics.end_to_end = percentiles(std::move(end_to_end));
  if (!result.requests.empty())
    metrics.attainment = static_cast<double>(met) / static_cast<double>(result.requests.size());
  if (!(result.makespan_s > 0)) return metrics;
  metrics.requests_per_s = static_cast<double>(metrics.finished) / result.makespan_s;
  metrics.goodput_requests_per_s = static_cast<double>(met) / result.makespan_s;
  metrics.goodput_tokens_per_s = static_cast<double>(met_tokens) / result.makespan_s;
  for (std::size_t i = 0; i < result.occupancy.size(); ++i) {
    const Occupancy& now = result.occupancy[i];
    const double until = i + 1 < result.occupancy.size() ? result.occupancy[i + 1].at_s : result.makespan_s;
    const double share = std::max(0.0, until - now.at_s) / result.makespan_s;
    metrics.mean_queued += share * static_cast<double>(now.queued);
    metrics.mean_buffer_bytes += share * static_cast<double>(now.buffer_bytes);
    metrics.mean_decoding += share * static_cast<double>(now.decoding);
    metrics.mean_kv_bytes += share * static_cast<double>(now.kv_bytes);
  }
  return metrics;
}

}  // namespace mtsim::runtime
