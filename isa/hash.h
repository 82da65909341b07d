// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits: the same on every host, for keys that go into files. Not for anything an attacker chooses.
#pragma once

#include <cstdint>
#include <string_view>

namespace mtsim::isa {

class Hash {
 public:
  void byte(unsigned char value) { m_value = (m_value ^ value) * 0x100000001B3ull; }
  void bytes(std::string_view text) {
    for (const char c : text) byte(static_cast<unsigned char>(c));
  }
  void add(std::uint64_t value) {
    for (int i = 0; i < 8; ++i) byte(static_cast<unsigned char>(value >> (8 * i)));
  }
  void add(std::string_view text) {  // with its length: "ab", "c" differs from "a", "bc"
    bytes(text);
    add(std::uint64_t{text.size()});
  }
  std::uint64_t value() const { return m_value; }

 private:
  std::uint64_t m_value = 0xCBF29CE484222325ull;
};

}  // namespace mtsim::isa
