// SPDX-License-Identifier: Apache-2.0
// The instruction table as data. instructions.def holds the rows; this header gives them types and look-ups.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "isa/registers.h"

namespace mtsim::isa {

// One enumerator per row, in table order; usable as an index into instruction_table().
enum class Mnemonic : std::uint8_t {
#define ROW(mnemonic, ...) mnemonic,
#include "isa/instructions.def"
#undef ROW
};

// Operand lists, sources first and destination last. S scalar register, V vector register, A address or offset
// register, C exchange register, I register or immediate, N immediate only, M memory operand, B label or register. A
// doubled letter behind or before M, and in SSVV, is an even register pair Rhi:Rlo (MVV, VVM, MSS, SSM).
enum class Format : std::uint8_t {
  VVVV,  // VR, VR, VR, VR
  VVV,   // VR, VR, VR
  VV,    // VR, VR
  IV,    // immediate, VR
  NVV,   // immediate, VR, VR
  MV,    // *AR, VR
  MVV,   // *AR, VRhi:VRlo
  VM,    // VR, *AR
  VVM,   // VRhi:VRlo, *AR
  SV,    // R, VR
  SSVV,  // Rhi:Rlo, VRhi:VRlo
  VC,    // VR, SVR0 (and the fifteen behind it)
  CS,    // SVR, R
  SSSS,  // R, R, R, R
  SSS,   // R, R, R
  ISS,   // R or immediate, R, R
  NSS,   // immediate, R, R
  IS,    // immediate, R
  SS,    // R, R
  IAA,   // R or immediate, AR (or OR), AR (or OR)
  SA,    // R, AR or OR
  AS,    // AR or OR, R
  MS,    // *AR, R
  MSS,   // *AR, Rhi:Rlo
  SM,    // R, *AR
  SSM,   // Rhi:Rlo, *AR
  B,     // label or R
  N,     // immediate
};

// Where a row's latency and semantics come from.
enum class Grade : std::uint8_t { paper, published, assumed };
const char* to_string(Grade grade);

struct Row {
  Mnemonic id;
  std::string_view mnemonic;
  UnitMask units;
  Format format;
  int cycles;
  Grade grade;
  std::string_view source;
  std::string_view semantics_name;  // what it computes: the struct of that name in semantics.inc
  int first_byte;                   // of what a load or store touches, from its address; 0 when not a memory row
  int last_byte;                    // one behind
};

/// Every row, in the order of instructions.def.
std::span<const Row> instruction_table();

const Row& row(Mnemonic mnemonic);

/// Case-insensitive; follows aliases (the paper's Table I prints SBALE for SBALE2). nullptr when unknown.
const Row* find_row(std::string_view mnemonic);

/// "VMAC3" -> the slot; nullopt when there is none of that name.
std::optional<Unit> find_unit(std::string_view name);

bool is_load(Format format);    // MV MVV MS MSS
bool is_store(Format format);   // VM VVM SM SSM
bool is_memory(Format format);  // either
/// Bytes one access moves (128 for VLDW; they may lie strewn over [first_byte, last_byte)) and bytes of one index step
/// (8 for VLDW, 16 for VLDDW). 0 when not a memory row.
int access_bytes(const Row& row);
int index_unit(const Row& row);

/// Latencies and issue slots of one machine: the table's, with latencies overridden by mnemonic and slots taken away.
/// SADDA and SSUBA have one latency per half of AR.
class Pipeline {
 public:
  Pipeline() = default;
  /// Throws std::invalid_argument for a latency outside 1..k_max_latency or one that cannot be changed (SNOP, stores).
  void override(Mnemonic mnemonic, int cycles);
  /// SADDA and SSUBA to AR8-15/OR8-15 (2 in the table's machine).
  void override_scalar_address(int cycles);

  /// Cycles from issue until a read sees the result, for a result that goes to `destination`.
  int of(const Row& row, Register destination) const;
  int of(const Row& row) const;
  /// Six delay slots = SBR's 7 - 1.
  int branch_cycles() const { return of(row(Mnemonic::SBR)); }

  /// Takes a slot away: a machine with two vector multipliers has no VMAC3. Throws std::invalid_argument for the only
  /// slot some instruction can issue to.
  void remove(Unit unit);
  /// Gives every slot back.
  void restore_units() { m_units = units::ALL; }
  UnitMask units() const { return m_units; }
  /// The slots of this machine an instruction may issue to; empty for SNOP only.
  UnitMask units_of(const Row& row) const { return row.units & m_units; }

  bool operator==(const Pipeline&) const = default;
  /// "VLDW=8 VFMULAS32=5 -VMAC3": what differs from the table, in table order; "" for the table's own.
  std::string str() const;

 private:
  std::map<Mnemonic, int> m_overrides;
  int m_scalar_address_cycles = 2;
  UnitMask m_units = units::ALL;
};

inline constexpr int k_max_latency = 63;

}  // namespace mtsim::isa
