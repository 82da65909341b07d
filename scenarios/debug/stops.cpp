// SPDX-License-Identifier: Apache-2.0
#include "scenarios/debug/stops.h"

#include <algorithm>

namespace mtsim::scenarios {

const Stop& Stops::add(Stop stop) {
  stop.number = m_next++;
  return m_stops.emplace_back(std::move(stop));
}

bool Stops::remove(int number) {
  return std::erase_if(m_stops, [&](const Stop& stop) { return stop.number == number; }) > 0;
}

bool Stops::breaks_at(int packet) const {
  return std::any_of(m_stops.begin(), m_stops.end(), [&](const Stop& stop) { return stop.packets.contains(packet); });
}

StopWatch::StopWatch(const Stops& stops, const sim::Stepper& stepper)
    : m_stops(stops), m_stepper(stepper), m_cycle(stepper.cycle()) {
  for (const Stop& stop : stops.all()) {
    auto& bytes = m_watched.emplace_back();
    if (stop.kind == Stop::Kind::watch) bytes = bytes_at(stop.watched, stepper);
  }
}

std::vector<StopWatch::Hit> StopWatch::hits(const sim::Stepper::Change& change) const {
  std::vector<Hit> hits;
  const std::int64_t cycle = m_stepper.cycle();
  for (std::size_t i = 0; i < m_stops.all().size(); ++i) {
    const Stop& stop = m_stops.all()[i];
    switch (stop.kind) {
      case Stop::Kind::packet:
        if (!m_stepper.ended() && stop.packets.contains(m_stepper.packet())) hits.push_back({&stop, {}, {}});
        break;
      case Stop::Kind::cycle:
        // An SNOP may pass over it: forwards one stops behind that, backwards in front of it.
        if (m_cycle < cycle ? m_cycle < stop.cycle && stop.cycle <= cycle
                            : cycle <= stop.cycle && stop.cycle < m_cycle) {
          hits.push_back({&stop, {}, {}});
        }
        break;
      case Stop::Kind::watch: {
        auto after = bytes_at(stop.watched, m_stepper);
        if (after != m_watched[i]) hits.push_back({&stop, m_watched[i], std::move(after)});
        break;
      }
      case Stop::Kind::old_read:
        if (!change.old_reads.empty() && by_hand(m_stepper.program(), change.packet)) hits.push_back({&stop, {}, {}});
        break;
    }
  }
  return hits;
}

bool by_hand(const isa::Program& program, int packet) { return program.linear_at(packet) < 0; }

}  // namespace mtsim::scenarios
