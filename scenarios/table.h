// SPDX-License-Identifier: Apache-2.0
// Aligned text and markdown tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtsim::scenarios {

enum class Align : std::uint8_t { left, right };

class Table {
 public:
  /// One column per entry of `align`; `header` may be empty.
  Table(std::vector<Align> align, std::vector<std::string> header = {});

  /// Missing cells are empty; more cells than columns are our own bug.
  void add(std::vector<std::string> row);
  bool empty() const { return m_rows.empty(); }

  /// Columns two blanks apart, no trailing blanks, `indent` blanks before each line.
  std::string text(int indent = 0) const;
  /// A markdown table; '|' in cells is escaped. Needs a header.
  std::string markdown() const;

 private:
  std::vector<Align> m_align;
  std::vector<std::string> m_header;
  std::vector<std::vector<std::string>> m_rows;
};

/// 1234567 -> "1,234,567".
std::string grouped(std::int64_t value);
/// "12.3": 12,300 bytes in KB, MB.
std::string kilobytes(std::int64_t bytes);
std::string megabytes(std::int64_t bytes);
/// 5898240 -> "5.90 MB" (powers of ten, as bandwidths are counted).
std::string bytes_text(std::int64_t bytes);
/// "a, b, c"
std::string joined(const std::vector<std::string>& words, const std::string& separator = ", ");

}  // namespace mtsim::scenarios
