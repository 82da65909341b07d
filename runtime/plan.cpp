// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <set>

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

constexpr std::int64_t k_most_clusters = 1 << 16;

std::int64_t parse_degree(std::string_view word) {
  const std::string_view digits = word.substr(3);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 1 || value > k_most_clusters)
    throw RuntimeError(fmt::format("plan: '{}': a number from 1 to {}", word, k_most_clusters));
  return value;
}

}  // namespace

std::string Parallelism::str() const { return fmt::format("tp={},pp={}", tp, pp); }

InferencePlan InferencePlan::parse(std::string_view text) {
  InferencePlan plan;
  std::set<std::string_view> seen;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = text.substr(at, end - at);
    const bool is_degree = word.starts_with("tp=") || word.starts_with("pp=");
    if (!seen.insert(is_degree ? word.substr(0, 2) : "name").second)
      throw RuntimeError(fmt::format("plan '{}': '{}' says again what was said before", text, word));
    if (word.starts_with("tp="))
      plan.parallelism.tp = parse_degree(word);
    else if (word.starts_with("pp="))
      plan.parallelism.pp = parse_degree(word);
    else
      plan.execution = ExecutionPlan::named(word);
    at = end + 1;
  }
  return plan;
}

std::vector<std::string_view> ExecutionPlan::names() {
  std::vector<std::string_view> result;
  for (const ExecutionPlan& plan : plans()) result.emplace_back(plan.name);
  return result;
}

ExecutionPlan ExecutionPlan::named(std::string_view name) {
  for (const ExecutionPlan& plan : plans()) {
    if (plan.name == name) return plan;
  }
  throw RuntimeError(fmt::format("there is no execution plan '{}'; there are {}, and tp=N and pp=N for more clusters",
                                 name, fmt::join(names(), ", ")));
}

}  // namespace mtsim::runtime
