// SPDX-License-Identifier: Apache-2.0
// Which results of a call depend on input that holds no value: the lanes of semantics.inc, with two bytes, the smallest
// lane, as the unit. A set bit of a mask is a unit without a value.
#include <algorithm>
#include <type_traits>
#include <unordered_map>

#include "sim/core/dataflow.h"

namespace mtsim::sim {
namespace {

#include "isa/semantics.inc"

using isa::Format;

constexpr std::int64_t k_unit = 2;   // bytes
constexpr int k_units_per_lane = 4;  // of a 64-bit lane
constexpr u64 k_lane_mask = 0xF;
using Words = u64 (*)(u64, u64, u64);  // a function on 64-bit lanes

/// The 64-bit lane whose bits are set in the units of `mask`, and back.
u64 spread(u64 mask) {
  u64 bits = 0;
  for (int unit = 0; unit < k_units_per_lane; ++unit) bits |= (mask >> unit & 1) * (u64{0xFFFF} << (16 * unit));
  return bits;
}
u64 gather(u64 bits) {
  u64 mask = 0;
  for (int unit = 0; unit < k_units_per_lane; ++unit) mask |= u64{(bits >> (16 * unit) & 0xFFFF) != 0} << unit;
  return mask;
}

/// What an instruction does to masks.
struct Lanes {
  int bytes = 8;          // a lane of the result needs the whole lane of every source
  Words moves = nullptr;  // it only moves bits, of a mask like of a value
  int half = -1;          // takes half `half` of the first sources' lanes into its words
  u64 (*join)(u64, u64) = nullptr;
};

template <class Sem>
u64 on_words(u64 a, u64 b, u64 c) {
  if constexpr (requires { Sem::apply(a, b, c); }) {
    return Sem::apply(a, b, c);
  } else if constexpr (requires { Sem::apply(a, b); }) {
    return Sem::apply(a, b);
  } else {
    return Sem::apply(a);
  }
}

/// An instruction that gives, for `or`ed operands, its `or`ed results does nothing but move bits.
bool only_moves(Words f) {
  u64 state = 1;
  const auto random = [&state] {
    return state = state * 6364136223846793005u + 1442695040888963407u, state ^ state >> 29;
  };
  for (int i = 0; i < 256; ++i) {
    u64 x[3], y[3];
    for (int source = 0; source < 3; ++source) {
      x[source] = random() & random();
      y[source] = random() & random();
    }
    if (f(x[0] | y[0], x[1] | y[1], x[2] | y[2]) != (f(x[0], x[1], x[2]) | f(y[0], y[1], y[2]))) return false;
  }
  return f(0, 0, 0) == 0;
}

template <class Sem>
Lanes lanes_of_semantics() {
  Lanes lanes;
  if constexpr (requires { Sem::half; }) {
    lanes.half = Sem::half;
  } else if constexpr (requires { Sem::join(u64{}, u64{}); }) {
    lanes.join = Sem::join;
  } else if constexpr (requires { typename Sem::lane; }) {
    lanes.bytes = sizeof(typename Sem::lane);
    if constexpr (std::is_same_v<typename Sem::lane, u64>) {
      if (only_moves(on_words<Sem>)) lanes.moves = on_words<Sem>;
    }
  }
  return lanes;
}

const Lanes& lanes_of(isa::Mnemonic mnemonic) {
  static const std::vector<Lanes> k_all = {
#define ROW(mnemonic, units, format, cycles, name, ...) lanes_of_semantics<semantics::name>(),
#include "isa/instructions.def"
#undef ROW
  };
  return k_all[static_cast<std::size_t>(mnemonic)];
}

class Undefinedness {
 public:
  explicit Undefinedness(std::span<const std::vector<ByteRange>> input) : m_input(input) { m_masks.push_back(0); }

  void steers(Value) {}
  void store(const Step& step, const CallTrace::Access& access, const std::vector<Value>& sources) {
    for (const Piece& piece : pieces(*step.row)) {
      const u64 mask = m_masks[sources[static_cast<std::size_t>(piece.part)]];
      for (std::int64_t b = 0; b < piece.bytes; b += k_unit) {
        m_stored[unit(access.pointer, access.offset + piece.at + b)] = (mask >> ((piece.from + b) / k_unit) & 1) != 0;
      }
    }
  }
  Value result(const Step& step, const CallTrace::Access* access, const std::vector<Value>& sources) {
    const auto value = static_cast<Value>(m_masks.size());
    m_masks.resize(m_masks.size() + step.results.size(), 0);
    if (access != nullptr) {
      for (const Piece& piece : pieces(*step.row)) {
        for (std::int64_t b = 0; b < piece.bytes; b += k_unit) {
          if (!undefined(access->pointer, access->offset + piece.at + b)) continue;
          m_masks[value + static_cast<Value>(piece.part)] |= u64{1} << ((piece.from + b) / k_unit);
        }
      }
      return value;
    }
    for (std::size_t part = 0; part < step.results.size(); ++part) m_masks[value + part] = compute(step, sources, part);
    return value;
  }
  Value post_modify(const std::vector<Value>&) { return 0; }

