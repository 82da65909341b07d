// SPDX-License-Identifier: Apache-2.0
// One .linear region while it is read: names, pairs, blocks. Internal to the assembler.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/lexer.h"
#include "isa/linear.h"

namespace mtsim::isa {

class LinearReader {
 public:
  explicit LinearReader(Place place) { m_code.place = std::move(place); }

  /// All throw SyntaxError at `column`.
  void declare(RegisterFile file, const std::string& name, int column);
  RegisterPair pair(Register high, Register low, int column);
  void label(const std::string& name);
  void trip(std::int64_t minimum, const Place& place);
  void independent() { m_code.independent = true; }
  void add(Instruction instruction, int column);
  void open_region(std::size_t region);
  void close_region(std::size_t region);

  const Place& place() const { return m_code.place; }
  /// Lines as fmt prints them; a comment goes behind the last one.
  void line(std::string text) { m_lines.push_back(std::move(text)); }
  void comment(const std::string& text) { m_lines.back() += "  ;" + text; }
  std::vector<std::string>& lines() { return m_lines; }
  std::set<std::string> labels() const;
  std::string spelled(Register reg) const;
  std::optional<Register> find(std::string_view name) const;
  std::vector<std::string_view> names() const;
  bool has_instructions() const;

  /// The code with final virtual registers: pairs even and odd, addresses on their side.
  LinearCode finish();

 private:
  LinearBlock& start_block();
  void find_sides(const Instruction& instruction, int column);
  Register final_register(Register reg);

  LinearCode m_code;
  std::size_t m_trip_block = 0;  // the last block with a .trip, counted from 1
  std::vector<std::string> m_lines;
  std::map<std::string, Register, std::less<>> m_names;
  std::map<Register, std::string> m_spelled;
  std::map<Register, std::pair<Register, bool>> m_halves;  // a register -> its pair, and whether it is the high half
  std::map<Register, bool> m_scalar_side;                  // of AR and OR
  std::map<Register, Register> m_final;
  std::array<int, k_register_files> m_declared{};
  std::array<int, k_register_files> m_pairs{};
  std::map<std::pair<RegisterFile, bool>, int> m_next;  // number of the next final register, by file and side
};

}  // namespace mtsim::isa
