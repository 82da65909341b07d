// SPDX-License-Identifier: Apache-2.0
#include "scenarios/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdlib>

namespace mtsim::scenarios {

Table::Table(std::vector<Align> align, std::vector<std::string> header)
    : m_align(std::move(align)), m_header(std::move(header)) {
  assert(m_header.empty() || m_header.size() == m_align.size());
}

void Table::add(std::vector<std::string> row) {
  assert(row.size() <= m_align.size());
  row.resize(m_align.size());
  m_rows.push_back(std::move(row));
}

std::string Table::text(int indent) const {
  std::vector<std::size_t> width(m_align.size(), 0);
  auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  };
  measure(m_header);
  for (const auto& row : m_rows) measure(row);

  std::string out;
  auto print = [&](const std::vector<std::string>& row) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t c = 0; c < row.size(); ++c) {
      line +=
          m_align[c] == Align::left ? fmt::format("{:<{}}", row[c], width[c]) : fmt::format("{:>{}}", row[c], width[c]);
      if (c + 1 < row.size()) line += "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  };
  if (!m_header.empty()) print(m_header);
  for (const auto& row : m_rows) print(row);
  return out;
}

std::string Table::markdown() const {
  assert(!m_header.empty());
  auto print = [](const std::vector<std::string>& row) {
    std::string line = "|";
    for (const auto& cell : row) {
      line += ' ';
      for (char c : cell) line += c == '|' ? std::string("\\|") : std::string(1, c);
      line += " |";
    }
    return line + "\n";
  };
  std::string out = print(m_header) + "|";
  for (Align align : m_align) out += align == Align::left ? " --- |" : " ---: |";
  out += "\n";
  for (const auto& row : m_rows) out += print(row);
  return out;
}

std::string kilobytes(std::int64_t bytes) { return fmt::format("{:.1f}", 1e-3 * static_cast<double>(bytes)); }
std::string megabytes(std::int64_t bytes) { return fmt::format("{:.1f}", 1e-6 * static_cast<double>(bytes)); }

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string bytes_text(std::int64_t bytes) {
  constexpr std::array<const char*, 5> k_units = {"B", "kB", "MB", "GB", "TB"};
  if (std::abs(bytes) < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1000 && unit + 1 < k_units.size()) value /= 1000, ++unit;
  return fmt::format("{:.2f} {}", value, k_units[unit]);
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

}  // namespace mtsim::scenarios
