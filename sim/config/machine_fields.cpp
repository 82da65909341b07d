// SPDX-License-Identifier: Apache-2.0
#include "sim/config/machine_fields.h"

#include <algorithm>
#include <stdexcept>

namespace mtsim::sim {

namespace {

constexpr Possible between(double low, double high) { return {low, high, false}; }
constexpr Possible above_zero(double high) { return {0, high, true}; }

constexpr double k_gib = 1024.0 * 1024 * 1024;
constexpr double k_most_cycles = 1e6;  // of one fixed cost
constexpr double k_most_us = 1e6;      // a second
constexpr double k_least_gb_s = 1e-3;  // below, the cycles of one transfer leave 64 bits
constexpr double k_most_gb_s = 1e5;

constexpr isa::Register k_scalar_address{isa::RegisterFile::AR, 8};

std::string absent_units(const isa::Pipeline& pipeline) {
  std::string list;
  for (int u = 0; u < isa::k_units; ++u) {
    const auto unit = static_cast<isa::Unit>(u);
    if (pipeline.units() & isa::mask(unit)) continue;
    list += (list.empty() ? "" : ", ") + std::string(isa::name(unit));
  }
  return "[" + list + "]";
}

std::vector<std::string_view> list_items(std::string_view text) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> items;
  constexpr std::string_view k_space = " \t";
  while (text.find_first_not_of(k_space) != std::string_view::npos) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    item.remove_prefix(std::min(item.find_first_not_of(k_space), item.size()));
    items.push_back(item.substr(0, item.find_last_not_of(k_space) + 1));
  }
  return items;
}

std::optional<Problem> assign_absent_units(isa::Pipeline& pipeline, std::string_view text) {
  isa::Pipeline changed = pipeline;
  changed.restore_units();
  for (const std::string_view item : list_items(text)) {
    if (auto problem = check_unit_name(item)) return problem;
    try {
      changed.remove(*isa::find_unit(item));
    } catch (const std::invalid_argument& error) {
      return Problem{"no machine lacks " + std::string(text), error.what()};
    }
  }
  pipeline = changed;
  return std::nullopt;
}

}  // namespace

std::string Possible::str() const {
  return (above_low ? "above " : "at least ") + shortest(low) + " and at most " + shortest(high);
}

std::vector<MachineField> machine_fields(MachineConfig& c) {
  return {
      // key, unit, member, possible values
      // clang-format off
      {"core.clock_ghz",              "GHz",      &c.core.clock_ghz,              between(1e-3, 100)},
      {"core.sm_bytes",               "B",        &c.core.sm_bytes,               between(256, k_gib)},
      {"core.am_bytes",               "B",        &c.core.am_bytes,               between(256, k_gib)},
      {"core.call_cycles",            "cycles",   &c.core.call_cycles,            between(0, k_most_cycles)},
      {"core.dma_issue_cycles",       "cycles",   &c.core.dma_issue_cycles,       between(0, k_most_cycles)},
      {"core.dma_wait_cycles",        "cycles",   &c.core.dma_wait_cycles,        between(0, k_most_cycles)},
      {"core.verb_cycles",            "cycles",   &c.core.verb_cycles,            between(0, k_most_cycles)},
      {"core.loop_cycles",            "cycles",   &c.core.loop_cycles,            between(0, k_most_cycles)},
      {"core.absent_units",           "",         &c.pipeline,                    {}},
      {"cluster.cores",               "cores",    &c.cluster.cores,               between(1, 64)},
      {"cluster.gsm_bytes",           "B",        &c.cluster.gsm_bytes,           between(256, 64 * k_gib)},
      {"cluster.gsm_bandwidth_gb_s",  "GB/s",     &c.cluster.gsm_bandwidth_gb_s,  between(k_least_gb_s, k_most_gb_s)},
      {"cluster.port_bandwidth_gb_s", "GB/s",     &c.cluster.port_bandwidth_gb_s, between(k_least_gb_s, k_most_gb_s)},
      {"cluster.barrier_us",          "us",       &c.cluster.barrier_us,          between(0, k_most_us)},
      {"cluster.launch_us",           "us",       &c.cluster.launch_us,           between(0, k_most_us)},
      {"ddr.bytes",                   "B",        &c.ddr.bytes,                   between(256, 4096 * k_gib)},
      {"ddr.overhead_bytes",          "B",        &c.ddr.overhead_bytes,          between(0, 4096 * k_gib)},
      {"ddr.bandwidth_gb_s",          "GB/s",     &c.ddr.bandwidth_gb_s,          between(k_least_gb_s, k_most_gb_s)},
      {"ddr.row_cost_ns",             "ns",       &c.ddr.row_cost_ns,             between(0, 1e9)},
      {"ddr.memory_model",            "",         &c.ddr.memory_model,            {}},
      {"dma.channels",                "count",    &c.dma.channels,                between(1, 64)},
      {"dma.start_us",                "us",       &c.dma.start_us,                between(0, k_most_us)},
      {"dma.broadcast_rendezvous_us", "us",       &c.dma.broadcast_rendezvous_us, between(0, k_most_us)},
      {"dma.broadcast_factor",        "ratio",    &c.dma.broadcast_factor,        above_zero(100)},
      {"dma.broadcast_exposed",       "flag",     &c.dma.broadcast_exposed,       between(0, 1)},
      {"device.clusters",             "clusters", &c.device.clusters,             between(1, 64)},
      {"link.device_latency_us",      "us",       &c.link.device_latency_us,      between(0, k_most_us)},
      {"link.device_bandwidth_gb_s",  "GB/s",     &c.link.device_bandwidth_gb_s,  between(k_least_gb_s, k_most_gb_s)},
      {"link.network_latency_us",     "us",       &c.link.network_latency_us,     between(0, k_most_us)},
      {"link.network_bandwidth_gb_s", "GB/s",     &c.link.network_bandwidth_gb_s, between(k_least_gb_s, k_most_gb_s)},
      {"host.iteration_us",           "us",       &c.host.iteration_us,           between(0, k_most_us)},
      {"host.request_us",             "us",       &c.host.request_us,             between(0, k_most_us)},
      // clang-format on
  };
}

