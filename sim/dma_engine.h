// SPDX-License-Identifier: Apache-2.0
// One core's DMA engine (Fig. 2b): 16 logical channels moving 2-D blocks between any two memories. It knows what moves
// where; the Fabric decides when it has moved, Core charges the verbs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/fabric.h"
#include "sim/pointer.h"
#include "sim/rendezvous.h"

namespace mtsim::sim {

class Core;
struct Zone;

/// Source and destination of one transfer; both sides have the same total.
struct Move {
  Pointer source;
  Rows source_rows;
  Pointer destination;
  Rows destination_rows;
  std::string str() const;  // "ddr+0x0 -> am[0]+0x100, 4096 bytes"
};

class DmaEngine : public Fabric::Listener {
 public:
  DmaEngine(Core& core, Zone& zone);
  DmaEngine(const DmaEngine&) = delete;

  int channels() const { return static_cast<int>(m_channels.size()); }
  /// All channels idle: the state a launch starts in.
  void reset();

  // Checks; each throws SimError saying what to do.
  void check(const char* verb, const Move& move) const;
  void check_channel(const char* verb, int channel) const;
  /// The lowest channel that is idle; SimError with the outstanding ones when there is none.
  int free_channel(const char* verb) const;

  // The Fabric takes the transfer at the present cycle plus the machine's DMA start. From issue to completion the
  // destination is poisoned (functional depth).
  void issue(int channel, const Move& move, int priority);
  /// Waits for the cores of `mask` (this one among them); the last one's issue starts all.
  void issue_synchronised(int channel, const Move& move, int priority, std::uint64_t mask);
  /// Takes part in a broadcast that start_broadcast begins when all cores are there.
  void join_broadcast(int channel, const Move& move);
  /// One read of the source that fills every arrival's destination, starting `delay` cycles from now.
  static void start_broadcast(Zone& zone, const std::vector<BroadcastMeeting::Arrival>& arrivals, std::int64_t delay);

  /// Issued and not complete.
  bool busy(int channel) const { return m_channels[channel].state == State::busy; }
  /// Nothing issued that the program does not know to be complete.
  bool idle(int channel) const { return m_channels[channel].state == State::idle; }
  const Move& move(int channel) const { return m_channels[channel].move; }
  /// The program knows that the channel's transfer is complete: the channel is free again.
  void retire(int channel) { m_channels[channel].state = State::idle; }
  /// What a busy channel moves and what it waits for.
  std::string describe(int channel) const;
  void transfer_done(Fabric::Transfer& transfer) override;

 private:
  enum class State : std::uint8_t { idle, busy, done };  // done: complete, not waited for yet

  struct Channel {
    State state = State::idle;
    Move move;
    std::int64_t issued = 0;           // launch cycle
    std::uint64_t mask = 0;            // row_syn group it still waits for; 0: none
    std::vector<ChannelRef> audience;  // of a broadcast this channel leads: the other cores' channels
    Fabric::Transfer transfer;
  };

  Channel& take(int channel, const Move& move, int priority);
  void check_side(const char* verb, const char* side, Pointer pointer, const Rows& rows) const;
  void add_work(Fabric::Transfer& transfer, std::int64_t start_cycle, Pointer pointer, const Rows& rows, bool is_write,
                int row_sharers, double factor) const;
  void start(Channel& channel, int row_sharers);
  void deliver(int channel);

  Core& m_core;
  Zone& m_zone;
  std::vector<Channel> m_channels;
};

}  // namespace mtsim::sim
