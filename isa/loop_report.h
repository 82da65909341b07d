// SPDX-License-Identifier: Apache-2.0
// What the scheduler found out about one loop: the software-pipeline information of the literature, as data.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "isa/diagnostic.h"
#include "isa/registers.h"

namespace mtsim::isa {

/// What no schedule can beat, per set of units and packet rule.
struct ResourceBound {
  std::string name;  // "VMAC", "SMAC+SIEU", "VLDST pairing", "SBR delay slots"
  int instructions = 0;
  int slots = 0;  // a cycle
  int cycles = 0;
  UnitMask units = 0;  // whose slots; 0: none
};

/// A cycle of dependences and the interval it needs.
struct CycleBound {
  int cycles = 1;
  std::vector<std::string> edges;  // one a line; empty when nothing needs more than one cycle
};

/// An initiation interval that was tried and why it did not do.
struct BlockedInterval {
  int interval = 0;
  std::string reason;  // "VMAC: 24 instructions on 2 slots", "dependence cycle of 12 cycles", ...
};

struct LoopReport {
  std::string label;
  Place place;
  int instructions = 0;  // of one iteration, with the counter's and the branch
  bool pipelined = false;
  std::string why_not;  // when it is not

  // Of the loop as written. Nothing beats the first two, whatever registers its values have.
  std::vector<ResourceBound> resources;  // the largest first
  int resource_bound = 0;
  CycleBound recurrence;  // of values and memory
  // The bound if accesses through different address registers never overlapped, 0 where it is the same; and the two
  // accesses that may: "VSTW (line 16) and VLDW (line 12)".
  int independent_bound = 0;
  std::string may_meet;
  // A value must be read before its register gets the next one: what that needs besides, in the registers as written.
  CycleBound lifetime;

  int interval = 0;                      // found; cycles of an iteration when it is not pipelined
  std::vector<BlockedInterval> blocked;  // below `interval`, descending
  bool refuted = false;                  // every interval from bound() to below `interval`, by exhaustive search
  bool refuted_here = false;             // every one, but some only for these registers and copies
  int copies = 0;                        // moves added for values that live longer than the interval
  int copied_bound = 0;                  // with them: of resources, recurrence and lifetimes

  int stages = 1;
  int prologue_cycles = 0;
  int epilogue_cycles = 0;  // until every result has landed
  int simple_cycles = 0;    // of an iteration that is not pipelined
  bool by_hand = false;     // of hand packets: nothing is promised with directives
  int trip_minimum = 1;     // as .trip says
  Place trip_place;         // of .trip; without line where there is none
  int counter_end = 0;      // the kernel's counter when the loop is left; only one that never ends has less
  bool guarded = false;     // fewer iterations than stages go to a second loop, behind a test at run time
  std::array<int, k_register_files> registers{};  // live at once in the kernel, without those named by the text

  /// What no schedule of these instructions beats.
  int bound() const { return resource_bound > recurrence.cycles ? resource_bound : recurrence.cycles; }
  /// No schedule of these instructions has a smaller interval, in whatever registers.
  bool is_proved() const { return pipelined && (interval == bound() || refuted); }
};

/// As `mtsim schedule` prints it.
std::string print(const LoopReport& report);

}  // namespace mtsim::isa
