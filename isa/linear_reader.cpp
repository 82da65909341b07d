// SPDX-License-Identifier: Apache-2.0
#include "isa/linear_reader.h"

#include <fmt/format.h>

namespace mtsim::isa {
namespace {

std::size_t index(RegisterFile file) { return static_cast<std::size_t>(file); }

// While a region is read, pairs have numbers of their own: which registers are one is not known when they are declared.
constexpr int k_first_pair = k_first_virtual_scalar_side;

bool is_pair_number(Register reg) {
  return (reg.file == RegisterFile::R || reg.file == RegisterFile::VR) && reg.index >= k_first_pair;
}

}  // namespace

void LinearReader::declare(RegisterFile file, const std::string& name, int column) {
  int& count = m_declared[index(file)];
  if (count == k_max_virtual_registers) {
    throw SyntaxError(column,
                      fmt::format("more than {} virtual registers in {}", k_max_virtual_registers,
                                  k_register_file_names[index(file)]),
                      "reuse names whose values are dead", "linear-size");
  }
  const Register reg{file, static_cast<std::uint16_t>(k_first_virtual + count)};
  const auto [it, is_new] = m_names.try_emplace(name, reg);
  if (!is_new) {
    throw SyntaxError(column, fmt::format(".reg {} is declared twice in this .linear", name), "drop one",
                      "duplicate-reg");
  }
  m_spelled[reg] = name;
  ++count;
}

std::optional<Register> LinearReader::find(std::string_view name) const {
  const auto it = m_names.find(name);
  return it == m_names.end() ? std::nullopt : std::optional(it->second);
}

std::vector<std::string_view> LinearReader::names() const {
  std::vector<std::string_view> all;
  for (const auto& [name, unused_register] : m_names) all.push_back(name);
  return all;
}

RegisterPair LinearReader::pair(Register high, Register low, int column) {
  const auto fail = [&](const std::string& why) {
    return SyntaxError(column, fmt::format("'{}:{}' cannot be a pair: {}", m_spelled[high], m_spelled[low], why),
                       "a virtual register is in at most one pair, always as the same half", "register-pair");
  };
  if (high == low) throw fail("the two are one register");
  const auto of_high = m_halves.find(high), of_low = m_halves.find(low);
  if (of_high == m_halves.end() && of_low == m_halves.end()) {
    const Register number{low.file, static_cast<std::uint16_t>(k_first_pair + 2 * m_pairs[index(low.file)]++)};
    m_halves[high] = {number, true};
    m_halves[low] = {number, false};
    m_spelled[number] = m_spelled[low];
    m_spelled[RegisterPair{number}.high()] = m_spelled[high];
    return {number};
  }
  const auto other = of_low == m_halves.end() ? of_high : of_low;
  if (of_high == m_halves.end() || of_low == m_halves.end() || of_high->second.first != of_low->second.first ||
      !of_high->second.second) {
    throw fail(fmt::format("{} is already in another pair or its other half", m_spelled[other->first]));
  }
  return {of_low->second.first};
}

std::string LinearReader::spelled(Register reg) const {
  const auto it = m_spelled.find(reg);
  return it == m_spelled.end() ? reg.str() : it->second;
}

std::set<std::string> LinearReader::labels() const {
  std::set<std::string> all;
  for (const LinearBlock& block : m_code.blocks) all.insert(block.labels.begin(), block.labels.end());
  return all;
}

LinearBlock& LinearReader::start_block() {
  const bool fresh = m_code.blocks.empty() || !m_code.blocks.back().empty();
  if (fresh) m_code.blocks.emplace_back();
  return m_code.blocks.back();
}

void LinearReader::label(const std::string& name) { start_block().labels.push_back(name); }

void LinearReader::open_region(std::size_t region) { start_block().regions_opened.push_back(region); }

// A region opened and closed without an instruction between them is empty and stays where it is.
void LinearReader::close_region(std::size_t region) { start_block().regions_closed.push_back(region); }

void LinearReader::trip(std::int64_t minimum, const Place& place) {
  constexpr std::int64_t k_largest = 1 << 30;
  if (m_code.blocks.empty() || !m_code.blocks.back().empty() || m_code.blocks.back().labels.empty()) {
    throw SyntaxError(place.column, ".trip stands directly behind the label of a loop", "write loop: .trip 4", "trip");
  }
  if (m_trip_block == m_code.blocks.size()) {
    throw SyntaxError(place.column, "the loop has a .trip already", "keep one", "trip");
  }
  if (minimum < 1 || minimum > k_largest) {
    throw SyntaxError(place.column, fmt::format(".trip {}: at least 1 and at most {}", minimum, k_largest),
                      "write .trip MINIMUM", "trip");
  }
  m_code.blocks.back().trip_minimum = static_cast<int>(minimum);
  m_code.blocks.back().trip_place = place;
  m_trip_block = m_code.blocks.size();
}

void LinearReader::add(Instruction instruction, int column) {
  find_sides(instruction, column);
  if (m_code.blocks.empty() || m_code.blocks.back().branch) m_code.blocks.emplace_back();
  LinearBlock& block = m_code.blocks.back();
  if (instruction.row->id == Mnemonic::SBR) {
    block.branch = std::move(instruction);
    return;
  }
  if (block.body.size() == k_max_linear_instructions) {
    throw SyntaxError(
        column,
        fmt::format("more than {} instructions without a label or a branch in .linear", k_max_linear_instructions),
        "shorten the .rept, or put a label into it", "linear-size");
  }
  block.body.push_back(std::move(instruction));
}

bool LinearReader::has_instructions() const {
  for (const LinearBlock& block : m_code.blocks) {
    if (!block.empty()) return true;
  }
  return false;
}

// AR0-7 and OR0-7 serve vector loads and stores, AR8-15 and OR8-15 scalar ones.
void LinearReader::find_sides(const Instruction& instruction, int column) {
  for (const Operand& operand : instruction.operands) {
    const auto* memory = std::get_if<MemoryOperand>(&operand);
    if (memory == nullptr) continue;
    const bool scalar = (instruction.row->units & units::VLDST) == 0;
    for (const auto reg : {std::optional(memory->base), memory->offset}) {
      if (!reg || !reg->is_virtual()) continue;
      if (m_scalar_side.try_emplace(*reg, scalar).first->second == scalar) continue;
      throw SyntaxError(column, fmt::format("'{}' addresses vector and scalar memory", m_spelled[*reg]),
                        "copy it: each side has its own address registers", "address-side");
    }
  }
}

Register LinearReader::final_register(Register reg) {
  if (!reg.is_virtual()) return reg;
  if (const auto it = m_final.find(reg); it != m_final.end()) return it->second;
  const auto fresh = [&](bool scalar_side, int count) {
    int& next = m_next[{reg.file, scalar_side}];
    const int number = (scalar_side ? k_first_virtual_scalar_side : k_first_virtual) + next;
    next += count;
    return Register{reg.file, static_cast<std::uint16_t>(number)};
  };
  if (is_pair_number(reg)) return m_final[reg] = fresh(false, 2);
  const auto half = m_halves.find(reg);
  Register result;
  if (half != m_halves.end()) {
    const Register even = final_register(half->second.first);
    result = half->second.second ? RegisterPair{even}.high() : even;
  } else {
    const auto side = m_scalar_side.find(reg);
    const bool address = reg.file == RegisterFile::AR || reg.file == RegisterFile::OR;
    // One that addresses nothing: the scalar side, whose results are there earlier.
    result = fresh(address && (side == m_scalar_side.end() || side->second), 2);
  }
  m_code.names[result] = m_spelled[reg];
  return m_final[reg] = result;
}

LinearCode LinearReader::finish() {
  const auto final = [&](Register reg) { return final_register(reg); };
  for (LinearBlock& block : m_code.blocks) {
    for (Instruction& instruction : block.body) replace_registers(instruction, final, final);
    if (block.branch) replace_registers(*block.branch, final, final);
  }
  return std::move(m_code);
}

}  // namespace mtsim::isa
