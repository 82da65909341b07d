// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/serving/layer_simulation.h"
#include "scenarios/error.h"
#include "scenarios/table.h"
#include "sim/cluster.h"

namespace mtsim::scenarios {
namespace {

std::string cell_text(const Json& cell) {
  std::vector<std::string> words;
  for (const auto& [key, value] : cell.at("case").items())
    words.push_back(fmt::format("{}={}", key, value.is_string() ? value.get<std::string>() : value.dump()));
  return joined(words, " ");
}

const Json& find_cell(const Json& run, const std::string& file, std::optional<std::int64_t> wanted) {
  if (!run.is_object() || run.value("kind", "") != "serving" || !run.contains("cases")) {
    throw UsageError(fmt::format(
        "{}: is no result of a serving scenario; write one: mtsim run SCENARIO --events --json FILE", file));
  }
  const Json& cases = run.at("cases");
  std::vector<std::int64_t> with_events;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!cases[i].contains("events")) continue;
    with_events.push_back(static_cast<std::int64_t>(i));
    names.push_back(fmt::format("{}: {}", i, cell_text(cases[i])));
  }
  if (with_events.empty())
    throw UsageError(fmt::format("{}: has no events; write it with mtsim run SCENARIO --events --json FILE", file));
  if (!wanted && with_events.size() > 1)
    throw UsageError(fmt::format("{}: give --case N, one of\n  {}", file, joined(names, "\n  ")));
  const std::int64_t index = wanted.value_or(with_events.front());
  if (std::find(with_events.begin(), with_events.end(), index) == with_events.end())
    throw UsageError(fmt::format("{}: case {} has no events or does not exist; there are\n  {}", file, index,
                                 joined(names, "\n  ")));
  return cases[static_cast<std::size_t>(index)];
}

/// The stages a request was in.
std::vector<StageShare> stages_of(const Json& cell, std::int64_t request) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, StageShare> stages;
  for (const Json& event : cell.at("events")) {
    const Json& requests = event.at("requests");
    if (std::find(requests.begin(), requests.end(), request) == requests.end()) continue;
    const std::int64_t pool = event.at("pool"), replica = event.at("replica"), stage = event.at("stage");
    StageShare& its = stages[{pool, replica, stage}];
    its.pool = cell.at("pools").at(static_cast<std::size_t>(pool)).at("name");
    its.pool_index = pool;
    its.replica = replica;
    its.stage = stage;
    ++its.iterations;
    its.kernels_s += event.at("kernels_s").get<double>();
    its.launches_s += event.at("launches_s").get<double>();
    its.all_reduce_s += event.at("all_reduce_s").get<double>();
    const double busy = event.at("kernels_s").get<double>() + event.at("launches_s").get<double>() +
                        event.at("all_reduce_s").get<double>();
    if (busy <= its.slowest_s) continue;
    its.slowest_s = busy;
    its.slowest_batch.clear();
    for (const Json& step : event.at("batch")) its.slowest_batch.push_back({step.at(0), step.at(1)});
  }
  std::vector<StageShare> result;
  for (auto& [where, its] : stages) result.push_back(std::move(its));
  std::stable_sort(result.begin(), result.end(),
                   [](const StageShare& a, const StageShare& b) { return a.busy_s() > b.busy_s(); });
  return result;
}

double share_of(const runtime::OperatorTime& op, sim::CycleClass what) {
  std::int64_t all = 0;
  for (const std::int64_t cycles : op.account) all += cycles;
  return all > 0 ? static_cast<double>(op.account[static_cast<std::size_t>(what)]) / static_cast<double>(all) : 0;
}

}  // namespace

ExplainedRequest explain_request(const Json& run, const std::string& file, std::int64_t request,
                                 std::optional<std::int64_t> wanted) {
  try {
    const Json& cell = find_cell(run, file, wanted);
    const Json& requests = cell.at("requests");
    if (request < 0 || request >= static_cast<std::int64_t>(requests.size()))
      throw UsageError(
          fmt::format("--request {}: {} has requests 0 to {}", request, cell_text(cell), requests.size() - 1));
    const Json& its = requests[static_cast<std::size_t>(request)];
    if (its.contains("rejected"))
      throw UsageError(fmt::format("--request {}: was rejected: {}", request, its.at("rejected").get<std::string>()));
    ExplainedRequest result;
    result.id = request;
    result.prompt_tokens = its.at("prompt");
    result.output_tokens = its.at("output");
    result.preemptions = its.at("preemptions");
    result.cell = cell_text(cell);
    const double arrival = its.at("arrival_s"), prefill = its.at("prefill_start_s"), first = its.at("first_token_s"),
                 finish = its.at("finish_s");
    const double decode = result.output_tokens > 1 ? its.at("decode_start_s").get<double>() : finish;
    result.phases = {prefill - arrival, first - prefill, decode - first, finish - decode};
    result.stages = stages_of(cell, request);
    double busy = 0;
    for (const StageShare& stage : result.stages) busy += stage.busy_s();
    result.waiting_s = result.phases.prefill_s + result.phases.decode_s - busy;
    result.model = cell.at("model");
    const Json& plan = cell.at("plan");
    result.execution = plan.at("execution");
    if (!result.stages.empty())
      result.tp = plan.at(result.stages.front().pool == "prefill" ? "prefill" : "decode").at("tp");
    return result;
  } catch (const Json::exception& error) {
    throw UsageError(fmt::format("{}: is no complete result: {}", file, error.what()));
  }
}

