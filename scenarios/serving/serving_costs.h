// SPDX-License-Identifier: Apache-2.0
// Where serving scenarios and the planner get the cost of iterations from: simulated clusters, or in tests a formula.
#pragma once

#include <functional>
#include <memory>

#include "models/config.h"
#include "runtime/plan.h"
#include "runtime/serving/iteration_cost.h"
#include "runtime/serving/simulated_cost.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

class ServingCosts {
 public:
  virtual ~ServingCosts() = default;
  /// Of a model under an execution plan; good until set_between().
  virtual runtime::IterationCost& of(const models::LlamaConfig& config, const runtime::ExecutionPlan& execution) = 0;
  /// Links and hosts are this machine's from now on. What the clusters take is known already and stays.
  virtual void set_between(const sim::Machine& machine) = 0;
  virtual std::int64_t clusters_per_device() const = 0;
  /// How far off interpolated times were, of those that were looked at.
  virtual runtime::InterpolationError error() const { return {}; }
};

using MakeServingCosts = std::function<std::unique_ptr<ServingCosts>(const sim::Machine& machine)>;

}  // namespace mtsim::scenarios
