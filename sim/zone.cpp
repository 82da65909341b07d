// SPDX-License-Identifier: Apache-2.0
#include "sim/zone.h"

#include <fmt/format.h>

#include "sim/core.h"
#include "sim/observer.h"
#include "sim/time.h"

namespace mtsim::sim {

Costs::Costs(const MachineConfig& machine)
    : launch(microseconds_to_cycles(machine.cluster.launch_us, machine.cycles_per_us())),
      barrier(microseconds_to_cycles(machine.cluster.barrier_us, machine.cycles_per_us())),
      rendezvous(microseconds_to_cycles(machine.dma.broadcast_rendezvous_us, machine.cycles_per_us())),
      dma_start(microseconds_to_cycles(machine.dma.start_us, machine.cycles_per_us())),
      call(machine.core.call_cycles),
      dma_issue(machine.core.dma_issue_cycles),
      dma_wait(machine.core.dma_wait_cycles),
      verb(machine.core.verb_cycles),
      broadcast_exposed(machine.dma.broadcast_exposed != 0) {}

Zone::Zone(const MachineConfig& machine_config, const ClusterOptions& cluster_options)
    : machine(machine_config),
      options(cluster_options),
      costs(machine_config),
      memory_model(make_memory_model(machine_config)),
      memo(machine_config.pipeline),
      fabric("fabric"),
      gsm("gsm", Space::gsm, -1, machine_config.cluster.gsm_bytes),
      ddr("ddr", Space::ddr, -1, machine_config.ddr.bytes) {
  fabric.configure(machine);
  observe_fabric();
  if (options.hazards) hazards = std::make_unique<HazardMonitor>(static_cast<int>(machine.cluster.cores));
  for (int core = 0; core < machine.cluster.cores; ++core) {
    cores.push_back(std::make_unique<Core>(fmt::format("core{}", core).c_str(), *this, core));
  }
}

Zone::~Zone() = default;

Memory& Zone::memory(Pointer pointer) {
  if (pointer.space == Space::gsm) return gsm;
  if (pointer.space == Space::ddr) return ddr;
  if (pointer.core < 0 || pointer.core >= static_cast<int>(cores.size())) {
    throw SimError(fmt::format("{}: the cluster has no core {}, only cores 0 to {}", pointer.str(), pointer.core,
                               cores.size() - 1));
  }
  Core& core = *cores[pointer.core];
  return pointer.space == Space::sm ? core.sm : core.am;
}

std::int64_t Zone::launch_cycle() const { return now_cycles() - launch.start; }

void Zone::configure(const MachineConfig& machine_config, const ClusterOptions& cluster_options) {
  memory_model = make_memory_model(machine_config);
  machine = machine_config;
  options = cluster_options;
  costs = Costs(machine);
  hazards.reset();
  if (options.hazards) hazards = std::make_unique<HazardMonitor>(static_cast<int>(machine.cluster.cores));
  memo.set_latencies(machine.pipeline);
  fabric.configure(machine);
  observe_fabric();
}

void Zone::observe_fabric() {
  fabric.on_shares = nullptr;
  if (options.observer == nullptr) return;
  fabric.on_shares = [this](std::int64_t cycle, const Fabric::Shares& shares) {
    const auto ports = shares.ports.first(static_cast<std::size_t>(launch.group_size));
    options.observer->rates(cycle - launch.start, {shares.ddr, shares.gsm, ports});
  };
}

void Zone::clear_memories() {
  gsm.clear();
  ddr.clear();
  if (hazards) hazards->forget_memories();
  for (auto& core : cores) {
    core->sm.clear();
    core->am.clear();
  }
}

void Zone::abort() {
  launch.aborted = true;
  fabric.drop_all();
  barrier.clear();
  broadcast.clear();
  row_sync.clear();
  for (auto& core : cores) core->wake();
}

}  // namespace mtsim::sim
