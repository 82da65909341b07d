// SPDX-License-Identifier: Apache-2.0
#include "sim/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace mtsim::sim {

bool Barrier::arrive(int id, int group_size) {
  if (++m_arrived[id] < group_size) return false;
  m_arrived[id] = 0;
  return true;
}

void Barrier::clear() { std::fill(std::begin(m_arrived), std::end(m_arrived), 0); }

std::string BroadcastMeeting::disagreement(const Arrival& arrival) const {
  if (m_arrivals.empty()) return "";
  const Arrival& other = m_arrivals.front();
  const auto complaint = [&](const char* what, const std::string& first, const std::string& second) {
    return fmt::format(
        "core {} and core {} disagree on the {}: {} and {}; every core of the launch must call it with the same "
        "source, bytes and barrier id",
        other.ref.core, arrival.ref.core, what, first, second);
  };
  if (other.barrier_id != arrival.barrier_id) {
    return complaint("barrier id", std::to_string(other.barrier_id), std::to_string(arrival.barrier_id));
  }
  if (other.source != arrival.source) return complaint("source", other.source.str(), arrival.source.str());
  const auto text = [](const Rows& r) { return fmt::format("{} rows of {} bytes, step {}", r.count, r.bytes, r.step); };
  const Rows &a = other.source_rows, &b = arrival.source_rows;
  if (a.count != b.count || a.bytes != b.bytes || a.step != b.step) return complaint("bytes", text(a), text(b));
  return "";
}

bool BroadcastMeeting::arrive(const Arrival& arrival, int group_size) {
  m_arrivals.push_back(arrival);
  return static_cast<int>(m_arrivals.size()) == group_size;
}

std::vector<BroadcastMeeting::Arrival> BroadcastMeeting::take() {
  std::vector<Arrival> arrivals;
  arrivals.swap(m_arrivals);
  std::sort(arrivals.begin(), arrivals.end(),
            [](const Arrival& a, const Arrival& b) { return a.ref.core < b.ref.core; });
  return arrivals;
}

std::vector<ChannelRef> RowSync::join(std::uint64_t mask, ChannelRef ref) {
  auto group = std::find_if(m_groups.begin(), m_groups.end(), [&](const Group& g) { return g.mask == mask; });
  if (group == m_groups.end()) group = m_groups.insert(group, {mask, std::vector<std::deque<int>>(64)});
  group->channels[ref.core].push_back(ref.channel);
  std::vector<ChannelRef> complete;
  for (std::uint64_t left = mask; left != 0; left &= left - 1) {
    const int core = std::countr_zero(left);
    if (group->channels[core].empty()) return {};
    complete.push_back({core, group->channels[core].front()});
  }
  for (const ChannelRef& member : complete) group->channels[member.core].pop_front();
  return complete;
}

std::string RowSync::missing(std::uint64_t mask) const {
  std::string cores;
  for (const Group& group : m_groups) {
    if (group.mask != mask) continue;
    for (std::uint64_t left = mask; left != 0; left &= left - 1) {
      const int core = std::countr_zero(left);
      if (group.channels[core].empty()) cores += fmt::format("{}core {}", cores.empty() ? "" : ", ", core);
    }
  }
  return cores;
}

}  // namespace mtsim::sim