sim::Machine machine_of(const Json& run) {
  const Json& json = run.at("machine");
  sim::Machine machine = sim::Machine::load(json.at("file").get<std::string>());
  for (const auto& [key, number] : json.at("numbers").items()) {
    if (!number.at("overridden").get<bool>()) continue;
    const Json& value = number.at("value");
    machine.set(key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return machine;
}

Bound bound_of(const runtime::OperatorTime& op, const sim::MachineConfig& machine, int lanes_per_word) {
  using sim::CycleClass;
  const double seconds = static_cast<double>(op.cycles) / (machine.core.clock_ghz * 1e9);
  const double ddr = static_cast<double>(op.ddr_bytes) / seconds * 1e-9;
  const double gsm = static_cast<double>(op.gsm_bytes) / seconds * 1e-9;
  CycleClass worst = CycleClass::busy;
  for (int c = 0; c < sim::k_cycle_classes; ++c) {
    const auto its = static_cast<CycleClass>(c);
    if (share_of(op, its) > share_of(op, worst)) worst = its;
  }
  const double ddr_share = ddr / machine.ddr.bandwidth_gb_s, gsm_share = gsm / machine.cluster.gsm_bandwidth_gb_s;
  Bound bound;
  bound.share = share_of(op, worst);
  const std::string where = fmt::format("{} {:.0f} % of the cores' cycles", name(worst), 100 * bound.share);
  // Cores that wait for each other wait for whoever waits for its bytes.
  const bool waits = worst == CycleClass::dma_wait || worst == CycleClass::barrier;
  if (worst == CycleClass::busy) {
    const double peak = machine.peak_gmac_s(lanes_per_word), rate = op.macs / seconds * 1e-9;
    bound.by = op.macs > 0 ? "VMAC" : "microkernel";
    bound.utilisation = rate / peak;
    bound.text = fmt::format("{}; {:.0f} of {:.0f} GMAC/s", where, rate, peak);
  } else if (waits && std::max(ddr_share, gsm_share) > 0) {
    const bool is_ddr = ddr_share >= gsm_share;
    bound.by = is_ddr ? "DMA DDR" : "DMA GSM";
    bound.utilisation = is_ddr ? ddr_share : gsm_share;
    bound.text = fmt::format("{}; {} at {:.1f} of {:g} GB/s", where, is_ddr ? "DDR" : "GSM", is_ddr ? ddr : gsm,
                             is_ddr ? machine.ddr.bandwidth_gb_s : machine.cluster.gsm_bandwidth_gb_s);
  } else {
    bound.by = std::string(name(worst));
    bound.utilisation = ddr_share;
    bound.text = fmt::format("{}; DDR at {:.1f} of {:g} GB/s", where, ddr, machine.ddr.bandwidth_gb_s);
  }
  return bound;
}

std::vector<runtime::OperatorTime> layer_operators(const ExplainedRequest& request, const sim::Machine& machine) {
  if (request.stages.empty()) return {};
  sim::ClusterOptions options;
  options.depth = sim::Depth::timing;
  options.hazards = false;
  sim::Cluster cluster(machine.config(), options);
  runtime::LayerSimulation layer(cluster, machine.config(), models::load_config(request.model), kernels::DType::f16,
                                 runtime::ExecutionPlan::named(request.execution), {});
  std::vector<runtime::OperatorTime> operators = layer.operators(request.tp, request.stages.front().slowest_batch);
  std::erase_if(operators, [](const runtime::OperatorTime& op) { return op.layer < 0; });
  std::stable_sort(operators.begin(), operators.end(),
                   [](const auto& a, const auto& b) { return a.cycles > b.cycles; });
  return operators;
}

}  // namespace mtsim::scenarios
