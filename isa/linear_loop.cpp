// SPDX-License-Identifier: Apache-2.0
#include "isa/linear_loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/internal.h"
#include "isa/list_schedule.h"

namespace mtsim::isa {
namespace {

using Cycles = std::vector<std::vector<Instruction>>;

bool reads_register(const Instruction& instruction, Register reg) {
  const std::vector<Register> all = reads(instruction);
  return std::find(all.begin(), all.end(), reg) != all.end();
}

}  // namespace

std::optional<CountedLoop> find_counted_loop(const LinearBlock& block, std::string& why) {
  why.clear();
  const auto* target = block.branch ? std::get_if<Target>(&block.branch->operands[0]) : nullptr;
  if (target == nullptr) return std::nullopt;
  if (std::find(block.labels.begin(), block.labels.end(), target->label) == block.labels.end()) return std::nullopt;
  if (!block.branch->predicate || block.branch->predicate->negated) {
    why = "its branch is not [n] SBR";
    return std::nullopt;
  }
  CountedLoop loop{target->label, block.branch->predicate->reg, -1};
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    const Instruction& instruction = block.body[i];
    for (const Write& write : writes(instruction, Pipeline{})) {
      if (write.reg != loop.counter) continue;
      if (!counts_down(instruction, loop.counter) || loop.decrement >= 0) {
        why = fmt::format("its counter is written by other than one SSUB 1, n, n or SADD -1, n, n: {}",
                          spelled(instruction));
        return std::nullopt;
      }
      loop.decrement = static_cast<int>(i);
    }
  }
  if (loop.decrement < 0) {
    why = "nothing in it decrements its counter: SSUB 1, n, n or SADD -1, n, n";
    return std::nullopt;
  }
  return loop;
}

std::vector<std::vector<Instruction>> straight_block(const LinearBlock& block, bool independent,
                                                     const Pipeline& pipeline, bool allow_assumed, int window) {
  const DependenceGraph graph = find_dependences(block.body, pipeline, {false, independent, 0});
  const BlockSchedule schedule = list_schedule(block.body, graph, pipeline, allow_assumed, window);
  Cycles cycles(index(schedule.length));
  for (int i = 0; i < graph.size(); ++i) {
    cycles[index(schedule.cycles[index(i)])].push_back(block.body[index(i)]);
    cycles[index(schedule.cycles[index(i)])].back().unit = schedule.units[index(i)];
  }
  if (!block.branch) return cycles;
  int earliest = 0;
  for (int i = 0; i < graph.size(); ++i) {
    for (const Write& write : writes(block.body[index(i)], pipeline)) {
      if (!reads_register(*block.branch, write.reg)) continue;
      earliest = std::max(earliest, schedule.cycles[index(i)] + write.cycles);
    }
  }
  append_branch(cycles, schedule.length, earliest, *block.branch, pipeline);
  return cycles;
}

PreparedLoop prepare_loop(const LoopRequest& request) {
  const LinearBlock& block = request.block;
  // Where anything but the branch reads the counter, the pipelined loop counts with a register of its own.
  bool counter_used = request.counter_live;
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    if (static_cast<int>(i) == request.loop.decrement) continue;
    counter_used = counter_used || reads_register(block.body[i], request.loop.counter);
  }
  std::vector<Instruction> body = block.body;
  if (!counter_used) body.erase(body.begin() + request.loop.decrement);
  const Register control =
      counter_used ? request.fresh(RegisterFile::R, request.loop.label + ".count") : request.loop.counter;
  body.push_back(make_instruction(Mnemonic::SSUB, {Immediate{1}, control, control},
                                  block.body[index(request.loop.decrement)].place));
  Instruction branch = make_instruction(Mnemonic::SBR, {Target{request.loop.label, -1}}, block.branch->place);
  branch.predicate = Predicate{control, false};
  body.push_back(branch);

  PreparedLoop prepared;
  prepared.control = control;
  LoopReport& report = prepared.report;
  report.label = request.loop.label;
  report.place = block.body.front().place;
  report.trip_minimum = block.trip_minimum;
  report.trip_place = block.trip_place;
  prepared.written.graph = find_dependences(body, request.pipeline, {true, request.independent, 2});
  prepared.written.body = std::move(body);
  const auto independent = [&] { return find_dependences(prepared.written.body, request.pipeline, {true, true, 2}); };
  describe_bounds({prepared.written.body, prepared.written.graph, request.pipeline, request.allow_assumed},
                  request.independent ? IndependentGraph{} : independent, request.name, report);
  CopiedLoop copied = with_copies(
      prepared.written, {request.pipeline, request.allow_assumed, request.fresh, request.name, request.loop.label});
  prepared.scheduled = std::move(copied.loop);
  report.instructions = static_cast<int>(prepared.scheduled.body.size());
  report.copies = copied.copies;
  return prepared;
}

LoopCode pipeline_loop(const LoopRequest& request, const PreparedLoop& prepared) {
  const LinearBlock& block = request.block;
  LoopCode code;
  code.report = prepared.report;
  LoopReport& report = code.report;
  Cycles simple = straight_block(block, request.independent, request.pipeline, request.allow_assumed, request.window);
  report.simple_cycles = static_cast<int>(simple.size());
  FoundSchedule found =
      find_schedule({prepared.scheduled.body, prepared.scheduled.graph, request.pipeline, request.allow_assumed},
                    request.longer, report.simple_cycles, request.budget, report);
  code.failed = std::move(found.failed);
  const auto& schedule = found.schedule;
  if (!schedule) {
    report.why_not = fmt::format("no interval below the {} cycles of one iteration alone was found", simple.size());
    report.interval = report.simple_cycles;
    return code;
  }
  report.pipelined = true;
  report.stages = schedule->stages;
  report.guarded = schedule->stages > block.trip_minimum;
  report.counter_end = std::min(0, counter_lag(*schedule, request.pipeline.of(row(Mnemonic::SSUB), prepared.control)));
  if (!report.guarded) simple.clear();
  code.segments = loop_code({*schedule, prepared.scheduled.body, request.loop.label, block.branch->place,
                             request.loop.counter, 0, prepared.control, std::move(simple)},
                            request.pipeline, request.fresh);
  code.kernel = report.guarded ? 2 : 1;
  report.prologue_cycles = static_cast<int>(code.segments[index(code.kernel - 1)].cycles.size());
  report.epilogue_cycles = static_cast<int>(code.segments[index(code.kernel + 1)].cycles.size());
  return code;
}

}  // namespace mtsim::isa
