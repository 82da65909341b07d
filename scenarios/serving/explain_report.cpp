// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>

#include "scenarios/report.h"
#include "scenarios/serving/explain.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {
namespace {

constexpr int k_lanes = 4;  // FP16, as serving computes

std::string_view without_layer(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

std::int64_t cycles_of(const std::vector<runtime::OperatorTime>& operators) {
  std::int64_t cycles = 0;
  for (const auto& op : operators) cycles += op.cycles;
  return cycles;
}

/// "23 requests of 512 to 639 positions", "1 prompt of 512 tokens".
std::string batch_text(const std::vector<models::SequenceStep>& batch) {
  if (batch.empty()) return "";
  std::int64_t least = batch.front().context, most = least;
  for (const auto& step : batch) {
    least = std::min(least, step.context);
    most = std::max(most, step.context);
  }
  const std::string s = batch.size() == 1 ? "" : "s";
  if (batch.front().tokens > 1) return fmt::format("{} prompt{} of {} tokens", batch.size(), s, batch.front().tokens);
  return fmt::format("{} request{} with {} to {} cached tokens", batch.size(), s, least, most);
}

Json stage_json(const StageShare& stage) {
  return {{"pool", stage.pool},
          {"replica", stage.replica},
          {"stage", stage.stage},
          {"iterations", stage.iterations},
          {"busy_s", stage.busy_s()},
          {"kernels_s", stage.kernels_s},
          {"launches_s", stage.launches_s},
          {"all_reduce_s", stage.all_reduce_s},
          {"slowest_s", stage.slowest_s},
          {"slowest_batch", batch_text(stage.slowest_batch)}};
}

}  // namespace

Json explained_json(const ExplainedRequest& request, const std::vector<runtime::OperatorTime>& operators,
                    const sim::Machine& machine) {
  const RequestPhases& p = request.phases;
  Json json = {{"command", "explain"},
               {"case", request.cell},
               {"request", request.id},
               {"prompt", request.prompt_tokens},
               {"output", request.output_tokens},
               {"preemptions", request.preemptions},
               {"phases",
                {{"queue_s", p.queue_s},
                 {"prefill_s", p.prefill_s},
                 {"migration_s", p.migration_s},
                 {"decode_s", p.decode_s},
                 {"sum_s", p.sum_s()}}},
               {"waiting_s", request.waiting_s},
               {"stages", Json::array()},
               {"operators", Json::array()}};
  for (const StageShare& stage : request.stages) json["stages"].push_back(stage_json(stage));
  for (const runtime::OperatorTime& op : operators) {
    const Bound bound = bound_of(op, machine.config(), k_lanes);
    Json account = Json::object();
    for (int c = 0; c < sim::k_cycle_classes; ++c)
      account[std::string(name(static_cast<sim::CycleClass>(c)))] = op.account[static_cast<std::size_t>(c)];
    json["operators"].push_back(
        {{"name", without_layer(op.name)},
         {"kernel", op.kernel},
         {"cycles", op.cycles},
         {"ddr_bytes", op.ddr_bytes},
         {"gsm_bytes", op.gsm_bytes},
         {"core_cycles", std::move(account)},
         {"bound",
          {{"by", bound.by}, {"share", bound.share}, {"utilisation", bound.utilisation}, {"text", bound.text}}}});
  }
  json["machine"] = machine_json(machine);
  return json;
}

std::string explained_text(const ExplainedRequest& request, const std::vector<runtime::OperatorTime>& operators,
                           const sim::Machine& machine) {
  const RequestPhases& p = request.phases;
  std::string text = fmt::format("request {} of {}: {} prompt tokens, {} generated, {:.3f} s\n", request.id,
                                 request.cell, request.prompt_tokens, request.output_tokens, p.sum_s());
  Table phases({Align::left, Align::right, Align::right, Align::left});
  const auto phase = [&](const char* name, double seconds, const std::string& note) {
    phases.add({name, fmt::format("{:.3f} s", seconds), fmt::format("{:.0f} %", 100 * seconds / p.sum_s()), note});
  };
  phase("queue", p.queue_s, "until a pool took it");
  phase("prefill", p.prefill_s, "until its first token");
  phase("migration, buffer", p.migration_s, "its cache on the way or waiting for a place in decode");
  phase("decode", p.decode_s, fmt::format("{} tokens", request.output_tokens - 1));
  text += phases.text(2);
  if (request.preemptions > 0)
    text += fmt::format("  preempted {} times: its cache was made again\n", request.preemptions);
  if (request.stages.empty()) return text;

  Table stages({Align::left, Align::right, Align::right, Align::right, Align::right, Align::right},
               {"stage", "iterations", "busy", "kernels", "launches", "all-reduce"});
  const auto seconds = [](double s) { return fmt::format("{:.3f} s", s); };
  for (const StageShare& stage : request.stages) {
    stages.add({fmt::format("{} {}, stage {}", stage.pool, stage.replica, stage.stage),
                std::to_string(stage.iterations), seconds(stage.busy_s()), seconds(stage.kernels_s),
                seconds(stage.launches_s), seconds(stage.all_reduce_s)});
  }
  text += "\nstages that worked for it\n" + stages.text(2);
  text += fmt::format("  in no stage: {:.3f} s, behind other micro-batches, on links and on the hosts\n",
                      request.waiting_s);

  const StageShare& slowest = request.stages.front();
  text += fmt::format("\na layer of its slowest iteration there ({} {}, stage {}; {}; TP {}; {:.3f} ms a stage)\n",
                      slowest.pool, slowest.replica, slowest.stage, batch_text(slowest.slowest_batch), request.tp,
                      1e3 * slowest.slowest_s);
  Table table({Align::left, Align::left, Align::right, Align::right, Align::left},
              {"operator", "kernel", "ms", "%", "bound"});
  const auto all = static_cast<double>(cycles_of(operators));
  for (const runtime::OperatorTime& op : operators) {
    table.add({std::string(without_layer(op.name)), op.kernel,
               fmt::format("{:.3f}", machine.config().milliseconds(op.cycles)),
               fmt::format("{:.1f}", 100 * static_cast<double>(op.cycles) / all),
               bound_of(op, machine.config(), k_lanes).text});
  }
  text += table.text(2);
  if (operators.empty()) return text;
  const runtime::OperatorTime& first = operators.front();
  const Bound bound = bound_of(first, machine.config(), k_lanes);
  return text +
         fmt::format("\n{} bounds it: {} ({}), {}\n", bound.by, without_layer(first.name), first.kernel, bound.text);
}

}  // namespace mtsim::scenarios
