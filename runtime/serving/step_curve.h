// SPDX-License-Identifier: Apache-2.0
// What a kernel takes as a function of a number of tokens, from as few simulated points as it allows. Such times grow
// in steps, whenever one more row or block of keys begins. Within a step they are linear. From step to step they are
// linear too, but where the plan of a kernel changes: a step between two others is simulated, and where it does not lie
// on their line the half in question is looked into.
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

  struct Options {
    std::int64_t step = 1;  // tokens; the first of a step is one more than a multiple
    std::int64_t most = 0;  // tokens beyond which nothing is simulated
    double tolerance = 0;   // how far points may be off a line, of the value and `base`
    double most_rise =
        1e300;  // of the value and `base`, within a step; where it is more, or negative, no step is a line
  };
  explicit StepCurve(const Options& options) : m_options(options) {}

  /// `exactly`: both ends of the step of `x` are simulated.
  Value at(std::int64_t x, bool exactly, double base, const Function& function);

 private:
  struct Step {
    Value last;  // at its last token
    Value rise;  // up to it from its first token
  };
  Value point(std::int64_t x, const Function& function);
  Step exact_step(std::int64_t step, const Function& function);
  bool is_line(std::int64_t low, std::int64_t high, double base, const Function& function);
  Step step_on_line(std::int64_t step, double base, const Function& function);
  std::int64_t last_of(std::int64_t step) const { return step * m_options.step; }

  Options m_options;
  std::map<std::int64_t, Value> m_points;
};

}  // namespace mtsim::runtime
