// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

using kernels::AttentionVariant;

const std::vector<ExecutionPlan>& plans() {
  static const std::vector<ExecutionPlan> all = {
      {"a0", OperatorLibrary::naive, false, AttentionVariant::unfused, Launches::per_operator},
      {"a1", OperatorLibrary::microcode, false, AttentionVariant::unfused, Launches::per_operator},
      {"a2", OperatorLibrary::microcode, true, AttentionVariant::mt, Launches::per_graph},
  };
  return all;
}

}  // namespace

std::vector<std::string_view> ExecutionPlan::names() {
  std::vector<std::string_view> result;
  for (const ExecutionPlan& plan : plans()) result.emplace_back(plan.name);
  return result;
}

ExecutionPlan ExecutionPlan::named(std::string_view name) {
  for (const ExecutionPlan& plan : plans()) {
    if (plan.name == name) return plan;
  }
  throw RuntimeError(fmt::format("there is no execution plan '{}'; there are {}", name, fmt::join(names(), ", ")));
}

}  // namespace mtsim::runtime
