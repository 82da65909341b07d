// SPDX-License-Identifier: Apache-2.0
#include "isa/reschedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "isa/analysis.h"
#include "isa/checker.h"
#include "isa/control_flow.h"
#include "isa/hand_loop.h"
#include "isa/internal.h"
#include "isa/linear_schedule.h"
#include "isa/loop_code.h"
#include "isa/loop_copies.h"
#include "isa/loop_search.h"

namespace mtsim::isa {
namespace {

// What keeps a loop from being replaced.
struct CannotReplace : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The ends of a loop: what is in flight there, and who reads what it leaves.
class Boundary {
 public:
  Boundary(const Program& program, const HandLoop& loop)
      : m_program(program),
        m_loop(loop),
        m_entries(default_entries(program)),
        m_flow(program, program.scheduled_for, m_entries) {}

  /// Cycles until everything in flight at the loop's start has landed. Throws where landing first would change a value.
  int entry_drain() const {
    for (const int state : m_flow.states_of(m_loop.first)) {
      if (m_flow.states()[index(state)].branch_in > 0) {
        throw CannotReplace("it starts in the delay slots of another branch");
      }
    }
    int drain = 0;
    for_outside([&](int packet, const Instruction& instruction, const Write& write) {
      m_flow.walk(packet, write.cycles, [&](int q, int distance) {
        if (q != m_loop.first) return true;
        const int left = write.cycles - distance;
        drain = std::max(drain, left);
        check_entry(instruction, write.reg, left);
        return false;
      });
    });
    return drain;
  }

  /// Throws where code behind the loop uses that results of its last iterations are still in flight.
  void check_exit() const {
    for (int p = m_loop.first; p <= m_loop.last; ++p) {
      for (const Instruction& instruction : m_program.packets[index(p)].instructions) {
        for (const Write& write : writes(instruction, m_program.scheduled_for)) {
          m_flow.walk(p, write.cycles, [&](int q, int distance) {
            if (!inside(q)) check_behind(instruction, write, q, distance);
            return true;
          });
        }
      }
    }
  }

  bool read_outside(Register reg) const {
    for (int p = 0; p < static_cast<int>(m_program.packets.size()); ++p) {
      if (inside(p)) continue;
      for (const Instruction& instruction : m_program.packets[index(p)].instructions) {
        const std::vector<Register> all = reads(instruction);
        if (std::find(all.begin(), all.end(), reg) != all.end()) return true;
      }
    }
    return false;
  }

 private:
  bool inside(int packet) const { return packet >= m_loop.first && packet <= m_loop.last; }

  template <typename Visit>
  void for_outside(const Visit& visit) const {
    for (int p = 0; p < static_cast<int>(m_program.packets.size()); ++p) {
      if (inside(p)) continue;
      for (const Instruction& instruction : m_program.packets[index(p)].instructions) {
        for (const Write& write : writes(instruction, m_program.scheduled_for)) visit(p, instruction, write);
      }
    }
  }

  // `reg` gets the result of `producer` `left` cycles behind the loop's start.
  void check_entry(const Instruction& producer, Register reg, int left) const {
    int cycle = 0;
    for (int p = m_loop.first; p <= m_loop.last; ++p) {
      const Packet& packet = m_program.packets[index(p)];
      for (const Instruction& instruction : packet.instructions) {
        const std::vector<Register> all = reads(instruction);
        if (cycle < left && std::find(all.begin(), all.end(), reg) != all.end()) {
          throw CannotReplace(fmt::format(
              "{} reads the old {} in the first iteration while the result of {} is in flight: both are needed",
              spelled(instruction), reg.str(), spelled(producer)));
        }
        for (const Write& write : writes(instruction, m_program.scheduled_for)) {
          if (write.reg != reg || cycle + write.cycles > left) continue;
          throw CannotReplace(fmt::format("{} lands in {} before the result of {} from in front of the loop does",
                                          spelled(instruction), reg.str(), spelled(producer)));
        }
      }
      cycle += packet.cycles();
    }
  }

