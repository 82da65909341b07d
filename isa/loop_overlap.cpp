// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_overlap.h"

#include <algorithm>

#include "isa/internal.h"
#include "isa/loop_code.h"

namespace mtsim::isa {
namespace {

// Any two accesses with a store in them, on one side, keep their order.
bool may_meet(const Instruction& a, const Instruction& b, bool independent) {
  const MemoryOperand *first = memory_operand(a), *second = memory_operand(b);
  if (first == nullptr || second == nullptr) return false;
  if (is_load(a.row->format) && is_load(b.row->format)) return false;
  const bool one_side = ((a.row->units ^ b.row->units) & units::VLDST) == 0;
  return one_side && (!independent || first->base == second->base);
}

// The least number of cycles from the issue of `a`, first in the text, to that of `b`; very small when nothing ties
// them.
int least_distance(const Instruction& a, const Instruction& b, const OverlapOptions& options) {
  constexpr int k_free = -1'000'000;
  int least = k_free;
  const std::vector<Register> a_reads = reads(a), b_reads = reads(b);
  const std::vector<Write> a_writes = writes(a, options.pipeline), b_writes = writes(b, options.pipeline);
  const auto reading = [](const std::vector<Register>& all, Register reg) {
    return std::find(all.begin(), all.end(), reg) != all.end();
  };
  for (const Write& write : a_writes) {
    if (reading(b_reads, write.reg)) least = std::max(least, write.cycles);
    for (const Write& other : b_writes) {
      if (other.reg == write.reg) least = std::max(least, write.cycles + 1 - other.cycles);
    }
  }
  for (const Write& write : b_writes) {
    if (reading(a_reads, write.reg)) least = std::max(least, 1 - write.cycles);
  }
  if (may_meet(a, b, options.independent)) least = std::max(least, is_load(a.row->format) ? 0 : 1);
  return least;
}

std::vector<PlacedInstruction> placed(const IssueCycles& cycles, int from) {
  std::vector<PlacedInstruction> all;
  for (std::size_t c = 0; c < cycles.size(); ++c) {
    for (const Instruction& instruction : cycles[c]) all.push_back({instruction, from + static_cast<int>(c)});
  }
  return all;
}

/// The kernel's passes from cycle `from` on, as many as the results of `in_flight` may land in.
std::vector<PlacedInstruction> passes_to_land(const IssueCycles& in_flight, const IssueCycles& kernel, int from,
                                              const OverlapOptions& options) {
  int slowest = 1;
  for (const PlacedInstruction& one : placed(in_flight, 0)) {
    slowest = std::max(slowest, cycles_until_done(one.instruction, options.pipeline));
  }
  const int interval = static_cast<int>(kernel.size());
  std::vector<PlacedInstruction> all;
  for (int pass = 0; pass <= slowest / interval; ++pass) {
    for (PlacedInstruction& one : placed(kernel, from + pass * interval)) all.push_back(std::move(one));
  }
  return all;
}

void add(IssueCycles& cycles, int cycle, Instruction instruction, Unit unit) {
  if (cycles.size() <= index(cycle)) cycles.resize(index(cycle) + 1);
  instruction.unit = unit;
  cycles[index(cycle)].push_back(std::move(instruction));
}

}  // namespace

IssueCycles overlap_in_front(const LinearBlock& block, const IssueCycles& prologue, const IssueCycles& kernel,
                             const OverlapOptions& options) {
  const DependenceGraph graph = find_dependences(block.body, options.pipeline, {false, options.independent, 0});
  const BlockSchedule schedule =
      list_schedule(block.body, graph, options.pipeline, options.allow_assumed, options.window);
  const std::vector<PlacedInstruction> behind = placed(prologue, 0);
  const int count = static_cast<int>(block.body.size()), length = static_cast<int>(prologue.size());
  int start = std::max(0, schedule.length - length);
  for (int i = 0; i < count; ++i) {
    for (const PlacedInstruction& later : behind) {
      const int least = least_distance(block.body[index(i)], later.instruction, options);
      start = std::max(start, schedule.cycles[index(i)] + least - later.cycle);
    }
  }
  // What the prologue issues on another unit than the kernel does must not land with the kernel's first results.
  const std::vector<PlacedInstruction> passes = passes_to_land(prologue, kernel, length, options);
  std::vector<Instruction> all(block.body);
  for (const PlacedInstruction& later : behind) all.push_back(later.instruction);
  for (const PlacedInstruction& pass : passes) all.push_back(pass.instruction);
  const int first_behind = count, first_pass = count + static_cast<int>(behind.size());
  for (;; ++start) {  // behind the block's last result the prologue fits as it is
    ReservationTable table(all, options.pipeline, {0, options.allow_assumed, true});
    for (std::size_t p = 0; p < passes.size(); ++p) {
      table.fix(first_pass + static_cast<int>(p), start + passes[p].cycle, passes[p].instruction.unit);
    }
    for (int i = 0; i < count; ++i) table.fix(i, schedule.cycles[index(i)], schedule.units[index(i)]);
    bool fits = true;
    for (std::size_t p = 0; p < behind.size() && fits; ++p) {
      const int one = first_behind + static_cast<int>(p), cycle = start + behind[p].cycle;
      fits = table.place_on(one, cycle, behind[p].instruction.unit) || table.place(one, cycle);
    }
    if (!fits) continue;
    IssueCycles cycles(index(start + length));
    for (int i = 0; i < first_pass; ++i) {
      const int cycle = i < count ? schedule.cycles[index(i)] : start + behind[index(i - count)].cycle;
      add(cycles, cycle, all[index(i)], table.unit(i));
    }
    return cycles;
  }
}

IssueCycles overlap_behind(const LinearBlock& block, const IssueCycles& kernel, const IssueCycles& epilogue,
                           const OverlapOptions& options) {
  // The last passes of the kernel, whose results may still be in flight, then the epilogue from `start` on.
  Surroundings around;
  around.fixed = passes_to_land(kernel, kernel, 0, options);
  const int start = static_cast<int>(kernel.size()) * (1 + around.fixed.back().cycle / static_cast<int>(kernel.size()));
  around.first_cycle = start;
  for (PlacedInstruction& one : placed(epilogue, start)) around.fixed.push_back(std::move(one));
  const auto earliest = [&](const Instruction& instruction) {
    int cycle = start;
    for (const PlacedInstruction& before : around.fixed) {
      cycle = std::max(cycle, before.cycle + least_distance(before.instruction, instruction, options));
    }
    return cycle;
  };
  for (const Instruction& instruction : block.body) around.earliest.push_back(earliest(instruction));
  const DependenceGraph graph = find_dependences(block.body, options.pipeline, {false, options.independent, 0});
  const BlockSchedule schedule =
      list_schedule(block.body, graph, options.pipeline, options.allow_assumed, options.window, around);
  IssueCycles cycles(epilogue.size());
  for (std::size_t f = 0; f < around.fixed.size(); ++f) {
    const PlacedInstruction& fixed = around.fixed[f];
    if (fixed.cycle >= start) add(cycles, fixed.cycle - start, fixed.instruction, schedule.fixed_units[f]);
  }
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    add(cycles, schedule.cycles[i] - start, block.body[i], schedule.units[i]);
  }
  const int length = std::max(static_cast<int>(epilogue.size()), schedule.length - start);
  cycles.resize(index(length));
  if (!block.branch) return cycles;
  int branch_cycle = earliest(*block.branch) - start;
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    const int least = least_distance(block.body[i], *block.branch, options);
    branch_cycle = std::max(branch_cycle, schedule.cycles[i] - start + least);
  }
  append_branch(cycles, length, branch_cycle, *block.branch, options.pipeline);
  return cycles;
}

}  // namespace mtsim::isa
