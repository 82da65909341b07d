// SPDX-License-Identifier: Apache-2.0
#include "sim/dma_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "sim/core.h"
#include "sim/observer.h"
#include "sim/time.h"
#include "sim/zone.h"

namespace mtsim::sim {
namespace {

constexpr int k_poison = 0xFF;  // a NaN in every format

bool on_chip(Pointer pointer) { return pointer.space == Space::sm || pointer.space == Space::am; }

std::uint64_t bit(int core) { return std::uint64_t{1} << core; }

std::string rows_text(const Rows& rows) {
  return fmt::format("{} rows of {} bytes, step {}", rows.count, rows.bytes, rows.step);
}

void fill(std::span<std::byte> memory, Pointer pointer, const Rows& rows) {
  for (std::int64_t row = 0; row < rows.count; ++row) {
    std::memset(memory.data() + pointer.offset + row * rows.pitch(), k_poison, static_cast<std::size_t>(rows.bytes));
  }
}

/// The byte streams of both sides are the same; their rows need not be.
void copy(std::span<const std::byte> from, Pointer source, const Rows& source_rows, std::span<std::byte> to,
          Pointer destination, const Rows& destination_rows) {
  const std::byte* read = from.data() + source.offset;
  std::byte* write = to.data() + destination.offset;
  std::int64_t read_left = source_rows.bytes, write_left = destination_rows.bytes;
  for (std::int64_t left = source_rows.total_bytes(); left > 0;) {
    const std::int64_t piece = std::min(read_left, write_left);
    std::memmove(write, read, static_cast<std::size_t>(piece));
    left -= piece;
    read += piece;
    write += piece;
    if ((read_left -= piece) == 0) {
      read += source_rows.step;
      read_left = source_rows.bytes;
    }
    if ((write_left -= piece) == 0) {
      write += destination_rows.step;
      write_left = destination_rows.bytes;
    }
  }
}

}  // namespace

std::string Move::str() const {
  return fmt::format("{} -> {}, {} bytes", source.str(), destination.str(), source_rows.total_bytes());
}

DmaEngine::DmaEngine(Core& core, Zone& zone) : m_core(core), m_zone(zone) {}

void DmaEngine::reset() {
  m_channels.resize(static_cast<std::size_t>(m_zone.machine.dma.channels));  // an earlier machine may have had others
  for (int channel = 0; channel < channels(); ++channel) {
    m_channels[channel].state = State::idle;
    Fabric::Transfer& transfer = m_channels[channel].transfer;
    transfer.listener = this;
    transfer.core = m_core.index();
    transfer.channel = channel;
  }
}

void DmaEngine::check_side(const char* verb, const char* side, Pointer pointer, const Rows& rows) const {
  if (rows.count < 1 || rows.bytes < 1) {
    m_core.refuse(verb, fmt::format("the {} {} has {}: nothing to move; leave empty transfers out", side, pointer.str(),
                                    rows_text(rows)));
  }
  if (rows.step < -rows.bytes) {
    m_core.refuse(verb, fmt::format("the {} {} ({}) runs backwards; a step of -{} repeats the row", side, pointer.str(),
                                    rows_text(rows), rows.bytes));
  }
  const Memory& memory = m_zone.memory(pointer);
  const std::int64_t size = memory.size();
  std::int64_t pitch = 0, total = 0, reach = 0, end = 0;
  const bool too_large =
      rows.count > size || __builtin_add_overflow(rows.bytes, rows.step, &pitch) ||
      __builtin_mul_overflow(rows.count, rows.bytes, &total) || __builtin_mul_overflow(rows.count - 1, pitch, &reach) ||
      __builtin_add_overflow(reach, rows.bytes, &reach) || __builtin_add_overflow(reach, pointer.offset, &end);
  if (too_large || end > size) {
    m_core.refuse(verb, fmt::format("the {} {} ({}) does not fit in the {} bytes of this memory{}", side, pointer.str(),
                                    rows_text(rows), size,
                                    too_large ? "" : fmt::format(", it ends {} bytes beyond", end - size)));
  }
}

void DmaEngine::check(const char* verb, const Move& move) const {
  check_side(verb, "source", move.source, move.source_rows);
  check_side(verb, "destination", move.destination, move.destination_rows);
  if (move.source_rows.total_bytes() != move.destination_rows.total_bytes()) {
    m_core.refuse(
        verb,
        fmt::format("the source {} has {} bytes ({}) but the destination {} has {} ({}); both totals must agree",
                    move.source.str(), move.source_rows.total_bytes(), rows_text(move.source_rows),
                    move.destination.str(), move.destination_rows.total_bytes(), rows_text(move.destination_rows)));
  }
  if (on_chip(move.source) && on_chip(move.destination) && move.source.space != move.destination.space &&
      move.source.core == move.destination.core) {
    m_core.refuse(verb, fmt::format("no path from {} to {}: AM and SM of one core are not connected; go through GSM",
                                    move.source.str(), move.destination.str()));
  }
}

void DmaEngine::check_channel(const char* verb, int channel) const {
  if (channel < 0 || channel >= channels()) {
    m_core.refuse(verb, fmt::format("channel {} does not exist; a core has channels 0 to {}", channel, channels() - 1));
  }
}

int DmaEngine::free_channel(const char* verb) const {
  for (int channel = 0; channel < channels(); ++channel) {
    if (m_channels[channel].state == State::idle) return channel;
  }
  std::string outstanding;
  for (int channel = 0; channel < channels(); ++channel) {
    outstanding += fmt::format("\n  channel {}: {}", channel, describe(channel));
  }
  m_core.refuse(verb, fmt::format("all {} channels are taken; wait for one of them first:{}", channels(), outstanding));
}

DmaEngine::Channel& DmaEngine::take(int index, const Move& move, int priority) {
  Channel& channel = m_channels[index];
  channel.state = State::busy;
  channel.move = move;
  channel.issued = m_core.now();
  channel.mask = 0;
  channel.audience.clear();
  channel.transfer.priority = priority;
  if (m_zone.functional() && m_zone.options.poison) {
    fill(m_zone.memory(move.destination).bytes(), move.destination, move.destination_rows);
  }
  return channel;
}

void DmaEngine::add_work(Fabric::Transfer& transfer, std::int64_t start_cycle, Pointer pointer, const Rows& rows,
                         bool is_write, int row_sharers, double factor) const {
  switch (pointer.space) {
    case Space::ddr: {
      const MemoryModel::Request request{pointer.offset, rows.count, rows.bytes, rows.pitch(), is_write, row_sharers};
      transfer.ddr_cycles += factor * m_zone.memory_model->service_cycles(request);
      if (Observer* observer = m_zone.options.observer) {
        observer->dram_request(start_cycle - m_zone.launch.start, transfer.core, transfer.channel, request);
      }
      break;
    }
    case Space::gsm: transfer.gsm_bytes += factor * static_cast<double>(rows.total_bytes()); break;
    case Space::sm:
    case Space::am: transfer.ports |= bit(pointer.core); break;
  }
}

void DmaEngine::start(Channel& channel, int row_sharers) {
  const Move& move = channel.move;
  Fabric::Transfer& transfer = channel.transfer;
  const std::int64_t bytes = move.source_rows.total_bytes();
  transfer.port_bytes = static_cast<double>(bytes);
  transfer.ddr_cycles = 0;
  transfer.gsm_bytes = 0;
  transfer.ports = bit(m_core.index());
  const std::int64_t start_cycle = now_cycles() + m_zone.costs.dma_start;
  add_work(transfer, start_cycle, move.source, move.source_rows, false, row_sharers, 1.0);
  add_work(transfer, start_cycle, move.destination, move.destination_rows, true, row_sharers, 1.0);

  const auto from = static_cast<std::size_t>(move.source.space), to = static_cast<std::size_t>(move.destination.space);
  m_zone.launch.bytes.read[from][to] += bytes;
  m_zone.launch.bytes.written[from][to] += bytes;
  ++m_zone.launch.dma_transfers;
  m_zone.fabric.submit(transfer, start_cycle);
}

void DmaEngine::issue(int channel, const Move& move, int priority) { start(take(channel, move, priority), 1); }

void DmaEngine::issue_synchronised(int channel, const Move& move, int priority, std::uint64_t mask) {
  take(channel, move, priority).mask = mask;
  const int sharers = std::popcount(mask);
  const std::vector<ChannelRef> members = m_zone.row_sync.join(mask, {m_core.index(), channel});
  if (m_zone.hazards && !members.empty()) m_zone.hazards->group_starts(members);
  if (Observer* observer = m_zone.options.observer; observer != nullptr && !members.empty()) {
    observer->group_met(members);
  }
  for (const ChannelRef& member : members) {
    DmaEngine& engine = m_zone.cores[member.core]->dma;
    Channel& ready = engine.m_channels[member.channel];
    ready.mask = 0;
    engine.start(ready, sharers);
  }
}

void DmaEngine::join_broadcast(int channel, const Move& move) { take(channel, move, 0); }

void DmaEngine::start_broadcast(Zone& zone, const std::vector<BroadcastMeeting::Arrival>& arrivals,
                                std::int64_t delay) {
  const ChannelRef first = arrivals.front().ref;
  DmaEngine& leader = zone.cores[first.core]->dma;
  Channel& channel = leader.m_channels[first.channel];
  Fabric::Transfer& transfer = channel.transfer;
  const Pointer source = channel.move.source;
  const std::int64_t bytes = channel.move.source_rows.total_bytes();
  const double factor = zone.machine.dma.broadcast_factor;
  transfer.port_bytes = factor * static_cast<double>(bytes);
  transfer.priority = arrivals.front().priority;
  transfer.ddr_cycles = 0;
  transfer.gsm_bytes = 0;
  transfer.ports = 0;
  const std::int64_t start_cycle = now_cycles() + delay + zone.costs.dma_start;
  leader.add_work(transfer, start_cycle, source, channel.move.source_rows, false, 1, factor);
  const auto from = static_cast<std::size_t>(source.space);
  for (const BroadcastMeeting::Arrival& arrival : arrivals) {
    const ChannelRef ref = arrival.ref;
    transfer.ports |= bit(ref.core);
    transfer.priority = std::min(transfer.priority, arrival.priority);
    const Move& move = zone.cores[ref.core]->dma.m_channels[ref.channel].move;
    zone.launch.bytes.written[from][static_cast<std::size_t>(move.destination.space)] += bytes;
    if (ref.core != first.core) channel.audience.push_back(ref);
  }
  zone.launch.bytes.read[from][static_cast<std::size_t>(channel.move.destination.space)] += bytes;
  ++zone.launch.dma_transfers;
  zone.fabric.submit(transfer, start_cycle);
}

void DmaEngine::transfer_done(Fabric::Transfer& transfer) {
  deliver(transfer.channel);
  for (const ChannelRef& ref : m_channels[transfer.channel].audience) m_zone.cores[ref.core]->dma.deliver(ref.channel);
}

void DmaEngine::deliver(int index) {
  Channel& channel = m_channels[index];
  if (m_zone.functional()) {
    const Move& move = channel.move;
    copy(m_zone.memory(move.source).bytes(), move.source, move.source_rows, m_zone.memory(move.destination).bytes(),
         move.destination, move.destination_rows);
  }
  channel.state = State::done;
  if (Observer* observer = m_zone.options.observer) {
    observer->moved(m_core.index(), index, m_zone.launch_cycle());
  }
  m_core.channel_done(index);
}

std::string DmaEngine::describe(int index) const {
  const Channel& channel = m_channels[index];
  std::string text = fmt::format("{}, issued at cycle {}", channel.move.str(), channel.issued);
  if (channel.state == State::done) text += ", complete but never waited for";
  if (channel.mask != 0) {
    text += fmt::format(", row_syn mask {:#x} still without {}", channel.mask, m_zone.row_sync.missing(channel.mask));
  }
  return text;
}

}  // namespace mtsim::sim
