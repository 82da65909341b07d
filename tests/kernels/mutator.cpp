// SPDX-License-Identifier: Apache-2.0
#include "mutator.h"

#include <fmt/format.h>

#include <set>

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_alignment = 256;  // of the mallocs of a core

/// Another channel that is outstanding: the next one above `channel`, or the lowest.
std::optional<int> other_outstanding(int channel, sim::Interceptor::Outstanding outstanding) {
  outstanding &= ~(std::uint64_t{1} << channel);
  if (outstanding == 0) return std::nullopt;
  const std::uint64_t above = outstanding >> channel << channel;
  return __builtin_ctzll(above != 0 ? above : outstanding);
}

}  // namespace

const char* to_string(Mistake mistake) {
  switch (mistake) {
    case Mistake::none: return "none";
    case Mistake::wait_left_out: return "wait left out";
    case Mistake::other_channel_waited: return "wait for another channel";
    case Mistake::other_buffer_filled: return "transfer of another buffer";
    case Mistake::other_buffer_used: return "kernel on another buffer";
    case Mistake::channel_reused: return "channel reused";
  }
  return "";
}

std::string Chance::str() const {
  return fmt::format("{}:{}:{}, {} #{}", std::get<0>(line), std::get<1>(line), std::get<2>(line), which, nth);
}

std::vector<Chance> Mutator::sample(Mistake mistake) const {
  std::vector<Chance> chosen;
  const auto places = m_places.find(mistake);
  if (places == m_places.end()) return {};
  for (const auto& [place, chances] : places->second) {
    for (const int nth :
         std::set{chances.front(), chances[chances.size() > 1 ? 1 : 0], chances[chances.size() / 2], chances.back()}) {
      chosen.push_back({std::get<0>(place), std::get<1>(place), nth});
    }
  }
  return chosen;
}

void Mutator::allocated(const Caller& caller, sim::Pointer pointer, std::int64_t bytes) {
  if (caller.core != m_core) return;
  const std::int64_t pitch = (bytes + k_alignment - 1) / k_alignment * k_alignment;
  if (!m_kinds.empty()) {
    Kind& last = m_kinds.back();
    if (last.first + last.count * last.pitch == pointer && last.bytes == bytes &&
        line(caller) == line({m_core, last.from})) {
      ++last.count;
      return;
    }
  }
  m_kinds.push_back({caller.from, pointer, bytes, pitch, 1});
}

bool Mutator::wait(const Caller& caller, int& channel, Outstanding outstanding) {
  if (caller.core != m_core) return true;
  bool made = true;
  if ((outstanding >> channel & 1) != 0) {  // a wait for nothing is no chance
    made = !now(Mistake::wait_left_out, caller, 0);
    if (const auto other = other_outstanding(channel, outstanding);
        other && now(Mistake::other_channel_waited, caller, 0)) {
      channel = *other;
    }
  }
  passed(caller);
  return made;
}

void Mutator::transfer(const Caller& caller, sim::Move& move) {
  if (caller.core != m_core) return;
  for (sim::Pointer* side : {&move.source, &move.destination}) {
    const auto other = sibling(*side);
    if (other && now(Mistake::other_buffer_filled, caller, other->buffer)) *side = other->pointer;
  }
}

void Mutator::channel(const Caller& caller, int& channel, Outstanding outstanding) {
  if (caller.core != m_core) return;
  if (const auto other = other_outstanding(channel, outstanding); other && now(Mistake::channel_reused, caller, 0)) {
    channel = *other;
  }
  passed(caller);
}

void Mutator::call(const Caller& caller, std::span<sim::Argument> arguments) {
  if (caller.core != m_core) return;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].is_pointer) continue;
    const auto other = sibling(arguments[i].pointer);
    // By parameter too: an operand in place is given as input and output.
    if (other && now(Mistake::other_buffer_used, caller, other->buffer + 100 * static_cast<int>(i))) {
      arguments[i].pointer = other->pointer;
    }
  }
  passed(caller);
}

bool Mutator::now(Mistake mistake, const Caller& caller, int which) {
  const int nth = m_chances[{mistake, line(caller), which}]++;
  if (m_mistake == Mistake::none) m_places[mistake][{line(caller), which, m_before}].push_back(nth);
  if (mistake != m_mistake || line(caller) != m_chance.line || which != m_chance.which || nth != m_chance.nth) {
    return false;
  }
  m_made = true;
  return true;
}

std::optional<Mutator::Sibling> Mutator::sibling(sim::Pointer pointer) const {
  int buffers = 0;  // of the kinds before
  for (const Kind& kind : m_kinds) {
    if (kind.first.space == pointer.space && kind.first.core == pointer.core && kind.count > 1) {
      const std::int64_t behind =
          static_cast<std::int64_t>(pointer.offset) - static_cast<std::int64_t>(kind.first.offset);
      const std::int64_t index = behind / kind.pitch;
      if (behind >= 0 && index < kind.count) {
        return Sibling{pointer + ((index + 1) % kind.count - index) * kind.pitch, buffers + static_cast<int>(index)};
      }
    }
    buffers += static_cast<int>(kind.count);
  }
  return std::nullopt;
}

}  // namespace mtsim::kernels
