// SPDX-License-Identifier: Apache-2.0
// The one place that ties a key of a machine file to its member, unit and possible values. Private to sim/config.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sim/config/machine.h"
#include "sim/config/scalar.h"

namespace mtsim::sim {

/// Values a machine can have at all; plausible ranges are in the file and not enforced.
struct Possible {
  double low = 0, high = 0;
  bool above_low = false;  // low itself is impossible

  bool contains(double value) const { return (above_low ? value > low : value >= low) && value <= high; }
  std::string str() const;  // "above 0 and at most 100"
};

struct MachineField {
  std::string_view key;                                                       // "ddr.bandwidth_gb_s"
  std::string_view unit;                                                      // "" for a text or list
  std::variant<std::int64_t*, double*, std::string*, isa::Pipeline*> member;  // of the pipeline: the absent units
  Possible possible;                                                          // of a number

  bool is_text() const { return std::holds_alternative<std::string*>(member); }
  bool is_list() const { return std::holds_alternative<isa::Pipeline*>(member); }
  bool is_number() const { return !is_text() && !is_list(); }
  std::string_view section() const { return key.substr(0, key.find('.')); }
  std::string_view name() const { return key.substr(key.find('.') + 1); }
  double number() const;      // precondition: is_number()
  std::string value() const;  // as `describe` shows it; a list as "[VMAC3, VLDST2]"
  /// Sets the member from the text of a scalar, or says what is wrong with it. A list is written as value() shows it,
  /// the brackets may be missing.
  std::optional<Problem> assign(std::string_view text) const;
};

/// Every key of a machine file but `name`, `extends` and the latencies, bound to `config`, in the order of the file.
std::vector<MachineField> machine_fields(MachineConfig& config);

/// What is wrong with an entry of core.absent_units, if anything.
std::optional<Problem> check_unit_name(std::string_view name);

/// What to say about a key that is none of these.
Problem unknown_machine_key(std::string_view key);

/// The latencies key for SADDA and SSUBA to AR8-15, beside the mnemonics.
inline constexpr std::string_view k_scalar_address_key = "SADDA_AR8_15";

/// Every key the latencies section takes.
std::vector<std::string_view> latency_keys();
/// Precondition: a key of latency_keys().
int latency(const isa::Pipeline& pipeline, std::string_view key);
/// What is wrong with a key of the latencies section, if anything.
std::optional<Problem> check_latency_key(std::string_view key);
/// Overrides one latency, or says what is wrong with the value. Precondition: a key of latency_keys().
std::optional<Problem> assign_latency(isa::Pipeline& pipeline, std::string_view key, std::string_view text);

}  // namespace mtsim::sim
