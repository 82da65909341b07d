// SPDX-License-Identifier: Apache-2.0
#include "scenarios/debug/location.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "isa/assembler.h"
#include "scenarios/error.h"
#include "scenarios/spec_exec.h"
#include "sim/config/scalar.h"

namespace mtsim::scenarios {

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// A register by name ($R3 as gdb writes it, too) or by the name of a parameter.
std::optional<isa::Register> find_register(std::string text, const isa::Program& program) {
  if (!text.empty() && text.front() == '$') text.erase(0, 1);
  for (const isa::Parameter& parameter : program.parameters) {
    if (parameter.name == text) return parameter.reg;
  }
  return isa::parse_register(text);
}

std::uint64_t parse_term(const std::string& term, const std::string& whole, const sim::Stepper& stepper) {
  if (const auto reg = find_register(term, stepper.program())) {
    if (reg->file == isa::RegisterFile::VR) {
      throw UsageError(fmt::format("'{}': {} is a vector; an address comes from R, AR or OR", whole, reg->str()));
    }
    return stepper.value(*reg).lane[0];
  }
  const auto number = sim::scan_integer(term);
  if (!number.value) {
    throw UsageError(
        fmt::format("'{}': '{}' is no number, register or parameter; write e.g. sm:0x100 or am:AR0+0x80", whole, term));
  }
  return static_cast<std::uint64_t>(*number.value);
}

}  // namespace

std::string Location::str() const { return reg ? reg->str() : fmt::format("{}:{:#x}", to_string(space), address); }

Location parse_location(const std::string& text, const sim::Stepper& stepper) {
  Location location;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) {
    location.reg = find_register(text, stepper.program());
    if (!location.reg) {
      throw UsageError(
          fmt::format("'{}' is no register, parameter or address; write e.g. R3, VR17, AR0, sm:0x100 or am:AR0", text));
    }
    location.bytes = location.is_vector() ? isa::k_vector_bytes : 8;
    location.sized = true;
    return location;
  }
  const std::string space = lower(text.substr(0, colon));
  if (space != "sm" && space != "am") {
    throw UsageError(
        fmt::format("'{}': unknown memory '{}'; a core has sm (scalar side) and am (vector side)", text, space));
  }
  location.space = space == "sm" ? sim::CoreMemory::sm : sim::CoreMemory::am;
  const std::size_t second = text.find(':', colon + 1);
  const std::string sum = text.substr(colon + 1, second == std::string::npos ? second : second - colon - 1);
  for (std::size_t at = 0; at <= sum.size();) {
    const std::size_t plus = std::min(sum.find('+', at), sum.size());
    location.address += parse_term(sum.substr(at, plus - at), text, stepper);
    at = plus + 1;
  }
  location.sized = second != std::string::npos;
  const std::int64_t bytes = location.sized ? parse_count(text.substr(second + 1), "bytes of '" + text + "'") : 1;
  return with_bytes(location, static_cast<std::size_t>(bytes), stepper);
}

Location with_bytes(const Location& location, std::size_t bytes, const sim::Stepper& stepper) {
  const std::size_t size = stepper.memory(location.space).size();
  if (location.address >= size || bytes > size - location.address) {
    throw UsageError(fmt::format("{} with {} byte{} is outside {}, which has {:#x} bytes", location.str(), bytes,
                                 bytes == 1 ? "" : "s", to_string(location.space), size));
  }
  Location sized = location;
  sized.bytes = bytes;
  return sized;
}

std::vector<std::byte> bytes_at(const Location& location, const sim::Stepper& stepper) {
  if (!location.reg) {
    const auto bytes = stepper.memory(location.space).subspan(location.address, location.bytes);
    return {bytes.begin(), bytes.end()};
  }
  const sim::VectorRegister value = stepper.value(*location.reg);
  std::vector<std::byte> bytes(location.bytes);
  std::memcpy(bytes.data(), value.lane.data(), bytes.size());
  return bytes;
}

std::int64_t parse_count(const std::string& text, const std::string& what, std::int64_t low) {
  const auto number = sim::scan_integer(text);
  if (!number.value) throw UsageError(fmt::format("'{}': expected a whole number ({})", text, what));
  if (*number.value < low) throw UsageError(fmt::format("{} is too small ({}); at least {}", text, what, low));
  return *number.value;
}

}  // namespace mtsim::scenarios
