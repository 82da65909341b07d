// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/serving_json.h"

#include <algorithm>

#include "runtime/serving/metrics.h"

namespace mtsim::scenarios {
namespace {

using runtime::Pool;

constexpr std::size_t k_most_samples = 200;  // of occupancy over time

Json pool_json(const Pool& pool) {
  return {{"tp", pool.tp}, {"pp", pool.pp}, {"dp", pool.dp}, {"micro_batch", pool.micro_batch}};
}

Json percentiles_json(const runtime::Percentiles& p) {
  return {{"p50", p.p50}, {"p90", p.p90}, {"p95", p.p95}, {"p99", p.p99}, {"mean", p.mean}, {"worst", p.worst}};
}

}  // namespace

Json plan_json(const runtime::ServingPlan& plan) {
  Json json = {{"text", plan.str()},
               {"mode", to_string(plan.mode)},
               {"execution", plan.execution.name},
               {"decode", pool_json(plan.decode)},
               {"clusters", plan.clusters()},
               {"batch", plan.decode.batch()}};
  if (plan.mode == runtime::PipelineMode::coupled) {
    json["coupled_batch"] = to_string(plan.coupled_batch);
    if (plan.kv.sequences > 0) json["requests"] = plan.kv.sequences;
  } else {
    json["prefill"] = pool_json(plan.prefill);
    json["buffer"] = {{"clusters", plan.buffer.clusters}, {"slack", plan.buffer.slack}};
  }
  return json;
}

void describe_run(const runtime::ServingResult& result, std::int64_t groups, bool is_steady,
                  const runtime::ServiceLevel& slo, Json& json) {
  const runtime::ServingMetrics metrics = runtime::metrics_of(result, slo);
  const auto all = static_cast<double>(groups);
  json["status"] = "done";
  json["metrics"] = {{"tokens_s", all * (is_steady ? metrics.steady_tokens_per_s : metrics.tokens_per_s)},
                     {"tokens_s_makespan", all * metrics.tokens_per_s},
                     {"requests_s", all * metrics.requests_per_s},
                     {"ttft_s", percentiles_json(metrics.ttft)},
                     {"tpot_s", percentiles_json(metrics.tpot)},
                     {"end_to_end_s", percentiles_json(metrics.end_to_end)},
                     {"makespan_s", metrics.makespan_s},
                     {"mean_queued", metrics.mean_queued},
                     {"mean_decoding", metrics.mean_decoding}};
  if (slo.is_bound()) {
    json["metrics"]["attainment"] = metrics.attainment;
    json["metrics"]["goodput_tokens_s"] = all * metrics.goodput_tokens_per_s;
  }
  json["requests_finished"] = metrics.finished;
  json["requests_rejected"] = metrics.rejected;
  json["preemptions"] = metrics.preemptions;
  json["pools"] = Json::array();
  for (const runtime::PoolUse& pool : result.pools) {
    json["pools"].push_back({{"name", pool.name},
                             {"clusters", pool.clusters},
                             {"utilisation", pool.available_s > 0 ? pool.busy_s / pool.available_s : 0},
                             {"paused_s", pool.paused_s},
                             {"iterations", pool.iterations}});
  }
  json["buffer"] = {{"capacity_bytes", result.buffer_capacity_bytes},
                    {"peak_bytes", result.peak_buffer_bytes},
                    {"mean_bytes", metrics.mean_buffer_bytes}};
  json["kv"] = {{"peak_bytes", result.peak_kv_bytes},
                {"mean_bytes", metrics.mean_kv_bytes},
                {"migrated_bytes", result.migrated_bytes}};
}

void describe_events(const runtime::ServingResult& result, Json& json) {
  json["requests"] = Json::array();
  for (const runtime::RequestRecord& r : result.requests) {
    Json request = {{"id", r.id}, {"prompt", r.prompt_tokens}, {"output", r.output_tokens}, {"arrival_s", r.arrival_s}};
    if (r.outcome == runtime::Outcome::rejected) {
      request["rejected"] = r.why;
    } else {
      request.update({{"prefill_start_s", r.prefill_start_s},
                      {"first_token_s", r.first_token_s},
                      {"decode_start_s", r.decode_start_s},
                      {"finish_s", r.finish_s},
                      {"preemptions", r.preemptions}});
    }
    json["requests"].push_back(std::move(request));
  }
  json["events"] = Json::array();
  for (const runtime::StageEvent& e : result.events) {
    Json batch = Json::array();
    for (const auto& step : e.batch) batch.push_back({step.tokens, step.context});
    json["events"].push_back({{"pool", e.pool},
                              {"replica", e.replica},
                              {"stage", e.stage},
                              {"start_s", e.start_s},
                              {"kernels_s", e.time.kernels_s},
                              {"launches_s", e.time.launches_s},
                              {"all_reduce_s", e.time.all_reduce_s},
                              {"requests", e.requests},
                              {"batch", std::move(batch)}});
  }
  const std::size_t step = std::max<std::size_t>(1, result.occupancy.size() / k_most_samples);
  json["occupancy"] = Json::array();
  for (std::size_t i = 0; i < result.occupancy.size(); i += step) {
    const runtime::Occupancy& o = result.occupancy[i];
    json["occupancy"].push_back({{"at_s", o.at_s},
                                 {"queued", o.queued},
                                 {"prefilling", o.prefilling},
                                 {"buffered", o.buffered},
                                 {"buffer_bytes", o.buffer_bytes},
                                 {"decoding", o.decoding},
                                 {"kv_bytes", o.kv_bytes}});
  }
}

}  // namespace mtsim::scenarios
