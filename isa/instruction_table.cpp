// SPDX-License-Identifier: Apache-2.0
#include "isa/instruction_table.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "isa/upper.h"

namespace mtsim::isa {
namespace {

using namespace units;

#include "isa/semantics.inc"

struct ByteRange {
  int first, last;
};
template <class Sem>
constexpr ByteRange touched() {
  if constexpr (requires { Sem::first; }) return {static_cast<int>(Sem::first), static_cast<int>(Sem::last)};
  return {0, 0};
}

constexpr auto k_rows = std::to_array<Row>({
#define ROW(mnemonic, unit_mask, format, cycles, semantic, grade, source) \
  {Mnemonic::mnemonic,                                                    \
   #mnemonic,                                                             \
   unit_mask,                                                             \
   Format::format,                                                        \
   cycles,                                                                \
   Grade::grade,                                                          \
   source,                                                                \
   #semantic,                                                             \
   touched<semantics::semantic>().first,                                  \
   touched<semantics::semantic>().last},
#include "isa/instructions.def"
#undef ROW
});

bool is_address_arithmetic(Mnemonic mnemonic) { return mnemonic == Mnemonic::SADDA || mnemonic == Mnemonic::SSUBA; }

}  // namespace

const char* to_string(Grade grade) {
  switch (grade) {
    case Grade::paper: return "paper";
    case Grade::published: return "published";
    case Grade::assumed: return "assumed";
  }
  return "?";
}

std::span<const Row> instruction_table() { return k_rows; }

const Row& row(Mnemonic mnemonic) { return k_rows[static_cast<std::size_t>(mnemonic)]; }

const Row* find_row(std::string_view mnemonic) {
  if (same_ignoring_case(mnemonic, "SBALE")) mnemonic = "SBALE2";  // Table I of the paper prints sbale, Table II sbale2
  for (const Row& r : k_rows) {
    if (same_ignoring_case(mnemonic, r.mnemonic)) return &r;
  }
  return nullptr;
}

std::optional<Unit> find_unit(std::string_view name) {
  const auto at = std::find(k_unit_names.begin(), k_unit_names.end(), name);
  if (at == k_unit_names.end()) return std::nullopt;
  return static_cast<Unit>(at - k_unit_names.begin());
}

bool is_load(Format format) {
  return format == Format::MV || format == Format::MVV || format == Format::MS || format == Format::MSS;
}

bool is_store(Format format) {
  return format == Format::VM || format == Format::VVM || format == Format::SM || format == Format::SSM;
}

bool is_memory(Format format) { return is_load(format) || is_store(format); }

int access_bytes(const Row& row) {
  switch (row.format) {
    case Format::MV:
    case Format::VM: return k_vector_bytes;
    case Format::MVV:
    case Format::VVM: return 2 * k_vector_bytes;
    default: return row.last_byte - row.first_byte;
  }
}

int index_unit(const Row& row) {
  switch (row.format) {
    case Format::MV:
    case Format::VM: return 8;
    case Format::MVV:
    case Format::VVM: return 16;
    case Format::MS:
    case Format::SM:
    case Format::MSS:
    case Format::SSM: return access_bytes(row);
    default: return 0;
  }
}

void Pipeline::override(Mnemonic mnemonic, int cycles) {
  const Row& r = row(mnemonic);
  if (cycles < 1 || cycles > k_max_latency) {
    throw std::invalid_argument(std::string(r.mnemonic) + ": latency " + std::to_string(cycles) + " is outside 1.." +
                                std::to_string(k_max_latency));
  }
  if (mnemonic == Mnemonic::SNOP || is_store(r.format)) {
    throw std::invalid_argument(
        std::string(r.mnemonic) + " has no latency to change: " +
        (mnemonic == Mnemonic::SNOP ? "its operand is its length" : "a store commits at issue"));
  }
  if (cycles == r.cycles) {
    m_overrides.erase(mnemonic);
  } else {
    m_overrides[mnemonic] = cycles;
  }
}

void Pipeline::override_scalar_address(int cycles) {
  if (cycles < 1 || cycles > k_max_latency) {
    throw std::invalid_argument("SADDA to AR8-15: latency " + std::to_string(cycles) + " is outside 1.." +
                                std::to_string(k_max_latency));
  }
  m_scalar_address_cycles = cycles;
}

void Pipeline::remove(Unit unit) {
  const UnitMask left = m_units & static_cast<UnitMask>(~mask(unit));
  for (const Row& r : instruction_table()) {
    if (r.units != units::NONE && (r.units & left) == 0) {
      throw std::invalid_argument(std::string(name(unit)) + " cannot be taken away: " + std::string(r.mnemonic) +
                                  " would have no slot to issue to");
    }
  }
  m_units = left;
}

int Pipeline::of(const Row& r) const {
  const auto it = m_overrides.find(r.id);
  return it == m_overrides.end() ? r.cycles : it->second;
}

int Pipeline::of(const Row& r, Register destination) const {
  const bool scalar_side =
      (destination.file == RegisterFile::AR || destination.file == RegisterFile::OR) && destination.scalar_side();
  return is_address_arithmetic(r.id) && scalar_side ? m_scalar_address_cycles : of(r);
}

std::string Pipeline::str() const {
  std::string text;
  for (const auto& [mnemonic, cycles] : m_overrides) {
    if (!text.empty()) text += ' ';
    text += std::string(row(mnemonic).mnemonic) + '=' + std::to_string(cycles);
  }
  if (m_scalar_address_cycles != Pipeline{}.m_scalar_address_cycles) {
    text += (text.empty() ? "" : " ") + std::string("SADDA_AR8_15=") + std::to_string(m_scalar_address_cycles);
  }
  for (int u = 0; u < k_units; ++u) {
    const auto unit = static_cast<Unit>(u);
    if ((m_units & mask(unit)) == 0) text += (text.empty() ? "-" : " -") + std::string(name(unit));
  }
  return text;
}

}  // namespace mtsim::isa
