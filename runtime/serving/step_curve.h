// SPDX-License-Identifier: Apache-2.0
// What a kernel takes as a function of a number of tokens, from as few simulated points as it allows. Such times grow
// in steps, whenever one more row or block of keys begins: within a step they are linear, from step to step they are
// linear too, but where the plan of a kernel changes. A point between two others is simulated; where it does not lie on
// their line the half in question is looked into.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>

namespace mtsim::runtime {

class StepCurve {
 public:
  using Value = std::array<double, 2>;  // the first one decides
  using Function = std::function<Value(std::int64_t)>;

  /// A step is `step` tokens, the first of them one more than a multiple. Lines are off by at most `tolerance` of the
  /// value, plus `base`, in their middle. Nothing is simulated beyond `most`.
  StepCurve(std::int64_t step, std::int64_t most, double tolerance)
      : m_step(step), m_most(most), m_tolerance(tolerance) {}

  /// `exactly`: both ends of the step of `x` are simulated.
  Value at(std::int64_t x, bool exactly, double base, const Function& function);

 private:
  Value point(std::int64_t x, const Function& function);
  Value end_of(std::int64_t step, bool is_first, double base, const Function& function);

  std::int64_t m_step, m_most;
  double m_tolerance;
  std::map<std::int64_t, Value> m_points;
};

}  // namespace mtsim::runtime
