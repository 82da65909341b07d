// SPDX-License-Identifier: Apache-2.0
#include "scenarios/spec_exec.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "isa/assembler.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "sim/config/output_file.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

namespace {

using isa::Register;
using isa::RegisterFile;
using sim::YamlNode;

template <class Number>
std::optional<Number> parse_all(std::string_view text, auto... base_or_format) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base_or_format...);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

struct RegisterValue {
  std::uint64_t scalar = 0;  // an FP32 value in the low 32 bits
  std::uint64_t lane = 0;    // the same value in a lane of a vector register: FP32 in both halves
};

/// 5, -1, 0x1000 (64 bits), "f32:1.5", "f64:-2e3".
std::optional<RegisterValue> parse_value(std::string_view text) {
  if (text.starts_with("f32:")) {
    const auto number = parse_all<float>(text.substr(4));
    if (!number) return std::nullopt;
    const std::uint64_t bits = std::bit_cast<std::uint32_t>(*number);
    return RegisterValue{bits, bits << 32 | bits};
  }
  std::optional<std::uint64_t> bits;
  if (text.starts_with("f64:")) {
    if (const auto number = parse_all<double>(text.substr(4))) bits = std::bit_cast<std::uint64_t>(*number);
  } else if (text.starts_with("0x") || text.starts_with("0X")) {
    bits = parse_all<std::uint64_t>(text.substr(2), 16);
  } else if (text.size() > 1 && text.front() == '0') {
    return std::nullopt;  // octal elsewhere; refused rather than guessed
  } else if (const auto number = parse_all<std::int64_t>(text)) {
    bits = static_cast<std::uint64_t>(*number);
  } else {
    bits = parse_all<std::uint64_t>(text);
  }
  if (!bits) return std::nullopt;
  return RegisterValue{*bits, *bits};
}

RegisterValue read_value(const YamlNode& node) {
  if (!node.is_scalar()) {
    node.complain("expected one register value", "write 5, 0x1000, \"f32:1.5\" or \"f64:2.5\"");
    return {};
  }
  const std::string text = node.as_string();
  const auto value = parse_value(text);
  if (!value) {
    node.complain(fmt::format("'{}' is not a register value", text),
                  "write a 64-bit integer, 0x hex, \"f32:1.5\" or \"f64:2.5\"");
  }
  return value.value_or(RegisterValue{});
}

sim::VectorRegister read_vector(const YamlNode& node) {
  sim::VectorRegister vector;
  if (!node.is_sequence()) {
    vector.lane.fill(read_value(node).lane);
    return vector;
  }
  const auto lanes = static_cast<std::size_t>(isa::k_vector_lanes);
  if (node.size() == lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) vector.lane[lane] = read_value(node.at(lane)).lane;
  } else if (node.size() == 2 * lanes) {  // one value a word: FP32
    for (std::size_t word = 0; word < 2 * lanes; ++word) {
      const std::uint64_t value = read_value(node.at(word)).scalar;
      if (value >> 32)
        node.at(word).complain("does not fit the 32-bit word of a list of 32", "give 16 values of 64 bits");
      vector.lane[word / 2] |= (value & 0xFFFF'FFFF) << (32 * (word % 2));
    }
  } else {
    node.complain(fmt::format("a vector register takes 1, 16 or 32 values, not {}", node.size()),
                  "give one value for all lanes, 16 lanes of 64 bits, or 32 words of 32 bits");
  }
  return vector;
}

void read_registers(const YamlNode& node, sim::RegisterState& state) {
  if (!node.is_mapping()) {
    node.complain("expected a mapping of registers to values", "write registers: {R10: 0, R12: 0x1000}");
    return;
  }
  std::array<bool, isa::k_register_count> seen{};
  for (const std::string& key : node.keys()) {
    const YamlNode value = *node.find(key);
    const auto reg = isa::parse_register(key);
    if (!reg) {
      node.complain_about_key(key, fmt::format("'{}' is not a register", key),
                              "use R0-R63, VR0-VR63, AR0-AR15, OR0-OR15 or SVR0-SVR15");
      continue;
    }
    if (std::exchange(seen[static_cast<std::size_t>(reg->flat())], true)) {
      node.complain_about_key(key, fmt::format("register '{}' is given twice", reg->str()), "keep one of the two");
    }
    if (*reg == isa::k_return_register) {
      node.complain_about_key(key, "R63 holds the return address", "leave it out; the run ends with a branch to it");
      continue;
    }
    switch (reg->file) {
      case RegisterFile::R: state.r[reg->index] = read_value(value).scalar; break;
      case RegisterFile::AR: state.ar[reg->index] = read_value(value).scalar; break;
      case RegisterFile::OR: state.orr[reg->index] = read_value(value).scalar; break;
      case RegisterFile::SVR: state.svr[reg->index] = read_value(value).scalar; break;
      case RegisterFile::VR: state.vr[reg->index] = read_vector(value); break;
    }
  }
}