  void check_behind(const Instruction& producer, const Write& write, int packet, int distance) const {
    for (const Instruction& instruction : m_program.packets[index(packet)].instructions) {
      const std::vector<Register> all = reads(instruction);
      if (std::find(all.begin(), all.end(), write.reg) != all.end()) {
        throw CannotReplace(fmt::format("{} behind the loop reads the old {} while the result of {} is in flight",
                                        spelled(instruction), write.reg.str(), spelled(producer)));
      }
      for (const Write& other : writes(instruction, m_program.scheduled_for)) {
        if (other.reg != write.reg || distance + other.cycles > write.cycles) continue;
        throw CannotReplace(fmt::format("{} behind the loop lands in {} before the result of {} does",
                                        spelled(instruction), write.reg.str(), spelled(producer)));
      }
    }
  }

  const Program& m_program;
  const HandLoop& m_loop;
  std::vector<int> m_entries;
  ControlFlow m_flow;
};

class Doctor {
 public:
  Doctor(const Program& program, const Pipeline& machine, const RescheduleOptions& options)
      : m_machine(machine), m_options(options) {
    m_out.program = program;
  }

  Rescheduled run() {
    const std::vector<HandLoop> loops = find_hand_loops(m_out.program);
    // From the last, so that packets in front keep their numbers.
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) look_at(*loop);
    std::reverse(m_out.loops.begin(), m_out.loops.end());
    return std::move(m_out);
  }

 private:
  /// What the hand packets mean is not defined where the check finds an error in them.
  void refuse_errors(const HandLoop& loop) const {
    const Place& first = m_out.program.packets[index(loop.first)].instructions.front().place;
    const Place& last = m_out.program.packets[index(loop.last)].instructions.front().place;
    for (const Diagnostic& diagnostic : check(m_out.program, m_out.program.scheduled_for)) {
      if (diagnostic.severity != Severity::error) continue;
      if (diagnostic.place.line < first.line || diagnostic.place.line > last.line) continue;
      throw CannotReplace("the check of the hand packets says: " + diagnostic.str());
    }
  }

  void look_at(const HandLoop& loop) {
    RescheduledLoop& found = m_out.loops.emplace_back();
    LoopReport& report = found.report;
    found.hand_interval = loop.interval;
    report.label = loop.label;
    report.by_hand = true;
    report.place = m_out.program.packets[index(loop.first)].instructions.front().place;
    try {
      refuse_errors(loop);
      RecoveredLoop recovered = recover_loop(m_out.program, loop, m_machine, m_options.independent);
      report.simple_cycles = loop.interval;
      std::map<Register, std::string> copy_names;
      int next = recovered.next_virtual;
      const FreshRegister fresh = [&](RegisterFile file, const std::string& name) {
        const Register reg{file, static_cast<std::uint16_t>(next)};
        next += 2;
        copy_names[reg] = name;
        return reg;
      };
      const RegisterName name = [&](Register reg) {
        const auto it = copy_names.find(reg);
        return it == copy_names.end() ? recovered.name(reg) : it->second;
      };
      const auto modulo = [&](const LoopBody& body) {
        return ModuloLoop{body.body, body.graph, m_machine, m_options.allow_assumed};
      };
      const LoopBody written{std::move(recovered.body), std::move(recovered.graph)};
      const auto independent = [&] { return recover_loop(m_out.program, loop, m_machine, true).graph; };
      describe_bounds(modulo(written), m_options.independent ? IndependentGraph{} : independent, name, report);
      const CopiedLoop copied = with_copies(written, {m_machine, m_options.allow_assumed, fresh, name, loop.label});
      report.copies = copied.copies;
      report.instructions =
          static_cast<int>(copied.loop.body.size()) - 1;  // the kernel's own SSUB is not the hand loop's
      const FoundSchedule search = find_schedule(modulo(copied.loop), 0, loop.interval + 1, m_budget, report);
      const auto& schedule = search.schedule;
      if (!schedule) {
        report.why_not = fmt::format("no interval up to the {} cycles of the hand schedule was found", loop.interval);
        found.why_kept = report.why_not;
        return;
      }
      report.pipelined = true;
      report.stages = schedule->stages;
      prove(modulo(written), modulo(copied.loop), search.failed, k_proof_budget, report);
      Program changed = replaced(loop, recovered, copied.loop.body, *schedule, fresh, found);
      const int more = found.call_cycles - found.hand_call_cycles;
      if (report.interval == loop.interval && more >= 0 && !m_options.replace_equal) {
        throw CannotReplace(
            fmt::format("the hand loop has the same initiation interval, and a call is {}",
                        more > 0 ? fmt::format("{} cycle{} shorter", more, more == 1 ? "" : "s") : "as long"));
      }
      m_out.program = std::move(changed);
      found.replaced = true;
    } catch (const CannotReplace& reason) {
      found.why_kept = reason.what();
    } catch (const std::runtime_error& reason) {
      report.why_not = reason.what();
      found.why_kept = reason.what();
    }
  }

