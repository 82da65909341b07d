// SPDX-License-Identifier: Apache-2.0
#include "zone_bench.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "isa/assembler.h"

namespace mtsim::sim {

MachineConfig bench_machine() {
  MachineConfig machine{};
  machine.name = "bench";
  machine.core = {.clock_ghz = 1.0,
                  .sm_bytes = 65536,
                  .am_bytes = 786432,
                  .call_cycles = k_call,
                  .dma_issue_cycles = k_issue,
                  .dma_wait_cycles = k_wait,
                  .verb_cycles = k_verb,
                  .loop_cycles = 10};
  machine.cluster = {.cores = k_cores,
                     .gsm_bytes = 6 << 20,
                     .gsm_bandwidth_gb_s = k_gsm,
                     .port_bandwidth_gb_s = k_port,
                     .barrier_us = 0.1,
                     .launch_us = 1};
  machine.ddr = {
      .bytes = std::int64_t{20} << 30, .bandwidth_gb_s = k_ddr, .row_cost_ns = 0, .memory_model = "bandwidth"};
  machine.dma = {.channels = 16,
                 .start_us = 0.05,
                 .broadcast_rendezvous_us = 0.2,
                 .broadcast_factor = 0.9,
                 .broadcast_exposed = 0};
  return machine;
}

Cluster& fresh(const ClusterOptions& options, const MachineConfig& machine) {
  ::setenv("MTSIM_MEMO", "off", 0);  // nothing learnt by another process
  static Cluster cluster(bench_machine());
  cluster.reset(machine, options);
  return cluster;
}

std::string refusal(Cluster& cluster, const DspProgram& program, int cores) {
  try {
    cluster.launch(program, cores);
  } catch (const SimError& error) {
    return error.what();
  }
  FAIL("no SimError");
  return "";
}

std::vector<std::byte> numbers(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 7 + i / 256 + 1);
  return data;
}

std::vector<std::byte> read(Cluster& cluster, Pointer source, std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  cluster.read(source, data);
  return data;
}

Kernel load(Cluster& cluster, const std::string& text, const std::string& entry) {
  return cluster.load(isa::assemble(text, "bench.s"), entry);
}

}  // namespace mtsim::sim
