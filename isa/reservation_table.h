// SPDX-License-Identifier: Apache-2.0
// Which instructions share a packet, on which units: slots, ports of results and the packet shapes known to run.
// Internal to isa.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "isa/program.h"

namespace mtsim::isa {

struct TableOptions {
  int interval = 0;            // cycles are taken modulo this; 0: straight code
  bool allow_assumed = false;  // packet shapes not known to run on hardware
  bool ports = true;           // one result of a unit in one register file a cycle
};

class ReservationTable {
 public:
  ReservationTable(std::span<const Instruction> instructions, const Pipeline& pipeline, const TableOptions& options);

  /// Places an instruction on a free unit of that cycle, moving others of the packet to other units when that helps.
  /// False, and no change, when it does not fit.
  bool place(int instruction, int cycle);
  /// Places an instruction on that very unit. False, and no change, when it does not fit.
  bool place_on(int instruction, int cycle, Unit unit);
  /// Places an instruction whose unit is known; nothing may be in its way.
  void fix(int instruction, int cycle, Unit unit);
  /// Places it whatever stands in its way and returns what had to leave.
  std::vector<int> force(int instruction, int cycle);
  void remove(int instruction);

  Unit unit(int instruction) const { return m_placed[static_cast<std::size_t>(instruction)].unit; }
  /// The instructions of a packet, of a row of the kernel when cycles are taken modulo an interval.
  const std::vector<int>& packet(int cycle) const;

 private:
  struct Facts {  // of one instruction
    UnitMask units = 0;
    int lands_in = 0;  // cycles; 0: no result through its unit
    RegisterFile file = RegisterFile::R;
    bool vector_memory = false;
    bool load = false;
    bool post_modifies = false;
    bool broadcast = false;
    Register base;
  };
  struct Placed {
    bool is = false;
    int row = 0;
    Unit unit = Unit::SMAC1;
  };
  struct Row {
    std::vector<int> packet;
    std::array<int, k_units> user;                                   // -1: free
    std::array<std::array<int, k_register_files>, k_units> landing;  // whose result lands; -1: none
    Row();
  };

  static Facts facts_of(const Instruction& instruction, const Pipeline& pipeline, bool ports);
  int row_of(int cycle);
  Row& row(int r) { return m_rows[static_cast<std::size_t>(r)]; }
  const Facts& facts(int instruction) const { return m_facts[static_cast<std::size_t>(instruction)]; }
  int& port(int instruction, int row, Unit unit);
  bool fits_shape(int instruction, const Row& row) const;
  bool suits(const Facts& a, const Facts& b) const;
  bool port_free(int instruction, int row, Unit unit);
  bool find_unit(int instruction, int row, UnitMask tried);
  void occupy(int instruction, int row, Unit unit);
  void vacate(int instruction);

  TableOptions m_options;
  std::vector<Facts> m_facts;
  std::vector<Placed> m_placed;
  std::vector<Row> m_rows;
  std::array<Unit, k_units> m_order;  // the units that few instructions depend on come first
};

}  // namespace mtsim::isa
