// SPDX-License-Identifier: Apache-2.0
// Events in the order of their time, those of the same time in the order in which they were made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace mtsim::runtime {

class EventClock {
 public:
  using Action = std::function<void()>;

  double now() const { return m_now; }  // seconds
  /// `time` is not before now().
  void at(double time, Action action) {
    m_events.push_back({std::max(time, m_now), m_made++, std::move(action)});
    std::push_heap(m_events.begin(), m_events.end(), is_later);
  }
  /// Until there are none. `settle` runs when all events of a time have happened, and may make more of that time.
  void run(const Action& settle) {
    while (!m_events.empty()) {
      m_now = m_events.front().time;
      while (!m_events.empty() && m_events.front().time == m_now) {
        std::pop_heap(m_events.begin(), m_events.end(), is_later);
        const Action action = std::move(m_events.back().action);
        m_events.pop_back();
        action();
      }
      settle();
    }
  }

 private:
  struct Event {
    double time;
    std::uint64_t made;
    Action action;
  };
  static bool is_later(const Event& a, const Event& b) { return std::pair(a.time, a.made) > std::pair(b.time, b.made); }

  double m_now = 0;
  std::uint64_t m_made = 0;
  std::vector<Event> m_events;  // a heap, the next one in front
};

}  // namespace mtsim::runtime
