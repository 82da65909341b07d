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
  const std::int64_t step = (x + m_step - 1) / m_step, first = (step - 1) * m_step + 1;
  const std::int64_t last = std::min(step * m_step, std::max(m_most, x));
  if (exactly || last != step * m_step) {
    const Value begin = point(first, function);
    return first == last ? begin : line(begin, point(last, function), share_of(x, first, last));
  }
  const Value begin = end_of(step, true, base, function), end = end_of(step, false, base, function);
  return line(begin, end, m_step == 1 ? 0 : share_of(x, first, last));
}

/// The value at the first or last x of a step, between steps of which it is known.
StepCurve::Value StepCurve::end_of(std::int64_t step, bool is_first, double base, const Function& function) {
  const auto value = [&](std::int64_t of) { return point(is_first ? (of - 1) * m_step + 1 : of * m_step, function); };
  std::int64_t low = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(step)));
  std::int64_t high = std::max(std::min(2 * low, m_most / m_step), step);
  while (low < step && step < high) {
    const std::int64_t middle = (low + high) / 2;
    const Value at_low = value(low), at_high = value(high), at_middle = value(middle);
    const Value expected = line(at_low, at_high, share_of(middle, low, high));
    const bool is_line = std::abs(expected[0] - at_middle[0]) <= m_tolerance * (at_middle[0] + base);
    const bool is_lower = step < middle;
    if (step == middle) return at_middle;
    if (is_line) {
      return is_lower ? line(at_low, at_middle, share_of(step, low, middle))
                      : line(at_middle, at_high, share_of(step, middle, high));
    }
    (is_lower ? high : low) = middle;
  }
  return value(step);
}

}  // namespace mtsim::runtime
