// SPDX-License-Identifier: Apache-2.0
// Linear assembly to packets: straight blocks are list-scheduled, counted single-block loops modulo-scheduled, then
// registers are allocated. Internal to isa.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "isa/diagnostic.h"
#include "isa/linear.h"
#include "isa/loop_report.h"
#include "isa/register_allocation.h"

namespace mtsim::isa {

struct LinearOptions {
  const Pipeline& pipeline;
  bool allow_assumed = false;
  std::set<Register> reserved;  // physical registers the code must leave alone unless it names them
  std::set<std::string> jumps;  // labels that code outside of it branches to
  bool prove = false;           // search for what shows that no loop can be shorter; changes reports alone
};

struct ScheduledLinear {
  std::vector<Packet> packets;
  std::map<std::string, int> labels;         // index into packets; loops add NAME.kernel, NAME.simple, NAME.done
  std::map<std::size_t, int> regions_first;  // Program::regions index -> packet
  std::map<std::size_t, int> regions_last;
  std::vector<Diagnostic> errors;  // no packets then
  std::vector<LoopReport> loops;   // of every block that repeats itself
};

/// Packets of scheduled code with physical registers; idle cycles are SNOP.
struct EmittedCode {
  std::vector<Packet> packets;
  std::vector<int> first_packet;  // by segment
};
EmittedCode emit_segments(const std::vector<Segment>& code, const std::map<Register, Register>& physical,
                          const Place& place);

ScheduledLinear schedule_linear(const LinearCode& code, const LinearOptions& options);

}  // namespace mtsim::isa
