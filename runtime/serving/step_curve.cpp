// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/step_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace mtsim::runtime {
namespace {

StepCurve::Value line(const StepCurve::Value& a, const StepCurve::Value& b, double share) {
  return {a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share};
}

double share_of(std::int64_t x, std::int64_t from, std::int64_t to) {
  return static_cast<double>(x - from) / static_cast<double>(to - from);
}

}  // namespace

StepCurve::Value StepCurve::point(std::int64_t x, const Function& function) {
  const auto known = m_points.find(x);
  if (known != m_points.end()) return known->second;
  return m_points[x] = function(x);
}

StepCurve::Value StepCurve::at(std::int64_t x, bool exactly, double base, const Function& function) {
  const auto known = m_points.find(x);
  if (known != m_points.end()) return known->second;
  const std::int64_t step = (x + m_options.step - 1) / m_options.step, last = last_of(step);
  if (last > m_options.most) return point(x, function);  // the step that is cut off
  const Step its = exactly ? exact_step(step, function) : step_on_line(step, base, function);
  if (its.rise[0] < 0 || its.rise[0] > m_options.most_rise * (its.last[0] + base)) return point(x, function);
  const double below = m_options.step > 1 ? share_of(x, last, last - m_options.step + 1) : 0;
  return {its.last[0] - below * its.rise[0], its.last[1] - below * its.rise[1]};
}

StepCurve::Step StepCurve::exact_step(std::int64_t step, const Function& function) {
  const Value last = point(last_of(step), function), first = point(last_of(step) - m_options.step + 1, function);
  return {last, {last[0] - first[0], last[1] - first[1]}};
}

/// Three steps between the two are looked at.
bool StepCurve::is_line(std::int64_t low, std::int64_t high, double base, const Function& function) {
  const Value at_low = point(last_of(low), function), at_high = point(last_of(high), function);
  const std::int64_t middle = (low + high) / 2;
  for (const std::int64_t between : {middle, (low + middle) / 2, (middle + high) / 2}) {
    const Value expected = line(at_low, at_high, share_of(between, low, high)), its = point(last_of(between), function);
    if (std::abs(expected[0] - its[0]) > m_options.tolerance * (its[0] + base)) return false;
  }
  return true;
}

/// Between steps that are powers of two, or halves of what lies between such. Steps of one line rise as its middle one.
StepCurve::Step StepCurve::step_on_line(std::int64_t step, double base, const Function& function) {
  auto low = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(step)));
  std::int64_t high = std::min(2 * low, m_options.most / m_options.step);
  while (low < step && step < high) {
    const std::int64_t middle = (low + high) / 2;
    if (step == middle) break;
    if (is_line(low, high, base, function)) {
      const Value from = point(last_of(low), function), to = point(last_of(high), function);
      return {line(from, to, share_of(step, low, high)), exact_step(middle, function).rise};
    }
    (step < middle ? high : low) = middle;
  }
  return exact_step(step, function);
}

}  // namespace mtsim::runtime
