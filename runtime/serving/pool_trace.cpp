// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/pool_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace mtsim::runtime {
namespace {

constexpr int k_all_process = 0;  // the counters'
int process_of(std::int64_t pool) { return static_cast<int>(pool) + 1; }
std::int64_t ticks(double seconds) { return std::llround(seconds * 1e9); }

struct Name {
  std::string_view name, unit;
};
constexpr std::array<Name, 6> k_names = {{{"queue", "requests"},
                                          {"in prefill", "requests"},
                                          {"behind prefill", "requests"},
                                          {"decoded", "requests"},
                                          {"buffer", "MB"},
                                          {"KV caches", "MB"}}};

}  // namespace

PoolTrace::PoolTrace(const std::string& path, const ServingPlan& plan, sim::TraceWindow window)
    : m_file(path, "\"time\":\"seconds of the simulated system\""), m_window(window) {
  m_file.name_process(k_all_process, "serving");
  const auto name = [&](std::int64_t pool, std::string_view text, const Pool& its) {
    m_file.name_process(process_of(pool), text);
    m_stages[static_cast<std::size_t>(pool)] = its.pp;
    for (std::int64_t replica = 0; replica < its.dp; ++replica) {
      for (std::int64_t stage = 0; stage < its.pp; ++stage)
        m_file.name_track(process_of(pool), static_cast<int>(replica * its.pp + stage),
                          fmt::format("replica {} stage", replica), static_cast<int>(stage));
    }
  };
  const bool is_coupled = plan.mode == PipelineMode::coupled;
  if (!is_coupled) name(0, "prefill", plan.prefill);
  name(is_coupled ? 0 : 1, "decode", plan.decode);
}

void PoolTrace::worked(const StageEvent& event) {
  const std::int64_t from = ticks(event.start_s), length = ticks(event.time.busy_s());
  if (!m_window.meets(from, from + length)) return;
  std::int64_t tokens = 0, shortest = INT64_MAX, longest = 0;
  for (const models::SequenceStep& step : event.batch) {
    tokens += step.tokens;
    shortest = std::min(shortest, step.context + step.tokens);
    longest = std::max(longest, step.context + step.tokens);
  }
  const bool is_decode = event.batch.front().context > 0;
  std::string arguments = "\"requests\":[";
  for (std::size_t i = 0; i < event.requests.size(); ++i) {
    if (i > 0) arguments += ',';
    sim::TraceFile::append(arguments, event.requests[i]);
  }
  arguments += fmt::format(
      "],\"tokens\":{},\"positions\":\"{} to "
      "{}\",\"kernels_us\":{:.3f},\"launches_us\":{:.3f},\"all_reduce_us\":{:.3f}",
      tokens, shortest, longest, 1e6 * event.time.kernels_s, 1e6 * event.time.launches_s,
      1e6 * event.time.all_reduce_s);
  const std::int64_t track = event.replica * m_stages[static_cast<std::size_t>(event.pool)] + event.stage;
  m_file.slice(process_of(event.pool), static_cast<int>(track), from, length,
               fmt::format("{} {}", is_decode ? "decode" : "prefill", event.requests.size()), arguments);
}

void PoolTrace::changed(const Occupancy& now) {
  constexpr double k_mb = 1e6;
  const std::array<double, k_counters> values = {static_cast<double>(now.queued),
                                                 static_cast<double>(now.prefilling),
                                                 static_cast<double>(now.buffered),
                                                 static_cast<double>(now.decoding),
                                                 static_cast<double>(now.buffer_bytes) / k_mb,
                                                 static_cast<double>(now.kv_bytes) / k_mb};
  const std::int64_t at = ticks(now.at_s);
  if (at >= m_window.from && at < m_window.to) {
    if (!m_written && at > m_window.from) count(m_window.from, m_values);  // what it was when the window opens
    count(at, values);
  }
  m_values = values;
}

void PoolTrace::count(std::int64_t at, const std::array<double, k_counters>& values) {
  for (std::size_t i = 0; i < k_counters; ++i) {
    if (!m_written || (*m_written)[i] != values[i])
      m_file.counter(k_all_process, at, k_names[i].name, k_names[i].unit, values[i]);
  }
  m_written = values;
}

}  // namespace mtsim::runtime
