// SPDX-License-Identifier: Apache-2.0
#include "sim/dsp.h"

#include "sim/core.h"
#include "sim/zone.h"

namespace mtsim::sim {

int Dsp::thread_id() const { return m_core.index(); }
int Dsp::group_size() const { return m_core.zone().launch.group_size; }
const MachineConfig& Dsp::machine() const { return m_core.zone().machine; }

Pointer Dsp::vector_malloc(std::int64_t bytes, Source from) { return m_core.at(from).allocate(Space::am, bytes); }
Pointer Dsp::scalar_malloc(std::int64_t bytes, Source from) { return m_core.at(from).allocate(Space::sm, bytes); }
void Dsp::free_all(Source from) { m_core.at(from).free_all(); }

int Dsp::dma_p2p(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows, bool row_syn,
                 std::uint64_t synmask, Source from) {
  return m_core.at(from).dma_p2p({source, source_rows, destination, destination_rows}, row_syn, synmask);
}

int Dsp::raw_dma_p2p(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows, int priority,
                     int channel, Source from) {
  return m_core.at(from).raw_dma_p2p({source, source_rows, destination, destination_rows}, priority, channel);
}

int Dsp::dma_broadcast(Pointer source, Rows source_rows, Pointer destination, Rows destination_rows, int barrier_id,
                       Source from) {
  return m_core.at(from).dma_broadcast({source, source_rows, destination, destination_rows}, barrier_id);
}

void Dsp::dma_wait(int channel, Source from) { m_core.at(from).dma_wait(channel); }
bool Dsp::dma_query(int channel, Source from) { return m_core.at(from).dma_query(channel); }
void Dsp::set_priority(int priority) { m_core.set_priority(priority); }
void Dsp::group_barrier(int id, Source from) { m_core.at(from).group_barrier(id); }

void Dsp::call(const Kernel& kernel, std::initializer_list<Argument> arguments, Source from) {
  m_core.at(from).call(kernel, {arguments.begin(), arguments.size()});
}
void Dsp::call(const Kernel& kernel, std::span<const Argument> arguments, Source from) {
  m_core.at(from).call(kernel, arguments);
}

void Dsp::scalar_work(std::int64_t cycles) {
  if (cycles < 0) m_core.refuse("scalar_work", std::to_string(cycles) + " cycles is negative");
  m_core.charge(CycleClass::scalar_assumed, cycles);
}

std::int64_t Dsp::now() const { return m_core.now(); }
const CoreReport& Dsp::counters() const { return m_core.report(); }
const PathBytes& Dsp::moved() const { return m_core.zone().launch.bytes; }

}  // namespace mtsim::sim