std::optional<Problem> check_unit_name(std::string_view name) {
  if (isa::find_unit(name)) return std::nullopt;
  const std::string close = isa::closest(name, isa::k_unit_names);
  std::string list;
  for (const std::string_view unit : isa::k_unit_names) list += (list.empty() ? "" : ", ") + std::string(unit);
  return Problem{"unknown unit " + in_quotes(name),
                 close.empty() ? "the units are " + list : "did you mean '" + close + "'?"};
}

Problem unknown_machine_key(std::string_view key) {
  const std::string message = "unknown key " + in_quotes(key);
  MachineConfig config{};
  std::vector<std::string_view> keys;
  std::string list;
  for (const auto& field : machine_fields(config)) {
    if (field.name() == key) return {message, "did you mean '" + std::string(field.key) + "'?"};  // without its section
    keys.push_back(field.key);
    list += std::string(field.key) + ", ";
  }
  const auto close = isa::closest(key, keys);
  return {message, close.empty() ? "known keys: " + list + "latencies.MNEMONIC" : "did you mean '" + close + "'?"};
}

double MachineField::number() const {
  if (const auto* integer = std::get_if<std::int64_t*>(&member)) return static_cast<double>(**integer);
  return **std::get_if<double*>(&member);
}

std::string MachineField::value() const {
  if (const auto* text = std::get_if<std::string*>(&member)) return **text;
  if (const auto* pipeline = std::get_if<isa::Pipeline*>(&member)) return absent_units(**pipeline);
  if (const auto* integer = std::get_if<std::int64_t*>(&member)) return std::to_string(**integer);
  return shortest(number());
}

std::optional<Problem> MachineField::assign(std::string_view text) const {
  if (const auto* member_text = std::get_if<std::string*>(&member)) {
    if (text.empty()) return Problem{"expected a name, found ''", ""};
    **member_text = std::string(text);
    return std::nullopt;
  }
  if (auto* const* pipeline = std::get_if<isa::Pipeline*>(&member)) return assign_absent_units(**pipeline, text);
  const auto check = [&](const auto& scanned) -> std::optional<Problem> {
    if (!scanned.value) return scanned.problem;
    if (possible.contains(static_cast<double>(*scanned.value))) return std::nullopt;
    return Problem{"no machine has " + std::string(text) + " " + std::string(unit),
                   "a possible value is " + possible.str()};
  };
  if (auto* const* integer = std::get_if<std::int64_t*>(&member)) {
    const auto scanned = scan_integer(text);
    if (auto problem = check(scanned)) return problem;
    **integer = *scanned.value;
    return std::nullopt;
  }
  const auto scanned = scan_number(text);
  if (auto problem = check(scanned)) return problem;
  **std::get_if<double*>(&member) = *scanned.value;
  return std::nullopt;
}

std::vector<std::string_view> latency_keys() {
  std::vector<std::string_view> keys;
  for (const auto& row : isa::instruction_table())
    if (row.id != isa::Mnemonic::SNOP && !isa::is_store(row.format)) keys.push_back(row.mnemonic);
  keys.push_back(k_scalar_address_key);
  return keys;
}

int latency(const isa::Pipeline& pipeline, std::string_view key) {
  if (key == k_scalar_address_key) return pipeline.of(isa::row(isa::Mnemonic::SADDA), k_scalar_address);
  return pipeline.of(*isa::find_row(key));
}

std::optional<Problem> check_latency_key(std::string_view key) {
  const auto keys = latency_keys();
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return std::nullopt;
  const std::string quoted = in_quotes(key);
  const auto* row = isa::find_row(key);
  if (row == nullptr) {
    const std::string close = isa::closest(key, keys);
    return Problem{"unknown mnemonic " + quoted,
                   close.empty() ? "use a mnemonic of the instruction table" : "did you mean '" + close + "'?"};
  }
  if (row->mnemonic != key) return Problem{"unknown mnemonic " + quoted, "write '" + std::string(row->mnemonic) + "'"};
  return Problem{quoted + " has no latency", "a store commits at issue, and SNOP idles for as long as it says"};
}

std::optional<Problem> assign_latency(isa::Pipeline& pipeline, std::string_view key, std::string_view text) {
  const auto cycles = scan_integer(text);
  if (!cycles.value) return cycles.problem;
  if (*cycles.value < 1 || *cycles.value > isa::k_max_latency)
    return Problem{"no machine has a latency of " + std::string(text) + " cycles",
                   "a possible value is at least 1 and at most " + std::to_string(isa::k_max_latency)};
  if (key == k_scalar_address_key)
    pipeline.override_scalar_address(static_cast<int>(*cycles.value));
  else
    pipeline.override(isa::find_row(key)->id, static_cast<int>(*cycles.value));
  return std::nullopt;
}

}  // namespace mtsim::sim
