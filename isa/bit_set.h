// SPDX-License-Identifier: Apache-2.0
// A set of small numbers whose bound is known at run time. Internal to isa.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mtsim::isa {

class BitSet {
 public:
  explicit BitSet(std::size_t bound = 0) : m_words((bound + 63) / 64) {}

  void set(std::size_t i) { m_words[i / 64] |= std::uint64_t{1} << (i % 64); }
  void reset(std::size_t i) { m_words[i / 64] &= ~(std::uint64_t{1} << (i % 64)); }
  bool test(std::size_t i) const { return (m_words[i / 64] >> (i % 64) & 1) != 0; }

  BitSet& operator|=(const BitSet& other) {
    for (std::size_t w = 0; w < m_words.size(); ++w) m_words[w] |= other.m_words[w];
    return *this;
  }
  bool operator==(const BitSet&) const = default;

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t w = 0; w < m_words.size(); ++w) {
      for (std::uint64_t left = m_words[w]; left != 0; left &= left - 1) {
        visit(64 * w + static_cast<std::size_t>(std::countr_zero(left)));
      }
    }
  }

 private:
  std::vector<std::uint64_t> m_words;
};

}  // namespace mtsim::isa
