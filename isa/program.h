// SPDX-License-Identifier: Apache-2.0
// An assembled microkernel: packets of instructions with resolved operands. What the assembler makes and everyone
// reads.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "isa/diagnostic.h"
#include "isa/instruction_table.h"
#include "isa/loop_report.h"
#include "isa/registers.h"

namespace mtsim::isa {

// *AR, *+AR[i], *-AR[i], *AR++[i], *AR--[i]; the index is an immediate or an OR register, counted in access units.
enum class AddressMode : std::uint8_t { plain, plus, minus, post_increment, post_decrement };

struct MemoryOperand {
  Register base;  // AR0-7 on the vector side, AR8-15 on the scalar side
  AddressMode mode = AddressMode::plain;
  std::optional<Register> offset;  // OR register; if absent, `index`
  std::int64_t index = 0;          // access units
  bool post_modifies() const { return mode == AddressMode::post_increment || mode == AddressMode::post_decrement; }
  bool operator==(const MemoryOperand&) const = default;
};

struct RegisterPair {  // printed high:low; low is even
  Register low;
  Register high() const { return {low.file, static_cast<std::uint16_t>(low.index + 1)}; }
  bool operator==(const RegisterPair&) const = default;
};

struct Immediate {
  std::int64_t value = 0;  // bit pattern; VMOVI uses all 64 bits
  bool operator==(const Immediate&) const = default;
};

struct Target {  // a label
  std::string label;
  int packet = -1;  // index into Program::packets
  bool operator==(const Target&) const = default;
};

using Operand = std::variant<Register, RegisterPair, Immediate, MemoryOperand, Target>;

struct Predicate {  // [R0] or [!R0]
  Register reg;
  bool negated = false;
  bool operator==(const Predicate&) const = default;
};

struct Instruction {
  const Row* row = nullptr;
  Unit unit = Unit::SMAC1;  // the slot it issues to (meaningless for SNOP)
  bool has_suffix = false;  // written with .M1/.M2/.M3
  std::optional<Predicate> predicate;
  std::vector<Operand> operands;  // in the order of row->format: sources first, destination last
  Place place;
};

struct Packet {
  std::vector<Instruction> instructions;
  // Kept for fmt:
  std::string comment;             // text behind ';' on the packet's lines, as it stands there; may be empty
  std::vector<std::string> above;  // whole-line comments (";text") and blank lines ("") in front of it
  bool starts_columns = false;     // a line of column names stood in front of it: columns are laid out anew from here

  bool is_idle() const { return instructions.size() == 1 && instructions[0].row->id == Mnemonic::SNOP; }
  /// Cycles the packet takes when no branch cuts it: n for SNOP n, else 1.
  int cycles() const;
  /// Its SBR, or nullptr: no other instruction issues to that unit.
  const Instruction* branch() const;
};

// What the caller passes: a count may steer branches, a pointer addresses SM or AM.
enum class ParameterKind : std::uint8_t { value, count, pointer_sm, pointer_am };

inline bool is_pointer(ParameterKind kind) {
  return kind == ParameterKind::pointer_sm || kind == ParameterKind::pointer_am;
}

struct Parameter {
  std::string name;
  Register reg;
  ParameterKind kind = ParameterKind::value;
};

struct Region {  // .region NAME ... .endregion, packets [first, last)
  std::string name;
  int first = 0;
  int last = 0;
  bool opened_in_linear = false;  // LinearSource has the line
  bool closed_in_linear = false;
};

struct LinearSource {  // .linear ... .endlinear, scheduled into packets [first, last)
  int first = 0;
  int last = 0;
  std::vector<std::string> lines;  // kept for fmt, both directives included; expanded as all else
  std::set<std::string> labels;    // that stand in it, or that the scheduler added
};

struct Program {
  std::string name;  // file name without folder and extension
  std::string file;  // as given, for messages
  std::vector<Packet> packets;
  std::map<std::string, int> labels;  // label -> packet index (may equal packets.size() for a label at the end)
  std::vector<Parameter> parameters;  // .param, in order = order of call arguments
  std::vector<Register> numbered;     // what each %n of the text stands for, ascending n
  std::vector<Region> regions;
  Pipeline scheduled_for;  // the latencies the hand schedule assumes; without hand packets, those it was scheduled for
  std::vector<LinearSource> linear;
  std::vector<LoopReport> linear_loops;  // what the scheduler found, in order
  std::vector<std::string> header;       // leading comment lines and directives, kept for fmt
  std::vector<std::string> footer;       // comment lines behind the last packet, kept for fmt

  /// Which of `linear` a packet was scheduled from; -1 for one written by hand.
  int linear_at(int packet) const;
  /// Packet index of `label` or 0 for "". Throws IsaError with the known labels when there is none.
  int entry(const std::string& label = "") const;
  /// A hash of everything that decides timing and values (packets, not comments): the memo's key.
  std::uint64_t fingerprint() const;

  /// Says that this object stays where and as it is until the process ends, so that its address is enough to know it.
  /// Copies are not kept.
  void keep() { m_kept = this; }
  bool is_kept() const { return m_kept == this; }

 private:
  const Program* m_kept = nullptr;
};

/// The registers an instruction reads (operands, addresses, predicate, store data) and those it writes with the cycles
/// until each write lands (post-modified AR: 1). Pairs count as two, VMVCGC as
/// sixteen.
struct Write {
  Register reg;
  int cycles;
  bool post_modify = false;
};
const MemoryOperand* memory_operand(const Instruction& instruction);  // nullptr when it has none
bool has_destination(Format format);                                  // its last operand is written
std::vector<Register> reads(const Instruction& instruction);
std::vector<Write> writes(const Instruction& instruction, const Pipeline& pipeline);

}  // namespace mtsim::isa
