// SPDX-License-Identifier: Apache-2.0
// The proofs behind the memo of the timing depth: no branch, and no address, of the program can depend on data.
#include <fmt/format.h>

#include <array>
#include <limits>
#include <optional>
#include <set>

#include "isa/analysis.h"
#include "isa/checker.h"
#include "isa/control_flow.h"

namespace mtsim::isa {
namespace {

// What must not depend on data: branch conditions, or the addresses of loads and stores.
enum class Sink : std::uint8_t { branches, addresses };

// Flow-insensitive: a register is tainted when any of its writes is, or when a caller's value of the wrong kind can
// reach a read that matters. Only registers that can influence a sink are looked at (the slice).
class TaintAnalysis {
 public:
  TaintAnalysis(const Program& program, Sink sink)
      : m_program(program), m_sink(sink), m_flow(program, program.scheduled_for, default_entries(program)) {}

  std::optional<std::string> find_dependence() {
    if (m_sink == Sink::branches) {
      if (auto found = register_branch()) return found;
    }
    build_slice();
    seed();
    propagate();
    return tainted_sink();
  }

 private:
  template <typename F>
  void for_each_instruction(const F& f) const {
    for (std::size_t p = 0; p < m_program.packets.size(); ++p) {
      for (const Instruction& instruction : m_program.packets[p].instructions) f(static_cast<int>(p), instruction);
    }
  }

  // What the value of `write` is computed from: for a load nothing but its predicate matters, it is data.
  static std::vector<Register> sources(const Instruction& instruction, const Write& write) {
    std::vector<Register> all;
    if (write.post_modify) {
      for (const Operand& operand : instruction.operands) {
        if (const auto* memory = std::get_if<MemoryOperand>(&operand)) {
          all.push_back(memory->base);
          if (memory->offset) all.push_back(*memory->offset);
        }
      }
      if (instruction.predicate) all.push_back(instruction.predicate->reg);
      return all;
    }
    if (!is_load(instruction.row->format)) return reads(instruction);
    if (instruction.predicate) all.push_back(instruction.predicate->reg);
    return all;
  }

  // The registers of the instruction that must not depend on data.
  std::vector<Register> sink_reads(const Instruction& instruction) const {
    std::vector<Register> all;
    const bool memory = is_memory(instruction.row->format);
    if (m_sink == Sink::branches ? instruction.row->id != Mnemonic::SBR : !memory) return all;
    if (instruction.predicate) all.push_back(instruction.predicate->reg);
    for (const Operand& operand : instruction.operands) {
      const auto* address = std::get_if<MemoryOperand>(&operand);
      if (address == nullptr) continue;
      all.push_back(address->base);
      if (address->offset) all.push_back(*address->offset);
    }
    return all;
  }

  bool may_steer(ParameterKind kind) const {
    return kind == ParameterKind::count || (m_sink == Sink::addresses && kind != ParameterKind::value);
  }

  // A vector's lane is data whatever was put into it: a run without data has no vectors.
  static bool is_data(const Instruction& instruction, const Write& write) {
    return instruction.row->format == Format::VC || (is_load(instruction.row->format) && !write.post_modify);
  }

  std::optional<std::string> register_branch() const {
    std::optional<std::string> found;
    for_each_instruction([&](int, const Instruction& instruction) {
      if (found || instruction.row->id != Mnemonic::SBR) return;
      const auto* reg = std::get_if<Register>(&instruction.operands[0]);
      if (reg != nullptr && *reg != k_return_register) {
        found = fmt::format("{}: SBR {} jumps to an address in a register", instruction.place.str(), reg->str());
      }
    });
    return found;
  }

  void build_slice() {
    for_each_instruction([&](int, const Instruction& instruction) {
      for (const Register reg : sink_reads(instruction)) m_slice.insert(reg.flat());
    });
    for (std::size_t before = 0; before != m_slice.size();) {
      before = m_slice.size();
      for_each_instruction([&](int, const Instruction& instruction) {
        for (const Write& write : writes(instruction, m_program.scheduled_for)) {
          if (m_slice.count(write.reg.flat()) == 0) continue;
          for (const Register reg : sources(instruction, write)) m_slice.insert(reg.flat());
        }
      });
    }
  }

  // Registers of the slice that this instruction reads for the slice's sake.
  std::vector<Register> slice_reads(const Instruction& instruction) const {
    std::vector<Register> all = sink_reads(instruction);
    for (const Write& write : writes(instruction, m_program.scheduled_for)) {
      if (m_slice.count(write.reg.flat()) == 0) continue;
      for (const Register reg : sources(instruction, write)) all.push_back(reg);
    }
    return all;
  }