std::vector<Register> read_operands(const YamlNode& node) {
  std::vector<Register> operands;
  if (!node.is_sequence()) {
    node.complain("expected a list of registers", "write operands: [R10, R12, R14]");
    return operands;
  }
  for (std::size_t i = 0; i < node.size(); ++i) {
    const auto reg = isa::parse_register(node.at(i).as_string());
    if (!reg) {
      node.at(i).complain(fmt::format("'{}' is not a register", node.at(i).as_string()),
                          "name the register %n stands for, e.g. R10");
    }
    operands.push_back(reg.value_or(Register{}));
  }
  return operands;
}

/// Where a memory entry lies: space, address and the size of that space.
struct Location {
  sim::CoreMemory space = sim::CoreMemory::sm;
  std::int64_t address = 0;
  std::int64_t size = 0;  // of the whole space
};

/// Absent when the entry has no usable place; that is complained about then.
std::optional<Location> read_location(const YamlNode& entry, const sim::MachineConfig& machine) {
  const YamlNode space = entry.require("space");
  const YamlNode address = entry.require("address");
  if (space.is_null() || address.is_null()) return std::nullopt;
  Location location;
  const std::string name = space.as_string();
  if (name != "am" && name != "sm") {
    space.complain(fmt::format("unknown memory '{}'", name), "a core has sm (scalar side) and am (vector side)");
    return std::nullopt;
  }
  location.space = name == "am" ? sim::CoreMemory::am : sim::CoreMemory::sm;
  location.size = location.space == sim::CoreMemory::sm ? machine.core.sm_bytes : machine.core.am_bytes;
  location.address = address.as_integer();
  if (location.address >= 0 && location.address < location.size) return location;
  address.complain(fmt::format("{:#x} is outside {}", location.address, name),
                   fmt::format("it has {} bytes", location.size));
  return std::nullopt;
}

/// Complains when [address, address + bytes) leaves the memory.
bool fits(const YamlNode& place, const std::optional<Location>& at, std::int64_t bytes) {
  if (bytes < 1) {
    place.complain(fmt::format("{} bytes", bytes), "at least 1");
    return false;
  }
  if (!at) return false;  // the place itself is wrong
  if (bytes <= at->size - at->address) return true;
  place.complain(fmt::format("{} bytes at {:#x} end outside {}", bytes, at->address, to_string(at->space)),
                 fmt::format("it has {} bytes, {} from that address on", at->size, at->size - at->address));
  return false;
}

/// The size of a file that is read later, or what is wrong with it as a complaint at `place`.
std::optional<std::int64_t> input_bytes(const YamlNode& place, const std::string& path) {
  try {
    return file_bytes(path);
  } catch (const UsageError& error) {
    place.complain(error.what());
    return std::nullopt;
  }
}

void read_file_image(const YamlNode& entry, const YamlNode& file, const std::optional<Location>& at, ExecSpec& spec,
                     ExecSpec::Image& image) {
  image.path = relative_to(spec.path, file.as_string());
  const auto size = input_bytes(file, image.path);
  const auto bytes = entry.find("bytes");
  image.bytes = bytes ? bytes->as_integer() : size.value_or(0);
  if (!size) return;
  if (!bytes && *size == 0) {
    file.complain(fmt::format("'{}' is empty", file.as_string()), "give a file of raw little-endian bytes");
  } else if (fits(bytes ? *bytes : file, at, image.bytes) && image.bytes > *size) {
    file.complain(fmt::format("'{}' is too short: {} bytes, {} asked", file.as_string(), *size, image.bytes),
                  "correct 'bytes' or the file");
  }
}

