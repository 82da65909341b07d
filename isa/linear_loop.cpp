// SPDX-License-Identifier: Apache-2.0
#include "isa/linear_loop.h"

#include <algorithm>

#include "isa/list_schedule.h"

namespace mtsim::isa {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

int floor_div(int a, int b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

Instruction make(Mnemonic mnemonic, std::vector<Operand> operands, const Place& place) {
  Instruction instruction;
  instruction.row = &row(mnemonic);
  instruction.operands = std::move(operands);
  instruction.place = place;
  return instruction;
}

using Cycles = std::vector<std::vector<Instruction>>;

Instruction issued(const Instruction& instruction, Unit unit) {
  Instruction copy = instruction;
  copy.unit = unit;
  return copy;
}

// Puts an instruction that issues to one of `row`'s units into a cycle where one is free; false when none is.
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

// Issues a branch so that its target follows `length` cycles or more, not before `earliest`.
void append_branch(Cycles& cycles, int length, int earliest, Instruction branch, const Pipeline& pipeline) {
  const int cycle = std::max({earliest, length - pipeline.branch_cycles(), 0});
  cycles.resize(index(cycle + pipeline.branch_cycles()));
  branch.unit = Unit::SBR;
  cycles[index(cycle)].push_back(std::move(branch));
}

class LoopBuilder {
 public:
  LoopBuilder(const LoopRequest& request, const ModuloSchedule& schedule, std::vector<Instruction> body,
              Register control)
      : m_request(request), m_schedule(schedule), m_body(std::move(body)), m_control(control) {}

  LoopCode build(int simple_cycles) {
    LoopCode code{m_schedule, m_body, {}, m_schedule.stages > m_request.block.trip_minimum, simple_cycles};
    m_guarded = code.guarded;
    const int interval = m_schedule.interval, stages = m_schedule.stages;
    Segment prologue, kernel, epilogue;
    prologue.cycles = rows(0, (stages - 1) * interval, stages);
    kernel.cycles = kernel_rows();
    epilogue.cycles = epilogue_rows();
    set_counter(prologue.cycles);
    const std::string name = m_request.loop.label;
    const bool own_label = m_guarded || !prologue.cycles.empty();
    const std::string kernel_label = own_label ? name + ".kernel" : name;
    retarget(kernel.cycles, kernel_label);
    kernel.labels = {kernel_label};
    if (!m_guarded) {
      if (own_label) prologue.labels = {name};
      prologue.successors = {1};
      kernel.successors = {1, 2};
      epilogue.successors = {-1};
      code.segments = {std::move(prologue), std::move(kernel), std::move(epilogue)};
      return code;
    }
    Segment simple;
    simple.cycles = straight_block(m_request.block, m_request.independent, m_request.pipeline, m_request.allow_assumed,
                                   m_request.window);
    retarget(simple.cycles, name + ".simple");
    simple.labels = {name + ".simple"};
    Segment guard = guard_segment(name + ".simple");
    guard.labels = {name};
    guard.successors = {1, 4};
    prologue.successors = {2};
    kernel.successors = {2, 3};
    append_branch(epilogue.cycles, static_cast<int>(epilogue.cycles.size()), 0,
                  make(Mnemonic::SBR, {Target{name + ".done", -1}}, m_request.block.branch->place), m_request.pipeline);
    epilogue.successors = {-1};
    simple.successors = {4, -1};
    code.segments = {std::move(guard), std::move(prologue), std::move(kernel), std::move(epilogue), std::move(simple)};
    return code;
  }

 private:
  int data_count() const { return static_cast<int>(m_body.size()) - 2; }
  int cycle_of(int i) const { return m_schedule.cycles[index(i)]; }

  // The data instructions that issue in cycles [first, first + length), iteration j starting at j * interval for
  // 0 <= j < iterations.
  Cycles rows(int first, int length, int iterations) const {
    Cycles cycles(index(std::max(0, length)));
    for (int j = 0; j < iterations; ++j) {
      for (int i = 0; i < data_count(); ++i) {
        const int at = j * m_schedule.interval + cycle_of(i) - first;
        if (at < 0 || at >= length) continue;
        cycles[index(at)].push_back(issued(m_body[index(i)], m_schedule.units[index(i)]));
      }
    }
    return cycles;
  }

  Cycles kernel_rows() const {
    Cycles cycles(index(m_schedule.interval));
    for (int i = 0; i < data_count() + 2; ++i) {
      cycles[index(cycle_of(i) % m_schedule.interval)].push_back(issued(m_body[index(i)], m_schedule.units[index(i)]));
    }
    return cycles;
  }

  // What the last stages - 1 iterations still have to do, and the cycles until all of it has landed.
  Cycles epilogue_rows() const {
    const int interval = m_schedule.interval;
    int length = 0;
    for (int i = 0; i < data_count() + 1; ++i) {
      length = std::max(length, cycle_of(i) + cycles_until_done(m_body[index(i)], m_request.pipeline) - interval);
    }
    return rows((m_schedule.stages - 1) * interval, length, m_schedule.stages - 1);
  }

  // The kernel runs n - (stages - 1) times. The branch of a pass sees the counter after that many decrements have
  // landed as passes have begun, or one less, or even less when the decrement is slow.
  void set_counter(Cycles& prologue) const {
    const int decrement = data_count(), branch = decrement + 1;
    const int lag =
        floor_div(cycle_of(branch) - cycle_of(decrement) - m_request.pipeline.of(row(Mnemonic::SSUB), m_control),
                  m_schedule.interval);
    const int passes_less = m_schedule.stages - 1 - lag;
    if (m_control == m_request.loop.counter && passes_less == 0) return;
    const Instruction init = make(Mnemonic::SSUB, {Immediate{passes_less}, m_request.loop.counter, m_control},
                                  m_request.block.branch->place);
    const int done = m_request.pipeline.of(row(Mnemonic::SSUB), m_control);
    const int first_read = std::min(cycle_of(branch), cycle_of(decrement));
    const int length = static_cast<int>(prologue.size());
    if (done <= length + first_read) {
      // Any result of the same unit that lands together with it would be a write port too many: look for a free cycle.
      for (int cycle = 0; cycle < length && cycle + done <= length + first_read; ++cycle) {
        if (counter_changed_before(cycle) || !port_is_free(prologue, cycle, done)) continue;
        if (insert(prologue, cycle, init, m_request.pipeline)) return;
      }
    }
    const int lead = std::max(1, done - first_read - length);
    prologue.insert(prologue.begin(), index(lead), {});
    insert(prologue, 0, init, m_request.pipeline);
  }

  // The body's own decrement of the counter may have landed by then.
  bool counter_changed_before(int cycle) const {
    for (int i = 0; i < data_count(); ++i) {
      for (const Write& write : writes(m_body[index(i)], m_request.pipeline)) {
        if (write.reg == m_request.loop.counter && cycle_of(i) + write.cycles <= cycle) return true;
      }
    }
    return false;
  }

  // No result of a scalar unit lands in R in the cycle in which one issued at `cycle` would.
  bool port_is_free(const Cycles& prologue, int cycle, int done) const {
    for (std::size_t c = 0; c < prologue.size(); ++c) {
      for (const Instruction& other : prologue[c]) {
        for (const Write& write : writes(other, m_request.pipeline)) {
          if (write.reg.file == RegisterFile::R && static_cast<int>(c) + write.cycles == cycle + done) return false;
        }
      }
    }
    return true;
  }

  // n < stages: the loop that is not pipelined.
  Segment guard_segment(const std::string& simple) {
    const Place& place = m_request.block.branch->place;
    const Register enough = m_request.fresh(RegisterFile::R, m_request.loop.label + ".enough");
    Segment guard;
    guard.cycles.emplace_back();
    insert(guard.cycles, 0,
           make(Mnemonic::SLT, {Immediate{m_schedule.stages - 1}, m_request.loop.counter, enough}, place),
           m_request.pipeline);
    Instruction branch = make(Mnemonic::SBR, {Target{simple, -1}}, place);
    branch.predicate = Predicate{enough, true};
    append_branch(guard.cycles, 1, m_request.pipeline.of(row(Mnemonic::SLT)), branch, m_request.pipeline);
    return guard;
  }

  static void retarget(Cycles& cycles, const std::string& label) {
    for (auto& cycle : cycles) {
      for (Instruction& instruction : cycle) {
        if (instruction.row->id == Mnemonic::SBR) instruction.operands[0] = Target{label, -1};
      }
    }
  }

  const LoopRequest& m_request;
  const ModuloSchedule& m_schedule;
  std::vector<Instruction> m_body;
  Register m_control;
  bool m_guarded = false;
};

bool reads_register(const Instruction& instruction, Register reg) {
  const std::vector<Register> all = reads(instruction);
  return std::find(all.begin(), all.end(), reg) != all.end();
}

}  // namespace

std::optional<CountedLoop> find_counted_loop(const LinearBlock& block) {
  if (!block.branch || !block.branch->predicate || block.branch->predicate->negated) return std::nullopt;
  const auto* target = std::get_if<Target>(&block.branch->operands[0]);
  if (target == nullptr) return std::nullopt;
  if (std::find(block.labels.begin(), block.labels.end(), target->label) == block.labels.end()) return std::nullopt;
  CountedLoop loop{target->label, block.branch->predicate->reg, -1};
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    const Instruction& instruction = block.body[i];
    for (const Write& write : writes(instruction, Pipeline{})) {
      if (write.reg != loop.counter) continue;
      const auto* one = std::get_if<Immediate>(&instruction.operands[0]);
      const bool counts = instruction.row->id == Mnemonic::SSUB && !instruction.predicate && one != nullptr &&
                          one->value == 1 && instruction.operands[1] == Operand(loop.counter);
      if (!counts || loop.decrement >= 0) return std::nullopt;
      loop.decrement = static_cast<int>(i);
    }
  }
  return loop.decrement < 0 ? std::nullopt : std::optional(loop);
}

