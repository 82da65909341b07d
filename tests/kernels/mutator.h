// SPDX-License-Identifier: Apache-2.0
// Makes one mistake in what a core asks for, of those a programmer of buffers makes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <vector>

#include "sim/interceptor.h"

namespace mtsim::kernels {

enum class Mistake : std::uint8_t {
  none,
  wait_left_out,
  other_channel_waited,  // for another transfer that is outstanding instead
  other_buffer_filled,   // a transfer to or from another buffer of its kind
  other_buffer_used,     // a kernel on another buffer of its kind
  channel_reused         // a transfer on a channel that is outstanding
};
inline constexpr std::array k_mistakes = {Mistake::wait_left_out, Mistake::other_channel_waited,
                                          Mistake::other_buffer_filled, Mistake::other_buffer_used,
                                          Mistake::channel_reused};
const char* to_string(Mistake mistake);

/// The n-th time that a line of the program could make a mistake, for each buffer it is about: however a program that
/// polls orders its verbs, these come in their order.
struct Chance {
  using Line = std::tuple<const char*, std::uint_least32_t, std::uint_least32_t>;  // file, line, column
  Line line{};
  int which = 0;
  int nth = 0;
  std::string str() const;
};

/// Makes one mistake of one kind on one core. Without a mistake to make it collects the chances.
class Mutator : public sim::Interceptor {
 public:
  explicit Mutator(int core, Mistake mistake = Mistake::none, Chance chance = {})
      : m_core(core), m_mistake(mistake), m_chance(chance) {}

  bool made() const { return m_made; }
  /// Which chances to try. Of each line, each line the core came from (helpers are called from several places) and each
  /// buffer: the first two, when the buffers fill, one in the middle and the last, when they drain.
  std::vector<Chance> sample(Mistake mistake) const;

  void allocated(const Caller& caller, sim::Pointer pointer, std::int64_t bytes) override;
  bool wait(const Caller& caller, int& channel, Outstanding outstanding) override;
  void transfer(const Caller& caller, sim::Move& move) override;
  void channel(const Caller& caller, int& channel, Outstanding outstanding) override;
  void call(const Caller& caller, std::span<sim::Argument> arguments) override;

 private:
  /// Buffers of one kind: allocated one after the other by the same line, of one size, next to each other.
  struct Kind {
    std::source_location from;
    sim::Pointer first;
    std::int64_t bytes = 0, pitch = 0, count = 0;
  };
  struct Sibling {
    sim::Pointer pointer;
    int buffer = 0;  // number of the one it stands for, over all kinds
  };
  using Line = Chance::Line;
  using Place = std::tuple<Line, int, Line>;  // line, which, the line of the verb before

  bool now(Mistake mistake, const Caller& caller, int which);
  std::optional<Sibling> sibling(sim::Pointer pointer) const;
  void passed(const Caller& caller) { m_before = line(caller); }
  static Line line(const Caller& caller) { return {caller.from.file_name(), caller.from.line(), caller.from.column()}; }

  const int m_core;
  const Mistake m_mistake;
  const Chance m_chance;
  bool m_made = false;
  std::vector<Kind> m_kinds;
  Line m_before{};
  std::map<std::tuple<Mistake, Line, int>, int> m_chances;  // so far
  std::map<Mistake, std::map<Place, std::vector<int>>> m_places;
};

}  // namespace mtsim::kernels
