// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_code.h"

#include <algorithm>

#include "isa/internal.h"
#include "isa/list_schedule.h"

namespace mtsim::isa {
namespace {

using Cycles = std::vector<std::vector<Instruction>>;

int floor_div(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

Instruction issued(const Instruction& instruction, Unit unit) {
  Instruction copy = instruction;
  copy.unit = unit;
  return copy;
}

// Puts an instruction into a cycle where one of its units is free; false when none is.
bool insert(Cycles& cycles, int cycle, Instruction instruction, const Pipeline& pipeline) {
  UnitMask free = pipeline.units_of(*instruction.row);
  for (const Instruction& other : cycles[index(cycle)]) free &= static_cast<UnitMask>(~mask(other.unit));
  for (int u = 0; u < k_units; ++u) {
    if ((free & (1u << u)) == 0) continue;
    instruction.unit = static_cast<Unit>(u);
    cycles[index(cycle)].push_back(std::move(instruction));
    return true;
  }
  return false;
}

class LoopBuilder {
 public:
  LoopBuilder(const PipelinedLoop& loop, const Pipeline& pipeline, const FreshRegister& fresh)
      : m_loop(loop), m_schedule(loop.schedule), m_pipeline(pipeline), m_fresh(fresh) {}

  std::vector<Segment> build() {
    const bool guarded = !m_loop.simple.empty();
    const int interval = m_schedule.interval, stages = m_schedule.stages;
    Segment prologue, kernel, epilogue;
    prologue.cycles = rows(0, (stages - 1) * interval, stages);
    kernel.cycles = kernel_rows();
    epilogue.cycles = epilogue_rows();
    set_counter(prologue.cycles);
    const bool own_label = guarded || !prologue.cycles.empty();
    const std::string kernel_label = own_label ? m_loop.label + ".kernel" : m_loop.label;
    retarget(kernel.cycles, kernel_label);
    kernel.labels = {kernel_label};
    if (!guarded) {
      if (own_label) prologue.labels = {m_loop.label};
      prologue.successors = {1};
      kernel.successors = {1, 2};
      epilogue.successors = {-1};
      return {std::move(prologue), std::move(kernel), std::move(epilogue)};
    }
    Segment simple;
    simple.cycles = m_loop.simple;
    simple.labels = {m_loop.label + ".simple"};
    retarget(simple.cycles, simple.labels[0]);
    Segment guard = guard_segment(simple.labels[0]);
    guard.labels = {m_loop.label};
    guard.successors = {1, 4};
    prologue.successors = {2};
    kernel.successors = {2, 3};
    append_branch(epilogue.cycles, static_cast<int>(epilogue.cycles.size()), 0,
                  make_instruction(Mnemonic::SBR, {Target{m_loop.label + ".done", -1}}, m_loop.place), m_pipeline);
    epilogue.successors = {-1};
    simple.successors = {4, -1};
    return {std::move(guard), std::move(prologue), std::move(kernel), std::move(epilogue), std::move(simple)};
  }

 private:
  int data_count() const { return static_cast<int>(m_loop.body.size()) - 2; }
  int cycle_of(int i) const { return m_schedule.cycles[index(i)]; }
  const Instruction& instruction(int i) const { return m_loop.body[index(i)]; }
  int decrement_cycles() const { return m_pipeline.of(row(Mnemonic::SSUB), m_loop.control); }

  // The data instructions that issue in cycles [first, first + length), iteration j starting at j * interval for
  // 0 <= j < iterations.
  Cycles rows(int first, int length, int iterations) const {
    Cycles cycles(index(std::max(0, length)));
    for (int j = 0; j < iterations; ++j) {
      for (int i = 0; i < data_count(); ++i) {
        const int at = j * m_schedule.interval + cycle_of(i) - first;
        if (at < 0 || at >= length) continue;
        cycles[index(at)].push_back(issued(instruction(i), m_schedule.units[index(i)]));
      }
    }
    return cycles;
  }

  Cycles kernel_rows() const {
    Cycles cycles(index(m_schedule.interval));
    for (int i = 0; i < data_count() + 2; ++i) {
      cycles[index(cycle_of(i) % m_schedule.interval)].push_back(issued(instruction(i), m_schedule.units[index(i)]));
    }
    return cycles;
  }

  // What the last stages - 1 iterations still have to do, and the cycles until all of it has landed.
  Cycles epilogue_rows() const {
    const int interval = m_schedule.interval;
    int length = 0;
    for (int i = 0; i < data_count() + 1; ++i) {
      length = std::max(length, cycle_of(i) + cycles_until_done(instruction(i), m_pipeline) - interval);
    }
    return rows((m_schedule.stages - 1) * interval, length, m_schedule.stages - 1);
  }

  // The kernel runs n - (stages - 1) times. The branch of a pass sees the counter after as many decrements have landed
  // as passes have begun, or one less, or even less when the decrement is slow.
  void set_counter(Cycles& prologue) const {
    const int decrement = data_count(), branch = decrement + 1;
    const int done = decrement_cycles();
    const int passes_less = m_schedule.stages - 1 - counter_lag(m_schedule, done) - m_loop.counter_offset;
    if (m_loop.control == m_loop.counter && passes_less == 0) return;
    const Instruction init =
        make_instruction(Mnemonic::SSUB, {Immediate{passes_less}, m_loop.counter, m_loop.control}, m_loop.place);
    const int first_read = std::min(cycle_of(branch), cycle_of(decrement));
    const int length = static_cast<int>(prologue.size());
    for (int cycle = 0; cycle < length && cycle + done <= length + first_read; ++cycle) {
      if (counter_changed_before(cycle) || !port_is_free(prologue, cycle + done)) continue;
      if (insert(prologue, cycle, init, m_pipeline)) return;
    }
    const int lead = std::max(1, done - first_read - length);
    prologue.insert(prologue.begin(), index(lead), {});
    insert(prologue, 0, init, m_pipeline);
  }

  // The body's own decrement of the counter may have landed by then.
  bool counter_changed_before(int cycle) const {
    for (int i = 0; i < data_count(); ++i) {
      for (const Write& write : writes(instruction(i), m_pipeline)) {
        if (write.reg == m_loop.counter && cycle_of(i) + write.cycles <= cycle) return true;
      }
    }
    return false;
  }

  // No result lands in R in that cycle: two of one unit would be a write port too many.
  bool port_is_free(const Cycles& prologue, int lands) const {
    for (std::size_t c = 0; c < prologue.size(); ++c) {
      for (const Instruction& other : prologue[c]) {
        for (const Write& write : writes(other, m_pipeline)) {
          if (write.reg.file == RegisterFile::R && static_cast<int>(c) + write.cycles == lands) return false;
        }
      }
    }
    return true;
  }

  // Fewer iterations than stages: to the simple loop.
  Segment guard_segment(const std::string& simple) const {
    const Register enough = m_fresh(RegisterFile::R, m_loop.label + ".enough");
    Segment guard;
    guard.cycles.emplace_back();
    const int most_too_few = m_schedule.stages - 1 - m_loop.counter_offset;
    insert(guard.cycles, 0,
           make_instruction(Mnemonic::SLT, {Immediate{most_too_few}, m_loop.counter, enough}, m_loop.place),
           m_pipeline);
    Instruction branch = make_instruction(Mnemonic::SBR, {Target{simple, -1}}, m_loop.place);
    branch.predicate = Predicate{enough, true};
    append_branch(guard.cycles, 1, m_pipeline.of(row(Mnemonic::SLT)), branch, m_pipeline);
    return guard;
  }

  static void retarget(Cycles& cycles, const std::string& label) {
    for (auto& cycle : cycles) {
      for (Instruction& instruction : cycle) {
        if (instruction.row->id == Mnemonic::SBR) instruction.operands[0] = Target{label, -1};
      }
    }
  }

  const PipelinedLoop& m_loop;
  const ModuloSchedule& m_schedule;
  const Pipeline& m_pipeline;
  const FreshRegister& m_fresh;
};

}  // namespace

Instruction make_instruction(Mnemonic mnemonic, std::vector<Operand> operands, const Place& place) {
  Instruction instruction;
  instruction.row = &row(mnemonic);
  instruction.operands = std::move(operands);
  instruction.place = place;
  return instruction;
}

void append_branch(Cycles& cycles, int length, int earliest, Instruction branch, const Pipeline& pipeline) {
  const int cycle = std::max({earliest, length - pipeline.branch_cycles(), 0});
  cycles.resize(index(cycle + pipeline.branch_cycles()));
  branch.unit = Unit::SBR;
  cycles[index(cycle)].push_back(std::move(branch));
}

int counter_lag(const ModuloSchedule& schedule, int decrement_cycles) {
  const std::size_t branch = schedule.cycles.size() - 1;
  return floor_div(schedule.cycles[branch] - schedule.cycles[branch - 1] - decrement_cycles, schedule.interval);
}

std::vector<Segment> loop_code(const PipelinedLoop& loop, const Pipeline& pipeline, const FreshRegister& fresh) {
  return LoopBuilder(loop, pipeline, fresh).build();
}

}  // namespace mtsim::isa