  /// The program with the new loop, and what a call of it takes.
  Program replaced(const HandLoop& loop, const RecoveredLoop& recovered, const std::vector<Instruction>& body,
                   const ModuloSchedule& schedule, const FreshRegister& fresh, RescheduledLoop& found) const {
    const Program& program = m_out.program;
    LoopReport& report = found.report;
    if (program.scheduled_for != m_machine) {
      throw CannotReplace("the packets around it are scheduled for other latencies than this machine's");
    }
    const Boundary boundary(program, loop);
    const int drain = boundary.entry_drain();
    boundary.check_exit();
    const AllocationOptions registers = registers_for(recovered, boundary);

    report.guarded = schedule.stages > 1;
    std::vector<Segment> code =
        loop_code({schedule, body, loop.label, program.packets[index(loop.first)].instructions.front().place,
                   pinned_counter(recovered), recovered.counter_offset, recovered.control,
                   report.guarded ? hand_cycles(loop) : std::vector<std::vector<Instruction>>{}},
                  m_machine, fresh);
    const int kernel = report.guarded ? 2 : 1;
    report.prologue_cycles = static_cast<int>(code[index(kernel - 1)].cycles.size());
    report.epilogue_cycles = static_cast<int>(code[index(kernel + 1)].cycles.size());
    code[0].cycles.insert(code[0].cycles.begin(), index(drain), {});
    code[0].entry = true;
    for (Segment& segment : code) std::erase(segment.successors, -1);
    const Allocation allocation = allocate_registers(code, m_machine, registers);
    report.registers = allocation.live[index(kernel)];
    if (!allocation.complete) throw CannotReplace("out of registers: " + allocation.failure);
    for (const Register reg : allocation.undefined) {
      if (registers.pinned.count(reg) > 0) continue;
      throw CannotReplace(fmt::format("a value of {} from in front of the loop is lost", reg.str()));
    }
    Program changed = spliced(loop, code, allocation.physical);
    for (const Diagnostic& diagnostic : check(changed, m_machine)) {
      if (diagnostic.severity == Severity::error)
        throw CannotReplace("the check of the result says: " + diagnostic.str());
    }
    found.call_iterations = schedule.stages;
    found.hand_call_cycles = schedule.stages * loop.interval;
    for (int s = 0; s <= kernel + 1; ++s) found.call_cycles += static_cast<int>(code[index(s)].cycles.size());
    return changed;
  }

  // Values that cross the loop's ends keep their register. Others go where the program has nothing, or where the loop
  // itself kept values of its own.
  AllocationOptions registers_for(const RecoveredLoop& recovered, const Boundary& boundary) const {
    AllocationOptions options;
    const Program& program = m_out.program;
    options.reserved.insert(k_return_register);
    for (const Parameter& parameter : program.parameters) options.reserved.insert(parameter.reg);
    for (const Register reg : program.numbered) options.reserved.insert(reg);
    for (const Packet& packet : program.packets) {
      for (const Instruction& instruction : packet.instructions) {
        for (const Register reg : reads(instruction)) options.reserved.insert(reg);
        for (const Write& write : writes(instruction, m_machine)) options.reserved.insert(write.reg);
      }
    }
    std::map<Register, Register> holds;  // physical -> the value that crosses an end in it
    for (const auto& [virtual_register, value] : recovered.values) {
      const bool leaves = value.final && boundary.read_outside(value.reg);
      if (!value.live_in && !leaves) continue;
      const auto [it, is_new] = holds.try_emplace(value.reg, virtual_register);
      if (!is_new) {
        throw CannotReplace(fmt::format("{} holds several values that cross the loop's start or end", value.reg.str()));
      }
      options.pinned[virtual_register] = value.reg;
    }
    for (const auto& [unused_virtual, value] : recovered.values) {
      if (holds.count(value.reg) == 0 && !boundary.read_outside(value.reg)) options.reserved.erase(value.reg);
    }
    return options;
  }

  static Register pinned_counter(const RecoveredLoop& recovered) {
    for (const auto& [virtual_register, value] : recovered.values) {
      if (value.reg == recovered.counter && value.live_in) return virtual_register;
    }
    throw CannotReplace("the counter's value at the start is not known");
  }

