// SPDX-License-Identifier: Apache-2.0
#include "isa/reservation_table.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "isa/internal.h"

namespace mtsim::isa {
namespace {

std::size_t index(Unit unit) { return static_cast<std::size_t>(unit); }
std::size_t index(RegisterFile file) { return static_cast<std::size_t>(file); }

}  // namespace

ReservationTable::Row::Row() {
  user.fill(-1);
  for (auto& files : landing) files.fill(-1);
}

ReservationTable::ReservationTable(std::span<const Instruction> instructions, const Pipeline& pipeline,
                                   const TableOptions& options)
    : m_options(options), m_placed(instructions.size()), m_rows(static_cast<std::size_t>(options.interval)) {
  std::array<double, k_units> demand{};
  for (const Instruction& instruction : instructions) {
    m_facts.push_back(facts_of(instruction, pipeline, options.ports));
    const UnitMask units = m_facts.back().units;
    for (int u = 0; u < k_units; ++u) {
      if (units & (1u << u)) demand[index(u)] += 1.0 / std::popcount(units);
    }
  }
  for (int u = 0; u < k_units; ++u) m_order[index(u)] = static_cast<Unit>(u);
  std::stable_sort(m_order.begin(), m_order.end(), [&](Unit a, Unit b) { return demand[index(a)] < demand[index(b)]; });
}

ReservationTable::Facts ReservationTable::facts_of(const Instruction& instruction, const Pipeline& pipeline,
                                                   bool ports) {
  const isa::Row& row = *instruction.row;
  Facts facts;
  facts.units = pipeline.units_of(row);
  facts.vector_memory = (row.units & units::VLDST) != 0;
  facts.load = is_load(row.format);
  facts.broadcast = row.id == Mnemonic::SVBCAST;
  for (const Write& write : writes(instruction, pipeline)) {
    if (write.post_modify) continue;
    facts.lands_in = ports ? write.cycles : 0;
    facts.file = write.reg.file;
  }
  if (const MemoryOperand* memory = memory_operand(instruction)) {
    facts.base = memory->base;
    facts.post_modifies = memory->post_modifies();
  }
  return facts;
}

int ReservationTable::row_of(int cycle) {
  if (m_options.interval > 0) return ((cycle % m_options.interval) + m_options.interval) % m_options.interval;
  if (index(cycle) >= m_rows.size()) m_rows.resize(index(cycle) + 1);
  return cycle;
}

const std::vector<int>& ReservationTable::packet(int cycle) const {
  static const std::vector<int> none;
  const int interval = m_options.interval;
  const int r = interval > 0 ? ((cycle % interval) + interval) % interval : cycle;
  return index(r) < m_rows.size() ? m_rows[index(r)].packet : none;
}

// The port through which the result of an instruction issued at `row` leaves `unit`.
int& ReservationTable::port(int instruction, int issue, Unit unit) {
  const Facts& its = facts(instruction);
  const int lands = row_of(issue + its.lands_in);
  return row(lands).landing[index(unit)][index(its.file)];
}

// May the two share a packet? Rules of analysis.cpp's shapes, and the one of packet_rules.cpp that is an error.
bool ReservationTable::suits(const Facts& a, const Facts& b) const {
  if (a.vector_memory && b.vector_memory && a.base == b.base && a.post_modifies && b.post_modifies) return false;
  if (m_options.allow_assumed) return true;
  if (a.broadcast && b.broadcast) return false;
  return !(a.vector_memory && b.vector_memory) || (a.base == b.base && a.load == b.load);
}

bool ReservationTable::fits_shape(int instruction, const Row& where) const {
  return std::all_of(where.packet.begin(), where.packet.end(),
                     [&](int other) { return suits(facts(instruction), facts(other)); });
}

bool ReservationTable::port_free(int instruction, int r, Unit unit) {
  if (facts(instruction).lands_in == 0) return true;
  const int user = port(instruction, r, unit);
  return user == -1 || user == instruction;
}

void ReservationTable::occupy(int instruction, int r, Unit unit) {
  row(r).user[index(unit)] = instruction;
  row(r).packet.push_back(instruction);
  if (facts(instruction).lands_in > 0) port(instruction, r, unit) = instruction;
  m_placed[index(instruction)] = {true, r, unit};
}

void ReservationTable::vacate(int instruction) {
  Placed& placed = m_placed[index(instruction)];
  Row& where = row(placed.row);
  where.user[index(placed.unit)] = -1;
  std::erase(where.packet, instruction);
  if (facts(instruction).lands_in > 0) port(instruction, placed.row, placed.unit) = -1;
  placed.is = false;
}

void ReservationTable::remove(int instruction) {
  if (m_placed[index(instruction)].is) vacate(instruction);
}

// An augmenting path: a unit of its own that is free, or one whose user finds another. Units tried are not tried again.
bool ReservationTable::find_unit(int instruction, int r, UnitMask tried) {
  const UnitMask open = facts(instruction).units & static_cast<UnitMask>(~tried);
  for (const Unit unit : m_order) {
    if ((open & mask(unit)) == 0 || row(r).user[index(unit)] != -1 || !port_free(instruction, r, unit)) continue;
    occupy(instruction, r, unit);
    return true;
  }
  for (const Unit unit : m_order) {
    if ((open & mask(unit)) == 0 || row(r).user[index(unit)] == -1) continue;
    const int other = row(r).user[index(unit)];
    tried |= mask(unit);
    vacate(other);
    if (port_free(instruction, r, unit)) {
      occupy(instruction, r, unit);
      if (find_unit(other, r, tried)) return true;
      vacate(instruction);
    }
    occupy(other, r, unit);
  }
  return false;
}

bool ReservationTable::place(int instruction, int cycle) {
  const int r = row_of(cycle);
  if (facts(instruction).lands_in > 0) row_of(r + facts(instruction).lands_in);  // straight code grows
  return fits_shape(instruction, row(r)) && find_unit(instruction, r, 0);
}

bool ReservationTable::place_on(int instruction, int cycle, Unit unit) {
  const int r = row_of(cycle);
  row_of(r + facts(instruction).lands_in);  // straight code grows
  if (row(r).user[index(unit)] != -1 || !port_free(instruction, r, unit) || !fits_shape(instruction, row(r)))
    return false;
  occupy(instruction, r, unit);
  return true;
}

void ReservationTable::fix(int instruction, int cycle, Unit unit) {
  const int r = row_of(cycle);
  row_of(r + facts(instruction).lands_in);  // straight code grows
  occupy(instruction, r, unit);
}

std::vector<int> ReservationTable::force(int instruction, int cycle) {
  std::vector<int> left;
  const int r = row_of(cycle);
  const std::vector<int> packet = row(r).packet;
  for (const int other : packet) {
    if (suits(facts(instruction), facts(other))) continue;
    vacate(other);
    left.push_back(other);
  }
  if (place(instruction, cycle)) return left;
  const Facts& its = facts(instruction);
  // The unit whose users are fewest: the one in its slot and the one whose result lands with its own.
  std::vector<int> best;
  Unit best_unit = Unit::SMAC1;
  bool found = false;
  for (const Unit unit : m_order) {
    if ((its.units & mask(unit)) == 0) continue;
    std::vector<int> users;
    if (row(r).user[index(unit)] != -1) users.push_back(row(r).user[index(unit)]);
    if (!port_free(instruction, r, unit)) {
      const int other = port(instruction, r, unit);
      if (std::find(users.begin(), users.end(), other) == users.end()) users.push_back(other);
    }
    if (found && users.size() >= best.size()) continue;
    best = users;
    best_unit = unit;
    found = true;
  }
  for (const int other : best) vacate(other);
  occupy(instruction, r, best_unit);
  left.insert(left.end(), best.begin(), best.end());
  return left;
}

}  // namespace mtsim::isa
