// SPDX-License-Identifier: Apache-2.0
// Every number of the simulated machine, each with unit, source and plausible range (sim/machines/mt3000.yaml).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/instruction_table.h"
#include "sim/config/yaml.h"

namespace mtsim::sim {

enum class Provenance : std::uint8_t { paper, published, assumed, fitted };
const char* to_string(Provenance provenance);

/// The resolved machine in the units of its YAML file. Read it through the helpers below where code wants cycles or
/// bytes.
struct MachineConfig {
  std::string name;  // "mt3000"

  struct Core {
    double clock_ghz;               // 1.8
    std::int64_t sm_bytes;          // 65536
    std::int64_t am_bytes;          // 786432
    std::int64_t call_cycles;       // 7: the jump into a microkernel
    std::int64_t dma_issue_cycles;  // 40: scalar cost of programming a transfer
    std::int64_t dma_wait_cycles;   // 22: scalar cost of a wait that finds the transfer done
    std::int64_t verb_cycles;       // scalar cost of any other device-library verb (assumed)
    std::int64_t loop_cycles;       // scalar cost a DSP program charges per iteration of its loops (assumed)
  } core;

  struct Cluster {
    std::int64_t cores;          // 24
    std::int64_t gsm_bytes;      // 6 MiB
    double gsm_bandwidth_gb_s;   // 250, all ports together
    double port_bandwidth_gb_s;  // one core's DMA engine (assumed)
    double barrier_us;           // 0.1
    double launch_us;            // 30
  } cluster;

  struct Ddr {
    std::int64_t bytes;        // 20 GB usable per cluster
    double bandwidth_gb_s;     // 32, fitted
    double row_cost_ns;        // 0; occupies the DDR server per row of a strided transfer
    std::string memory_model;  // "bandwidth": which MemoryModel serves it
  } ddr;

  struct Dma {
    std::int64_t channels;           // 16 per core
    double start_us;                 // 0.05
    double broadcast_rendezvous_us;  // 6, fitted: blocks every participant after the last one called
    double broadcast_factor;         // 0.9: broadcast time / p2p time
  } dma;

  isa::Latencies latencies;  // overrides by mnemonic

  // Derived.
  double cycles_per_us() const { return core.clock_ghz * 1e3; }
  double bytes_per_cycle(double gb_s) const { return gb_s / core.clock_ghz; }
  double milliseconds(std::int64_t cycles) const { return static_cast<double>(cycles) / (core.clock_ghz * 1e6); }
  /// MAC per second of the whole cluster for one lane width: 2 for FP32, 4 for FP16 lanes per 64 bits.
  double peak_gmac_s(int lanes_per_word) const;
};

/// One line of `mtsim describe`: a key of MachineConfig, or a latency that a file or --set overrides.
struct MachineNumber {
  std::string key;    // "ddr.bandwidth_gb_s"
  std::string value;  // as resolved
  std::string unit;   // "GB/s"
  Provenance provenance;
  std::string source;                    // "FP32 half of Table VIII", ...
  double range_low = 0, range_high = 0;  // plausible, not enforced; 0, 0 for a text
  bool overridden = false;               // by extends or --set
};

/// A machine file, its base files and overrides, resolved.
class Machine {
 public:
  /// `name_or_path`: a file, or the name of a machine shipped in sim/machines. `sets`: "ddr.bandwidth_gb_s=60".
  /// Throws ConfigError.
  static Machine load(const std::string& name_or_path, const std::vector<std::string>& sets = {});
  /// As load, from text; `file` is its name in messages and what a relative `extends` starts from.
  static Machine parse(std::string_view text, const std::string& file, const std::vector<std::string>& sets = {});
  /// Names load() and `extends` know, sorted: $MTSIM_MACHINES, the source tree, the installation.
  static std::vector<std::string> shipped();

  const MachineConfig& config() const { return m_config; }
  const std::vector<MachineNumber>& numbers() const { return m_numbers; }
  const std::string& path() const { return m_path; }
  /// Changes one number as --set does. Throws ConfigError (unknown key with suggestion, type, range).
  void set(const std::string& key, const std::string& value);
  /// The value of a numeric key, latencies included ("latencies.VLDW"); ConfigError when unknown or a text.
  double get(const std::string& key) const;
  /// Hash of everything that decides timing.
  std::uint64_t fingerprint() const;

 private:
  friend class MachineReader;
  MachineConfig m_config;
  std::vector<MachineNumber> m_numbers;
  std::string m_path;
};

/// Writes a fitted value into a machine file in place: value, source (fitted) and from of one key; every other byte
/// stays. Throws ConfigError when the file has no such number written as a mapping.
void write_fitted(const std::string& path, const std::string& key, double value, const std::string& source);

}  // namespace mtsim::sim
