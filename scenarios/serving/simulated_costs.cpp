// SPDX-License-Identifier: Apache-2.0
#include "scenarios/serving/simulated_costs.h"

#include <map>
#include <utility>

#include "runtime/serving/simulated_cost.h"
#include "sim/cluster.h"

namespace mtsim::scenarios {
namespace {

class SimulatedCosts final : public ServingCosts {
 public:
  explicit SimulatedCosts(const sim::Machine& machine)
      : m_machine(machine), m_cluster(machine.config(), {.depth = sim::Depth::timing, .hazards = false}) {}

  runtime::IterationCost& of(const models::LlamaConfig& config, const runtime::ExecutionPlan& execution) override {
    auto& cost = m_costs[{config.name, execution.name}];
    if (!cost) {
      runtime::SimulatedCostOptions options;
      options.plan = execution;
      cost = std::make_unique<runtime::SimulatedCost>(m_cluster, m_machine, config, options);
    }
    return *cost;
  }
  void set_between(const sim::Machine& machine) override {
    m_costs.clear();
    m_machine = machine;
  }
  std::int64_t clusters_per_device() const override { return m_machine.config().device.clusters; }

  runtime::InterpolationError error() const override {
    runtime::InterpolationError worst;
    for (const auto& [what, cost] : m_costs) {
      if (const runtime::InterpolationError its = cost->error(); its.worst_percent >= worst.worst_percent) worst = its;
    }
    return worst;
  }

 private:
  sim::Machine m_machine;
  sim::Cluster m_cluster;
  std::map<std::pair<std::string, std::string>, std::unique_ptr<runtime::SimulatedCost>> m_costs;
};

}  // namespace

std::unique_ptr<ServingCosts> simulated_costs(const sim::Machine& machine) {
  return std::make_unique<SimulatedCosts>(machine);
}

}  // namespace mtsim::scenarios