  std::vector<std::vector<ByteRange>> finish() {
    std::vector<std::vector<ByteRange>> result(m_input.size());
    for (const auto& [key, is_undefined] : m_stored) {
      if (!is_undefined) continue;
      const std::int64_t offset = static_cast<std::int64_t>(key << k_pointer_bits) >> k_pointer_bits;
      result[key >> (64 - k_pointer_bits)].push_back({offset * k_unit, (offset + 1) * k_unit});
    }
    for (auto& ranges : result) merge(ranges);
    return result;
  }

 private:
  static constexpr int k_pointer_bits = 8;
  static u64 unit(u64 pointer, std::int64_t offset) {
    const auto at = static_cast<u64>(offset >> 1);
    return pointer << (64 - k_pointer_bits) | (at << k_pointer_bits >> k_pointer_bits);
  }

  bool undefined(std::uint16_t pointer, std::int64_t at) const {
    if (const auto stored = m_stored.find(unit(pointer, at)); stored != m_stored.end()) return stored->second;
    const auto& ranges = m_input[pointer];
    const auto range = std::upper_bound(ranges.begin(), ranges.end(), at,
                                        [](std::int64_t a, const ByteRange& r) { return a < r.end; });
    return range != ranges.end() && range->first < at + k_unit;
  }

  u64 compute(const Step& step, const std::vector<Value>& sources, std::size_t part) const {
    u64 any = 0;
    for (const Value value : sources) any |= m_masks[value];
    if (any == 0) return 0;
    const Lanes& lanes = lanes_of(step.row->id);
    switch (step.row->format) {
      case Format::SV: return splat(m_masks[sources[0]]);
      case Format::SSVV: return splat(m_masks[sources[part]]);
      case Format::VC: return m_masks[sources[0]] >> (k_units_per_lane * part) & k_lane_mask;
      default: break;
    }
    if (step.predicate != k_none) return whole_lanes(any, 8);  // whether it is written may be what lacks a value
    u64 mask = 0;
    for (int lane = 0; lane < isa::k_vector_lanes; ++lane) {
      const int at = lane * k_units_per_lane;
      mask |= (lane_of(lanes, step, sources, at) & k_lane_mask) << at;
    }
    return lanes.moves == nullptr && lanes.half < 0 && lanes.join == nullptr ? whole_lanes(mask, lanes.bytes) : mask;
  }

  static u64 splat(u64 scalar) {
    u64 all = 0;
    for (int lane = 0; lane < isa::k_vector_lanes; ++lane) all |= (scalar & k_lane_mask) << (lane * k_units_per_lane);
    return all;
  }
  static u64 whole_lanes(u64 mask, int bytes) {
    const int units = std::max(bytes / static_cast<int>(k_unit), 1);
    const u64 lane = (u64{1} << units) - 1;
    u64 all = 0;
    for (int u = 0; u < 64; u += units) {
      if ((mask >> u & lane) != 0) all |= lane << u;
    }
    return all;
  }
  /// The lane whose units begin at `at`.
  u64 lane_of(const Lanes& lanes, const Step& step, const std::vector<Value>& sources, int at) const {
    const auto source = [&](std::size_t i) { return m_masks[sources[i]] >> at & k_lane_mask; };
    if (lanes.moves != nullptr) {
      u64 operand[3] = {};
      const std::size_t first = step.immediate_first ? 1 : 0;  // it has all its bits
      for (std::size_t i = 0; i < sources.size(); ++i) operand[first + i] = spread(source(i));
      return gather(lanes.moves(operand[0], operand[1], operand[2]));
    }
    if (lanes.join != nullptr) {  // each word of a source makes one half
      const auto halves = [](u64 mask) {
        return u64{(mask & 0x3) != 0} * 0xFFFF | u64{(mask & 0xC) != 0} * 0xFFFF'0000'0000;
      };
      return gather(lanes.join(halves(source(0)), halves(source(1))));
    }
    u64 mask = 0;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const bool halved = lanes.half >= 0 && (sources.size() == 1 || i < 2);
      if (!halved) {
        mask |= lanes.half >= 0 ? whole_lanes(source(i), 4) : source(i);
        continue;
      }
      const u64 taken = source(i) >> (2 * lanes.half);
      mask |= (taken & 1) * 0x3 | (taken >> 1 & 1) * 0xC;
    }
    return mask;
  }

  std::span<const std::vector<ByteRange>> m_input;
  std::vector<u64> m_masks;                // by value
  std::unordered_map<u64, bool> m_stored;  // by unit: true without a value
};

}  // namespace

std::vector<std::vector<ByteRange>> propagate(const DecodedProgram& program, const CallTrace& call,
                                              std::span<const std::vector<ByteRange>> undefined) {
  Undefinedness undefinedness(undefined);
  walk(program, call, undefinedness);
  return undefinedness.finish();
}

}  // namespace mtsim::sim