std::vector<std::vector<Instruction>> straight_block(const LinearBlock& block, bool independent,
                                                     const Pipeline& pipeline, bool allow_assumed, int window) {
  const DependenceGraph graph = find_dependences(block.body, pipeline, {false, independent, 0});
  const BlockSchedule schedule = list_schedule(block.body, graph, pipeline, allow_assumed, window);
  Cycles cycles(index(schedule.length));
  for (int i = 0; i < graph.size(); ++i) {
    cycles[index(schedule.cycles[index(i)])].push_back(issued(block.body[index(i)], schedule.units[index(i)]));
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

std::optional<LoopCode> pipeline_loop(const LoopRequest& request) {
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
  const Place& place = block.branch->place;
  body.push_back(
      make(Mnemonic::SSUB, {Immediate{1}, control, control}, block.body[index(request.loop.decrement)].place));
  Instruction branch = make(Mnemonic::SBR, {Target{request.loop.label, -1}}, place);
  branch.predicate = Predicate{control, false};
  body.push_back(branch);

  const DependenceGraph graph = find_dependences(body, request.pipeline, {true, request.independent, 2});
  const ModuloLoop loop{body, graph, request.pipeline, request.allow_assumed};
  const int simple_cycles = static_cast<int>(
      straight_block(block, request.independent, request.pipeline, request.allow_assumed, request.window).size());
  int bound = std::max(graph.recurrence_bound(), request.pipeline.of(row(Mnemonic::SSUB), control));
  for (const ResourceBound& resource : resource_bounds(loop)) bound = std::max(bound, resource.cycles);
  for (int interval = bound + request.longer; interval < simple_cycles; ++interval) {
    const auto schedule = modulo_schedule(loop, interval);
    if (schedule) return LoopBuilder(request, *schedule, body, control).build(simple_cycles);
  }
  return std::nullopt;
}

}  // namespace mtsim::isa