  std::vector<std::vector<Instruction>> hand_cycles(const HandLoop& loop) const {
    std::vector<std::vector<Instruction>> cycles;
    for (int p = loop.first; p <= loop.last; ++p) {
      const Packet& packet = m_out.program.packets[index(p)];
      cycles.emplace_back();
      if (!packet.is_idle()) cycles.back() = packet.instructions;
      cycles.resize(cycles.size() + index(packet.cycles() - 1));
    }
    return cycles;
  }

  Program spliced(const HandLoop& loop, const std::vector<Segment>& code,
                  const std::map<Register, Register>& physical) const {
    const Program& old = m_out.program;
    Program program = old;
    EmittedCode emitted = emit_segments(code, physical, old.packets[index(loop.first)].instructions.front().place);
    const int grown = static_cast<int>(emitted.packets.size()) - (loop.last - loop.first + 1);
    emitted.packets.front().above = old.packets[index(loop.first)].above;
    program.packets.erase(program.packets.begin() + loop.first, program.packets.begin() + loop.last + 1);
    program.packets.insert(program.packets.begin() + loop.first, emitted.packets.begin(), emitted.packets.end());
    const auto moved = [&](int packet) {
      return packet <= loop.first ? packet : packet > loop.last ? packet + grown : loop.first;
    };
    for (auto& [unused_label, packet] : program.labels) packet = moved(packet);
    for (Region& region : program.regions) {
      region.first = moved(region.first);
      region.last = moved(region.last);
    }
    for (LinearSource& linear : program.linear) {
      linear.first = moved(linear.first);
      linear.last = moved(linear.last);
    }
    std::map<std::string, int> added;
    for (std::size_t s = 0; s < code.size(); ++s) {
      for (const std::string& label : code[s].labels) added[label] = loop.first + emitted.first_packet[s];
    }
    added[loop.label + ".done"] = loop.last + 1 + grown;
    for (const auto& [label, packet] : added) {
      if (label == loop.label) continue;
      if (!program.labels.emplace(label, packet).second) {
        throw CannotReplace(fmt::format("the program has a label '{}' of its own", label));
      }
    }
    bool jumped_to = false;  // a label that nothing branches to would look like an entry of the program
    for (Packet& packet : program.packets) {
      for (Instruction& instruction : packet.instructions) {
        for (Operand& operand : instruction.operands) {
          auto* target = std::get_if<Target>(&operand);
          if (target == nullptr) continue;
          target->packet = program.labels.at(target->label);
          jumped_to = jumped_to || target->label == loop.label;
        }
      }
    }
    if (!jumped_to) program.labels.erase(loop.label);
    return program;
  }

  const Pipeline& m_machine;
  const RescheduleOptions& m_options;
  SearchBudget m_budget{500'000'000, 250'000'000};             // of all loops
  static constexpr std::int64_t k_proof_budget = 400'000'000;  // a second for one loop
  Rescheduled m_out;
};

}  // namespace

Rescheduled reschedule(const Program& program, const Pipeline& machine, const RescheduleOptions& options) {
  return Doctor(program, machine, options).run();
}

std::string print(const RescheduledLoop& loop) {
  std::string text = print(loop.report);
  const LoopReport& report = loop.report;
  if (loop.replaced && report.guarded) {
    text += fmt::format("  below {} iterations the hand packets run, behind a test at run time\n", report.stages);
  }
  text += fmt::format("  hand schedule: {} cycles an iteration", loop.hand_interval);
  if (report.pipelined) {
    const int less = loop.hand_interval - report.interval;
    text += less > 0 ? fmt::format(", {} more than the scheduler's", less) : ", as the scheduler's";
    if (less == 0 && report.is_proved()) {
      text += fmt::format(": it cannot be shorter{}", report.independent_bound > 0 ? " without --independent" : "");
    }
    if (less == 0 && report.refuted_here) text += ": with these registers it cannot be shorter";
  }
  text += "\n";
  if (!loop.replaced) return text + fmt::format("  kept: {}\n", loop.why_kept);
  return text +
         fmt::format("  replaced: {} iteration{} of a call take {} cycles, {} before; each further one {}, {} before\n",
                     loop.call_iterations, loop.call_iterations == 1 ? "" : "s", loop.call_cycles,
                     loop.hand_call_cycles, report.interval, loop.hand_interval);
}

}  // namespace mtsim::isa