  // The instruction that may read the value `reg` had when the kernel was called.
  const Instruction* reads_callers_value(Register reg) const {
    constexpr int k_never = std::numeric_limits<int>::max();
    std::set<std::pair<int, int>> seen;  // state, cycles until the first certain write lands
    std::vector<std::pair<int, int>> pending;
    for (const int entry : default_entries(m_program)) {
      for (const int state : m_flow.states_of(entry)) {
        if (m_flow.states()[static_cast<std::size_t>(state)].branch_in == 0) pending.emplace_back(state, k_never);
      }
    }
    while (!pending.empty()) {
      auto [state, lands_in] = pending.back();
      pending.pop_back();
      const int packet = m_flow.states()[static_cast<std::size_t>(state)].packet;
      for (const Instruction& instruction : m_program.packets[static_cast<std::size_t>(packet)].instructions) {
        for (const Register read : slice_reads(instruction)) {
          if (read == reg) return &instruction;
        }
      }
      for (const Instruction& instruction : m_program.packets[static_cast<std::size_t>(packet)].instructions) {
        if (instruction.predicate) continue;
        for (const Write& write : writes(instruction, m_program.scheduled_for)) {
          if (write.reg == reg) lands_in = std::min(lands_in, write.cycles);
        }
      }
      for (const ControlFlow::Edge& edge : m_flow.successors(state)) {
        if (edge.state < 0 || (lands_in != k_never && lands_in <= edge.cycles)) continue;
        const std::pair<int, int> next{edge.state, lands_in == k_never ? k_never : lands_in - edge.cycles};
        if (seen.insert(next).second) pending.push_back(next);
      }
    }
    return nullptr;
  }

  const Parameter* parameter_in(Register reg) const {
    for (const Parameter& parameter : m_program.parameters) {
      if (parameter.reg == reg) return &parameter;
    }
    return nullptr;
  }

  void taint(Register reg, const std::string& why) {
    std::string& reason = m_reasons[static_cast<std::size_t>(reg.flat())];
    if (reason.empty()) reason = why;
  }

  void seed() {
    for (int f = 0; f < k_register_files; ++f) {
      for (int i = 0; i < k_registers_in_file[static_cast<std::size_t>(f)]; ++i) {
        const Register reg{static_cast<RegisterFile>(f), static_cast<std::uint8_t>(i)};
        if (m_slice.count(reg.flat()) == 0 || reg == k_return_register) continue;
        const Parameter* parameter = parameter_in(reg);
        if (parameter != nullptr && may_steer(parameter->kind)) continue;
        const Instruction* reader = reads_callers_value(reg);
        if (reader == nullptr) continue;
        taint(reg, parameter != nullptr
                       ? fmt::format("{}, the parameter '{}' that is not a {}", reg.str(), parameter->name,
                                     m_sink == Sink::branches ? "count" : "pointer or count")
                       : fmt::format("{}, which {} at {} reads before anything is written to it", reg.str(),
                                     reader->row->mnemonic, reader->place.str()));
      }
    }
    for_each_instruction([&](int, const Instruction& instruction) {
      for (const Write& write : writes(instruction, m_program.scheduled_for)) {
        if (m_slice.count(write.reg.flat()) > 0 && is_data(instruction, write)) {
          taint(write.reg, fmt::format("{}, {} by {} at {}", write.reg.str(),
                                       is_load(instruction.row->format) ? "loaded" : "taken from a vector",
                                       instruction.row->mnemonic, instruction.place.str()));
        }
      }
    });
  }

  const std::string& reason(Register reg) const { return m_reasons[static_cast<std::size_t>(reg.flat())]; }

  void propagate() {
    for (bool changed = true; changed;) {
      changed = false;
      for_each_instruction([&](int, const Instruction& instruction) {
        for (const Write& write : writes(instruction, m_program.scheduled_for)) {
          if (m_slice.count(write.reg.flat()) == 0 || !reason(write.reg).empty()) continue;
          for (const Register reg : sources(instruction, write)) {
            if (reason(reg).empty()) continue;
            taint(write.reg, reason(reg));
            changed = true;
          }
        }
      });
    }
  }

  std::optional<std::string> tainted_sink() const {
    std::optional<std::string> found;
    for_each_instruction([&](int, const Instruction& instruction) {
      for (const Register reg : sink_reads(instruction)) {
        if (found || reason(reg).empty()) continue;
        const bool condition = instruction.predicate && instruction.predicate->reg == reg;
        found = fmt::format("{}: the {} {} of {} depends on {}", instruction.place.str(),
                            condition ? "condition" : "address register", reg.str(), instruction.row->mnemonic,
                            reason(reg));
      }
    });
    return found;
  }

  const Program& m_program;
  const Sink m_sink;
  ControlFlow m_flow;
  std::set<int> m_slice;                                // flat register numbers
  std::array<std::string, k_register_count> m_reasons;  // by flat number; empty: not tainted
};

bool is_independent(const Program& program, Sink sink, std::string* why) {
  const std::optional<std::string> found = TaintAnalysis(program, sink).find_dependence();
  if (found && why != nullptr) *why = *found;
  return !found;
}

}  // namespace

bool timing_is_static(const Program& program, std::string* why) { return is_independent(program, Sink::branches, why); }

bool footprint_is_static(const Program& program, std::string* why) {
  return is_independent(program, Sink::addresses, why);
}

}  // namespace mtsim::isa
