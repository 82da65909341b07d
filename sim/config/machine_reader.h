// SPDX-License-Identifier: Apache-2.0
// Resolves a machine file, its bases and overrides. Private to sim/config.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/config/machine.h"
#include "sim/config/machine_fields.h"
#include "sim/config/yaml.h"

namespace mtsim::sim {

class MachineReader {
 public:
  /// Throws ConfigError with every mistake of `text`, or of the first base file that has any.
  Machine read(std::string_view text, const std::string& file);

  /// Changes one number; `by` tells describe who did ("--set"). Says what is wrong, if anything.
  static std::optional<Problem> set(Machine& machine, std::string_view key, std::string_view value,
                                    std::string_view by);

 private:
  /// The machine a file extends; nothing after a complaint.
  std::optional<Machine> read_base(const YamlNode& extends, const std::string& file);
  void read_sections(const YamlNode& root, Machine& machine);
  void read_number(const YamlNode& node, const MachineField& field, MachineNumber& number);
  void read_latencies(const YamlNode& section, Machine& machine);
  /// unit, source, from and range of a number written as a mapping.
  void read_facts(const YamlNode& node, bool required, MachineNumber& number);
  std::string set_in_file(const std::string& value_before) const;

  std::vector<std::string> m_chain;  // files being read, outermost first
  // Of the file being read, once its base is known.
  bool m_complete = false;  // it extends nothing and says everything
  std::string m_file;       // without its folder
  std::string m_base;       // the name of the machine it extends
};

}  // namespace mtsim::sim
