// SPDX-License-Identifier: Apache-2.0
// Follows the values of one traced call from register to register, results in flight included. Private to the
// folder.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "isa/program.h"
#include "sim/core/footprint.h"

namespace mtsim::sim {

inline constexpr int k_none = -1;

/// An instruction of the program, with what the walk needs of it looked up once.
struct Step {
  const isa::Row* row = nullptr;
  int index = 0;                 // in its packet
  bool immediate_first = false;  // its first operand is an immediate, hence not among the values
  std::vector<int> values;       // registers its result or stored data is computed from
  std::vector<int> addresses;
  int predicate = k_none;
  struct Result {
    int reg;
    int cycles;
  };
  std::vector<Result> results;  // the low register of a pair first
  int post_modified = k_none;

  bool load() const { return isa::is_load(row->format); }
  bool store() const { return isa::is_store(row->format); }
};

Step step_of(const isa::Instruction& instruction, int index, const isa::Pipeline& pipeline);

/// A run of bytes that a load or store moves between a register and the memory.
struct Piece {
  int part = 0;           // which of the registers, the low one of a pair first
  std::int64_t from = 0;  // byte of the register
  std::int64_t at = 0;    // byte from the access's address
  std::int64_t bytes = 0;
};
const std::vector<Piece>& pieces(const isa::Row& row);

/// Every value a run makes has a number; 0 is what a register held at the call.
using Value = std::uint32_t;

/// Which value a register holds when, with results in flight.
class RegisterFileInTime {
 public:
  Value read(int reg, std::int64_t cycle) {
    State& state = m_states[static_cast<std::size_t>(reg)];
    auto& flying = state.flying;
    if (flying.empty()) return state.value;
    // Of what has landed the latest stays; of one cycle the youngest, which stands last.
    std::int64_t landed = std::numeric_limits<std::int64_t>::min();
    std::size_t kept = 0;
    for (const Flying& result : flying) {
      if (result.lands > cycle) {
        flying[kept++] = result;
      } else if (result.lands >= landed) {
        landed = result.lands;
        state.value = result.value;
      }
    }
    flying.resize(kept);
    return state.value;
  }
  void write(int reg, std::int64_t lands, Value value) {
    m_states[static_cast<std::size_t>(reg)].flying.push_back({lands, value});
  }

 private:
  struct Flying {
    std::int64_t lands;
    Value value;
  };
  struct State {
    Value value = 0;
    std::vector<Flying> flying;
  };
  std::array<State, isa::k_register_count> m_states;
};

/// Calls, for each instruction that issued, `visit(step, access, sources)`; visit returns the number of the result's
/// first value (of a pair the second has the next number). `access` is absent for all but loads and stores that
/// executed; sources: values, then for a predicated result what the register holds without it.
template <class Visitor>
void walk(const DecodedProgram& program, const CallTrace& call, Visitor& visitor) {
  std::vector<std::vector<Step>> packets;
  for (const isa::Packet& packet : program.program().packets) {
    std::vector<Step>& steps = packets.emplace_back();
    for (const isa::Instruction& instruction : packet.instructions) {
      steps.push_back(step_of(instruction, static_cast<int>(steps.size()), program.pipeline()));
    }
    // Loads sample before stores commit.
    std::stable_partition(steps.begin(), steps.end(), [](const Step& step) { return !step.store(); });
  }
  RegisterFileInTime registers;
  std::vector<Value> sources, addresses;
  std::size_t next = 0;
  for (std::size_t issue = 0; issue < call.issues.size(); ++issue) {
    const auto [packet, cycle] = call.issues[issue];
    const std::size_t first = next;
    while (next < call.accesses.size() && call.accesses[next].issue == issue) ++next;
    for (const Step& step : packets[static_cast<std::size_t>(packet)]) {
      const CallTrace::Access* access = nullptr;
      for (std::size_t i = first; i < next; ++i) {
        if (call.accesses[i].instruction == step.index) access = &call.accesses[i];
      }
      sources.clear();
      addresses.clear();
      for (const int reg : step.values) sources.push_back(registers.read(reg, cycle));
      for (const int reg : step.addresses) addresses.push_back(registers.read(reg, cycle));
      if (step.predicate != k_none) {
        const Value predicate = registers.read(step.predicate, cycle);
        visitor.steers(predicate);
        if (!step.addresses.empty() && access == nullptr) continue;  // its predicate did not hold
        if (step.addresses.empty()) {
          for (const auto& result : step.results) sources.push_back(registers.read(result.reg, cycle));
        }
      }
      if (step.row->id == isa::Mnemonic::SBR) {
        for (const Value value : sources) visitor.steers(value);
        continue;
      }
      if (access != nullptr) {
        for (const Value value : addresses) visitor.steers(value);
      }
      if (step.store()) {
        if (access != nullptr) visitor.store(step, *access, sources);
      } else if (!step.results.empty()) {
        const Value value = visitor.result(step, access, sources);
        for (std::size_t i = 0; i < step.results.size(); ++i) {
          registers.write(step.results[i].reg, cycle + step.results[i].cycles, value + static_cast<Value>(i));
        }
      }
      if (step.post_modified != k_none) {
        registers.write(step.post_modified, cycle + 1, visitor.post_modify(addresses));
      }
    }
  }
}

}  // namespace mtsim::sim
