// SPDX-License-Identifier: Apache-2.0
// Any bytes as YAML, as a machine file, as a what-if over mt3000 and as a --set: a value or a ConfigError, nothing
// else.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "sim/config/machine.h"
#include "sim/config/scalar.h"
#include "sim/config/yaml.h"

namespace {

using namespace mtsim::sim;

/// Reads the node as everything it can be asked for.
void read(const YamlNode& node) {
  node.place();
  node.as_string();
  node.as_integer();
  node.as_number();
  node.as_boolean();
  for (std::size_t i = 0; node.is_sequence() && i < node.size(); ++i) read(node.at(i));
  if (!node.is_mapping()) return;
  for (const auto& key : node.keys()) read(node.require(key));
  node.find("absent");
}

void require(bool condition) {
  if (!condition) std::abort();
}

void check_scalar(std::string_view text) {
  scan_boolean(text);
  if (const auto integer = scan_integer(text); integer.value)
    require(scan_integer(std::to_string(*integer.value)).value == integer.value);
  if (const auto number = scan_number(text); number.value)
    require(scan_number(shortest(*number.value)).value == number.value);
}

template <class Action>
void run(Action action) {
  try {
    action();
  } catch (const ConfigError& error) {
    require(!error.diagnostics().empty() && *error.what() != '\0');
  }
}

}  // namespace

// The first byte chooses what the others are: reading mt3000 for each what-if is by far the slowest part.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  static const Machine base = Machine::load("mt3000");
  switch (data[0] % 4) {
    case 0:
      check_scalar(text);
      run([&] {
        const auto document = YamlDocument::parse(text, "fuzz.yaml");
        read(document.root());
        document.finish();
      });
      break;
    case 1: run([&] { Machine::parse(text, "fuzz.yaml"); }); break;
    case 2:
      run([&] {
        const auto machine = Machine::parse("extends: mt3000\n" + text, "fuzz.yaml");
        require(machine.numbers().size() >= base.numbers().size());
        machine.fingerprint();
      });
      break;
    case 3:
      run([&] {
        auto machine = base;
        const auto equals = text.find('=');
        machine.set(text.substr(0, equals), equals == text.npos ? "" : text.substr(equals + 1));
      });
      break;
  }
  return 0;
}
