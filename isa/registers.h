// SPDX-License-Identifier: Apache-2.0
// The architectural registers of one core and the eleven issue slots of a packet.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace mtsim::isa {

// R: 64 scalars of 64 bits. VR: 64 vectors of 16 lanes x 64 bits. AR/OR: addresses and offsets, 0-7 for the vector
// side, 8-15 for the scalar side. SVR: the exchange registers between the two sides.
enum class RegisterFile : std::uint8_t { R, VR, AR, OR, SVR };

inline constexpr int k_register_files = 5;
inline constexpr std::array<int, k_register_files> k_registers_in_file = {64, 64, 16, 16, 16};
inline constexpr std::array<std::string_view, k_register_files> k_register_file_names = {"R", "VR", "AR", "OR", "SVR"};
inline constexpr int k_vector_lanes = 16;                  // 64-bit lanes of a vector register
inline constexpr int k_vector_bytes = 8 * k_vector_lanes;  // 128

// From this index on a register is virtual: named by .linear code and replaced by the scheduler; no packet of a Program
// has one. Virtual address and offset registers of the scalar side start at the second number.
inline constexpr int k_first_virtual = 256;
inline constexpr int k_first_virtual_scalar_side = 32768;

struct Register {
  RegisterFile file = RegisterFile::R;
  std::uint16_t index = 0;

  auto operator<=>(const Register&) const = default;
  std::string str() const { return std::string(k_register_file_names[static_cast<int>(file)]) + std::to_string(index); }
  constexpr bool is_virtual() const { return index >= k_first_virtual; }
  /// Of an address or offset register: AR8-15, OR8-15.
  constexpr bool scalar_side() const {
    return is_virtual() ? index >= k_first_virtual_scalar_side : index >= k_registers_in_file[2] / 2;
  }
  /// A number unique over all files, below k_register_count; not of a virtual register.
  constexpr int flat() const {
    int base = 0;
    for (int f = 0; f < static_cast<int>(file); ++f) base += k_registers_in_file[f];
    return base + index;
  }
};

inline constexpr int k_register_count = 64 + 64 + 16 + 16 + 16;

/// R0..R6 can predicate an instruction.
inline constexpr int k_predicate_registers = 7;

/// The return address lives here; a branch to it ends a microkernel.
inline constexpr Register k_return_register{RegisterFile::R, 63};

// The eleven slots of a packet, in the order every table and view prints them.
enum class Unit : std::uint8_t { SMAC1, SMAC2, SIEU, SLDST, SBR, VMAC1, VMAC2, VMAC3, VIEU, VLDST1, VLDST2 };

inline constexpr int k_units = 11;
inline constexpr std::array<std::string_view, k_units> k_unit_names = {
    "SMAC1", "SMAC2", "SIEU", "SLDST", "SBR", "VMAC1", "VMAC2", "VMAC3", "VIEU", "VLDST1", "VLDST2"};

inline constexpr std::string_view name(Unit unit) { return k_unit_names[static_cast<int>(unit)]; }

// A set of slots an instruction may issue to.
using UnitMask = std::uint16_t;
inline constexpr UnitMask mask(Unit unit) { return static_cast<UnitMask>(1u << static_cast<int>(unit)); }

namespace units {
inline constexpr UnitMask SMAC = mask(Unit::SMAC1) | mask(Unit::SMAC2);
inline constexpr UnitMask SIEU = mask(Unit::SIEU);
inline constexpr UnitMask SMAC_SIEU = SMAC | SIEU;
inline constexpr UnitMask SLDST = mask(Unit::SLDST);
inline constexpr UnitMask SBR = mask(Unit::SBR);
inline constexpr UnitMask VMAC = mask(Unit::VMAC1) | mask(Unit::VMAC2) | mask(Unit::VMAC3);
inline constexpr UnitMask VIEU = mask(Unit::VIEU);
inline constexpr UnitMask VMAC_VIEU = VMAC | VIEU;
inline constexpr UnitMask VLDST = mask(Unit::VLDST1) | mask(Unit::VLDST2);
inline constexpr UnitMask ALL = (1u << k_units) - 1;
inline constexpr UnitMask NONE = 0;  // SNOP: alone in its packet
}  // namespace units

}  // namespace mtsim::isa
