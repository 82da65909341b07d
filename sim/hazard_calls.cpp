// SPDX-License-Identifier: Apache-2.0
// Kernel calls. In timing depth a call is little more than a look into the memo, hence what is done for each of them
// counts: a parameter seen before at its place costs a comparison, another one a look at hulls.
#include <algorithm>

#include "sim/hazard.h"

namespace mtsim::sim {

void HazardMonitor::called(const VerbCall& call, const CallFootprint& footprint, std::span<const Argument> arguments) {
  Core& core = m_cores[call.core];
  bool undefined = false, writes = false;  // undefined: some input is; writes: where there may be bytes without a value
  for (const std::size_t i : footprint.touched) {
    const PointerFootprint& touched = footprint.pointers[i];
    const Pointer pointer = arguments[i].pointer;  // in this core's SM or AM
    const auto offset = static_cast<std::uint32_t>(pointer.offset);
    const auto space = static_cast<std::size_t>(pointer.space);
    // Multiplicative hashing: buffers of a ring lie a power of two apart.
    const std::uint32_t key = offset / 64 + 4096 * (7 * footprint.number + static_cast<std::uint32_t>(i));
    const std::size_t slot = (key * 0x9E3779B1U) >> (32 - k_checked_bits);
    Checked& checked = core.checked[slot];
    const bool is_known = checked.footprint == &touched && checked.offset == offset;
    const int memory = 2 * call.core + (pointer.space == Space::am ? 1 : 0);
    if (!is_known || checked.section != core.section) {
      core.touched.push_back({&touched, &footprint.program->program(), call.where, offset, memory,
                              static_cast<std::uint32_t>(call.iteration)});
    }
    if (is_known && checked.version == core.version[space]) {
      checked.section = core.section;
      undefined = undefined || checked.undefined;
      continue;
    }
    checked = {&touched, offset, core.version[space], core.section, false};
    const std::int64_t first = touched.hull.first + offset, end = touched.hull.end + offset;
    for (const Busy& busy : core.busy[space]) {
      if (busy.first < end && first < busy.end && busy.memory == memory) {
        check_parameter(core, call, footprint, memory, touched, offset);
        break;
      }
    }
    const NeverWritten& never_written = m_memories[memory].never_written;
    if (never_written.misses(first, end)) continue;
    writes = writes || !touched.writes.empty();
    if (std::any_of(touched.reads.begin(), touched.reads.end(),
                    [&](const Block& block) { return never_written.any(block.shifted(offset)); })) {
      checked.undefined = true;
      undefined = true;
    }
  }
  if (undefined) {
    Event the_call = event(call, call.iteration);
    the_call.program = &footprint.program->program();
    values_of_call(core, the_call, footprint, arguments);
  } else if (writes) {
    for (const std::size_t i : footprint.touched) {
      NeverWritten& never_written = m_memories[memory_of(arguments[i].pointer)].never_written;
      if (never_written.empty()) continue;
      for (const Block& block : footprint.pointers[i].writes) {
        never_written.remove(block.shifted(static_cast<std::int64_t>(arguments[i].pointer.offset)));
      }
    }
  }
}

void HazardMonitor::check_parameter(Core& core, const VerbCall& call, const CallFootprint& footprint, int memory,
                                    const PointerFootprint& touched, std::int64_t offset) {
  Event the_call = event(call, call.iteration);
  the_call.program = &footprint.program->program();
  for (const Block& block : touched.reads) {
    check_against_own(core, the_call, memory, block.shifted(offset), false, false);
  }
  for (const Block& block : touched.dead_reads) {
    check_against_own(core, the_call, memory, block.shifted(offset), false, true);
  }
  for (const Block& block : touched.writes) {
    check_against_own(core, the_call, memory, block.shifted(offset), true, false);
  }
}

void HazardMonitor::check_against_own(Core& core, const Event& event, int memory, const Block& block, bool write,
                                      bool dead) {
  const std::int64_t end = block.end();
  for (const Busy& busy : core.busy[static_cast<std::size_t>(space(memory))]) {
    if (busy.first >= end || block.first >= busy.end || busy.memory != memory) continue;
    const Side& side = *busy.side;
    if (!side.write && !write) continue;
    const std::int64_t at = overlap(side.block, block);
    if (at < 0 || known_complete(side, core.clock)) continue;
    const Side mine{nullptr, memory, block, write};
    if (dead) {
      raise(Severity::note, "dead-over-read", side.transfer->event, side, event, mine, at);
    } else {
      const char* kind = side.write && write ? "unordered-writes" : write ? "overwrite-in-use" : "read-before-complete";
      raise(Severity::finding, kind, side.transfer->event, side, event, mine, at);
    }
  }
}

void HazardMonitor::compare_call(int core, const Touched& touched, const Side& side) {
  Event call;
  call.verb = "call";
  call.program = touched.program;
  call.where = touched.where;
  call.core = core;
  call.iteration = touched.iteration;
  const auto compare = [&](const std::vector<Block>& blocks, bool write, bool dead) {
    for (const Block& relative : blocks) {
      const Block block = relative.shifted(touched.offset);
      const std::int64_t at = side.write || write ? overlap(block, side.block) : -1;
      if (at < 0) continue;
      const Side mine{nullptr, touched.memory, block, write};
      const char* kind = dead ? "dead-over-read" : side.write && write ? "unordered-writes" : "read-before-complete";
      raise(dead ? Severity::note : Severity::finding, kind, side.transfer->event, side, call, mine, at);
    }
  };
  compare(touched.footprint->reads, false, false);
  compare(touched.footprint->dead_reads, false, true);
  compare(touched.footprint->writes, true, false);
}

}  // namespace mtsim::sim
