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
    double clock_ghz;               // of the DSP cores; a cycle is one of these everywhere
    std::int64_t sm_bytes;          // scalar memory of a core
    std::int64_t am_bytes;          // vector memory of a core
    std::int64_t call_cycles;       // the jump into a microkernel
    std::int64_t dma_issue_cycles;  // scalar cost of programming a transfer
    std::int64_t dma_wait_cycles;   // scalar cost of a wait that finds the transfer done
    std::int64_t verb_cycles;       // scalar cost of any other device-library verb
    std::int64_t loop_cycles;       // scalar cost a DSP program charges per iteration of its loops
  } core;

  struct Cluster {
    std::int64_t cores;
    std::int64_t gsm_bytes;      // memory the cores share
    double gsm_bandwidth_gb_s;   // of all cores together
    double port_bandwidth_gb_s;  // of one core's DMA engine
    double barrier_us;           // from the last arrival until all go on
    double launch_us;            // from the host's launch until the DSP program starts
  } cluster;

  struct Ddr {
    std::int64_t bytes;           // the cluster's share of the main memory
    std::int64_t overhead_bytes;  // of it, neither weights nor KV cache: activations, sums (Overhead of eq. 16)
    double bandwidth_gb_s;        // of all cores together
    double row_cost_ns;           // keeps the DDR busy for each row of a strided transfer
    std::string memory_model;     // name of the MemoryModel that serves it
  } ddr;

  struct Dma {
    std::int64_t channels;           // logical channels of a core
    double start_us;                 // from issue until the first byte moves
    double broadcast_rendezvous_us;  // blocks every participant after the last one called
    double broadcast_factor;         // broadcast time / p2p time of the same bytes
    std::int64_t broadcast_exposed;  // 1: the verb returns when its bytes have arrived; 0: they move until dma_wait
  } dma;

  struct Device {
    std::int64_t clusters;  // acceleration zones of one device (Fig. 2a)
  } device;

  /// A message between two clusters, from the sender's DDR to the receiver's: latency, then bytes at the bandwidth.
  struct Link {
    double device_latency_us;       // between clusters of one device
    double device_bandwidth_gb_s;   //   what one cluster sends, and what it receives
    double network_latency_us;      // between devices
    double network_bandwidth_gb_s;  //   likewise, of a cluster
  } link;

  struct Host {
    double iteration_us;  // CPU work before each iteration of a pool: scheduling, descriptors
    double request_us;    // and of each request in it: sampling, bookkeeping
  } host;

  isa::Pipeline pipeline;  // latencies by mnemonic, and the issue slots that are there (core.absent_units)

  // Derived.
  double cycles_per_us() const { return core.clock_ghz * 1e3; }
  double bytes_per_cycle(double gb_s) const { return gb_s / core.clock_ghz; }
  double milliseconds(std::int64_t cycles) const { return static_cast<double>(cycles) / (core.clock_ghz * 1e6); }
  /// MAC per second of the whole cluster, of the VMACs that are there, for one lane width: 2 for FP32, 4 for FP16 lanes
  /// per 64 bits.
  double peak_gmac_s(int lanes_per_word) const;
};

/// One line of `mtsim describe`: a key of MachineConfig, or a latency that a file or --set overrides.
struct MachineNumber {
  std::string key;    // "ddr.bandwidth_gb_s"
  std::string value;  // as resolved
  std::string unit;   // "GB/s"
  Provenance provenance;
  std::string source;                    // "FP32 half of Table VIII", ...
  double range_low = 0, range_high = 0;  // plausible, not enforced; 0, 0 for a text or list
  bool overridden = false;               // by extends or --set
  std::string before;                    // the value that was overridden first
};

/// A machine file, its base files and overrides, resolved.
class Machine {
 public:
  /// `name_or_path`: a file, or the name of a machine shipped in sim/machines. `sets`: "ddr.bandwidth_gb_s=60".
  /// Throws ConfigError.
  static Machine load(const std::string& name_or_path, const std::vector<std::string>& sets = {});
  /// As load, from text; `file` is its name in messages and what a relative `extends` starts from.
  static Machine parse(std::string_view text, const std::string& file, const std::vector<std::string>& sets = {});

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
  MachineConfig m_config{};
  std::vector<MachineNumber> m_numbers;
  std::string m_path;
};

struct FittedNumber {
  std::string key;
  double value = 0;
  std::string source;  // what it was fitted to
};

/// Who writes a machine file, for isa::FileUse.
inline constexpr const char* k_fit_writer = "--write";

/// Writes fitted values into a machine file in place: value, source (fitted) and from of each key; every other byte
/// stays. All are written or none. Throws ConfigError when the file has no such number written as a mapping.
void write_fitted(const std::string& path, const std::vector<FittedNumber>& numbers);
void write_fitted(const std::string& path, const std::string& key, double value, const std::string& source);
/// Throws what write_fitted would throw for a file that cannot take these keys; writes nothing.
void require_fittable(const std::string& path, const std::vector<std::string>& keys);

}  // namespace mtsim::sim