void read_image(const YamlNode& entry, ExecSpec& spec, const sim::MachineConfig& machine) {
  const auto at = read_location(entry, machine);
  ExecSpec::Image image;
  if (at) {
    image.space = at->space;
    image.address = static_cast<std::uint64_t>(at->address);
  }
  const auto file = entry.find("file");
  const auto fill = entry.find("fill");
  const auto bytes = entry.find("bytes");
  if (file.has_value() == fill.has_value()) {
    entry.complain("a memory entry takes either 'file' or 'fill' with 'bytes'",
                   "write {space: am, address: 0, file: a.bin}");
  } else if (file) {
    read_file_image(entry, *file, at, spec, image);
  } else if (!bytes) {
    entry.complain("'fill' needs 'bytes'", "write {space: am, address: 0, fill: 0xFF, bytes: 256}");
  } else {
    const std::int64_t value = fill->as_integer();
    if (value < 0 || value > 255) fill->complain(fmt::format("{} is not a byte", value), "0 to 255");
    image.fill = static_cast<std::byte>(value);
    image.bytes = bytes->as_integer();
    fits(*bytes, at, image.bytes);
  }
  spec.memory.push_back(std::move(image));
}

void read_dump(const YamlNode& entry, ExecSpec& spec, const sim::MachineConfig& machine) {
  const auto at = read_location(entry, machine);
  ExecSpec::Dump dump;
  if (at) {
    dump.space = at->space;
    dump.address = static_cast<std::uint64_t>(at->address);
  }
  const YamlNode bytes = entry.require("bytes");
  if (!bytes.is_null()) {
    dump.bytes = bytes.as_integer();
    fits(bytes, at, dump.bytes);
  }
  const YamlNode file = entry.require("file");
  if (!file.is_null()) {
    dump.file = file.as_string();
    dump.path = relative_to(spec.path, dump.file);
    dump.writer = fmt::format("{}: the dump", file.place().str());
    try {
      sim::require_writable(dump.path, dump.writer);
    } catch (const sim::ConfigError& error) {
      file.complain(error.what());
    }
  }
  spec.dumps.push_back(std::move(dump));
}

/// Calls `read` for each entry of the optional list `key`.
template <class Read>
void for_each_entry(const YamlNode& root, std::string_view key, const Read& read) {
  const auto list = root.find(key);
  if (!list) return;
  if (!list->is_sequence()) {
    list->complain(fmt::format("'{}' must be a list", key), "start each entry with '- '");
    if (list->is_mapping()) list->keys();  // its keys are no mistakes of their own
    return;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const YamlNode entry = list->at(i);
    if (entry.is_mapping()) {
      read(entry);
    } else {
      entry.complain(fmt::format("an entry of '{}' must be a mapping", key), "write - {space: sm, address: 0, ...}");
    }
  }
}

}  // namespace

const char* to_string(sim::CoreMemory space) { return space == sim::CoreMemory::sm ? "sm" : "am"; }

ExecSpec load_exec_spec(const std::string& path, const sim::MachineConfig& machine) {
  const auto document = sim::YamlDocument::load(path);
  const YamlNode root = document.root();
  ExecSpec spec;
  spec.path = path;
  if (!root.is_mapping()) {
    root.complain("an exec spec is a mapping", "start with 'program: kernel.s'");
    document.finish();
  }

  const YamlNode program = root.require("program");
  std::string program_path;
  if (!program.is_null()) {
    program_path = relative_to(path, program.as_string());
    input_bytes(program, program_path);
  }
  isa::AssembleOptions options;
  options.pipeline = machine.pipeline;
  if (const auto operands = root.find("operands")) options.operands = read_operands(*operands);
  const auto entry = root.find("entry");
  if (entry) spec.entry = entry->as_string();
  if (const auto registers = root.find("registers")) read_registers(*registers, spec.registers);
  spec.registers.r[isa::k_return_register.index] = sim::k_return_address;
  for_each_entry(root, "memory", [&](const YamlNode& node) { read_image(node, spec, machine); });
  for_each_entry(root, "dump", [&](const YamlNode& node) { read_dump(node, spec, machine); });
  if (const auto max_cycles = root.find("max_cycles")) {
    spec.max_cycles = max_cycles->as_integer();
    if (spec.max_cycles < 1) max_cycles->complain(fmt::format("{} cycles", spec.max_cycles), "at least 1");
  }
  document.finish();

  spec.program = isa::assemble_file(program_path, options);
  if (entry && !spec.program.labels.contains(spec.entry)) {
    std::vector<std::string_view> labels;
    for (const auto& [label, packet] : spec.program.labels) labels.push_back(label);
    entry->complain(fmt::format("'{}' has no label '{}'", spec.program.file, spec.entry),
                    labels.empty() ? "it has no labels; leave 'entry' out to start at the first packet"
                                   : fmt::format("its labels: {}{}", fmt::join(labels, ", "),
                                                 isa::did_you_mean(spec.entry, labels)));
    document.finish();
  }
  return spec;
}

}  // namespace mtsim::scenarios
