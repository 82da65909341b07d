// SPDX-License-Identifier: Apache-2.0
// Layer times of a planner: asked for powers of two of the micro-batch, linear between them, so that a search over
// hundreds of thousands of points asks the simulator a few dozen times.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "runtime/planner/equations.h"

namespace mtsim::runtime {

class InterpolatedCost {
 public:
  /// Prefills of so many tokens; decoded requests with so many in their cache.
  InterpolatedCost(IterationCost& cost, std::int64_t prompt, std::int64_t context)
      : m_cost(cost), m_prompt(prompt), m_context(context) {}

  LayerTime prefill(std::int64_t tp, std::int64_t requests) { return at({tp, requests}, {m_prompt, 0}, m_prefill); }
  LayerTime decode(std::int64_t tp, std::int64_t requests) { return at({tp, requests}, {1, m_context}, m_decode); }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;  // TP, requests
  LayerTime at(const Key& key, const models::SequenceStep& step, std::map<Key, LayerTime>& known);

  IterationCost& m_cost;
  std::int64_t m_prompt, m_context;
  std::map<Key, LayerTime> m_prefill, m_decode;
};

}  // namespace mtsim::runtime
