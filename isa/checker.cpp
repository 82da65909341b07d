// SPDX-License-Identifier: Apache-2.0
#include "isa/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "isa/analysis.h"
#include "isa/checker_exits.h"
#include "isa/dead_results.h"
#include "isa/internal.h"

namespace mtsim::isa {
namespace {

std::string cycles_text(int cycles) { return fmt::format("{} cycle{}", cycles, cycles == 1 ? "" : "s"); }

class Checker {
 public:
  Checker(const Program& program, const Pipeline& machine, const std::vector<int>& entries, bool all_entries)
      : m_entries(entries), m_all_entries(all_entries), m_checked(program, machine, entries) {}

  std::vector<Diagnostic> run() {
    absent_units();
    if (other_branch_latency()) return m_findings.take();  // all that follows would be about other packets
    for (int p = 0; p < m_checked.packets(); ++p) {
      if (!m_checked.flow().reachable(p)) continue;
      pairs_of(p);
      double_branches(p);
    }
    unused_results();
    check_exits(m_checked, m_entries, m_all_entries, m_findings);
    if (m_checked.stopped()) {
      m_findings.add(Severity::warning, "analysis-stopped", m_checked.packet(0).instructions[0].place,
                     fmt::format("analysis stopped after {} steps: part of the program is not checked",
                                 CheckedProgram::k_most_steps),
                     "check it in parts with fewer branches or shorter latencies");
    }
    for (const auto& [key, reads] : m_rebound) report_rebound(reads, std::get<bool>(key));
    for (const auto& [packet, reads] : m_in_flight) report_in_flight(reads);
    for (const auto& [reg, reader] :
         find_never_written(m_checked.program(), [&](int p) { return m_checked.flow().reachable(p); })) {
      m_findings.add(Severity::warning, "never-written", reader->place,
                     fmt::format("{} is read but nothing writes it", reg.str()),
                     "declare it with .param or set it before");
    }
    for (const AssumedShape& shape : find_assumed_shapes(m_checked.program())) {
      m_findings.add(Severity::note, "assumed-shape", shape.first,
                     fmt::format("{} ({} {}): not known to run on hardware", shape.name, shape.packets,
                                 shape.packets == 1 ? "packet" : "packets"),
                     "");
    }
    return m_findings.take();
  }

 private:
  // A read that comes before a result has landed, here or as scheduled.
  struct EarlyRead {
    const Instruction* reader;
    const Landing* landing;
    int distance;

    int gap() const { return std::abs(landing->cycles - distance); }
  };

  // --- a result and what happens while it is in flight

  void pairs_of(int p) {
    const PacketFacts& here = m_checked.facts(p);
    for (std::size_t i = 0; i < here.writes.size(); ++i) {
      for (std::size_t j = i + 1; j < here.writes.size(); ++j) {
        if (here.writes[i].instruction != here.writes[j].instruction) {
          write_pair(p, here.writes[i], here.writes[j], 0);
        }
      }
    }
    m_checked.walk(p, here.horizon, [&](int q, int distance) {
      const PacketFacts& there = m_checked.facts(q);
      m_checked.spend(static_cast<std::int64_t>(here.writes.size() * (there.writes.size() + there.reads.size())));
      for (const Landing& write : here.writes) {
        for (const Landing& other : there.writes) write_pair(p, write, other, distance);
        for (const auto& [reader, reg] : there.reads) {
          if (reg == write.reg) read_of(p, write, *reader, q, distance);
        }
      }
      return true;
    });
  }

  void write_pair(int p, const Landing& a, const Landing& b, int distance) {
    const bool together = a.cycles == distance + b.cycles;
    const bool same_unit = a.instruction->unit == b.instruction->unit && !a.post_modify && !b.post_modify &&
                           a.reg.file == b.reg.file && distance > 0;
    if (a.reg != b.reg) {
      if (together && same_unit && !m_checked.exclusive(p, *a.instruction, *b.instruction, distance)) {
        m_findings.add(
            Severity::warning, "same-unit-landing", b.instruction->place,
            fmt::format("two results of {} land in the same cycle: {} of {} and {} of {}", name(b.instruction->unit),
                        a.reg.str(), spelled(*a.instruction), b.reg.str(), spelled(*b.instruction)),
            "move one of them to another unit or cycle");
      }
      return;
    }
    const int before = a.scheduled - (distance + b.scheduled);
    const int now = a.cycles - (distance + b.cycles);
    const bool swapped = (before < 0 && now > 0) || (before > 0 && now < 0);
    if ((!together && !swapped) || m_checked.exclusive(p, *a.instruction, *b.instruction, distance)) return;
    if (together) {
      m_findings.add(Severity::error, "waw-same-cycle", b.instruction->place,
                     fmt::format("{} and {} write {} and land in the same cycle", spelled(*a.instruction),
                                 spelled(*b.instruction), a.reg.str()),
                     "move one of them by a cycle or give it another register");
    } else {
      m_findings.add(
          Severity::error, "rebound-read", b.instruction->place,
          fmt::format("{} and {} land in {} in the other order than scheduled: {} now takes {} (scheduled {}), {} "
                      "{} (scheduled {})",
                      spelled(*a.instruction), spelled(*b.instruction), a.reg.str(), a.instruction->row->mnemonic,
                      cycles_text(a.cycles), a.scheduled, b.instruction->row->mnemonic, b.cycles, b.scheduled),
          "schedule the kernel anew for these latencies");
    }
  }

  void read_of(int p, const Landing& write, const Instruction& reader, int q, int distance) {
    const int early = std::min(write.cycles, write.scheduled);
    const int late = std::max(write.cycles, write.scheduled);
    if (early <= distance && distance < late) {
      remember({&reader, &write, distance}, m_rebound[{q, write.reg.flat(), write.cycles > write.scheduled}]);
    } else if (distance < write.cycles && !scheduled_together(p, q)) {
      m_in_flight[q].push_back({&reader, &write, distance});
    }
  }

  /// One scheduler made both packets: a read between them of an old value is meant.
  bool scheduled_together(int p, int q) const {
    const int linear = m_checked.program().linear_at(p);
    return linear >= 0 && linear == m_checked.program().linear_at(q);
  }

  // Of the ways from one producer to a read, which follow one another, the worst.
  static void remember(const EarlyRead& read, std::vector<EarlyRead>& all) {
    if (all.empty() || all.back().landing != read.landing) {
      all.push_back(read);
    } else if (read.gap() > all.back().gap()) {
      all.back() = read;
    }
  }

  /// One error a packet and register, whatever number of paths lead to the read.
  void report_rebound(const std::vector<EarlyRead>& all, bool too_late) {
    const EarlyRead& worst = *std::max_element(
        all.begin(), all.end(), [](const EarlyRead& a, const EarlyRead& b) { return a.gap() < b.gap(); });
    const Landing& write = *worst.landing;
    std::set<const Instruction*> named{write.instruction};
    std::string others;
    for (const EarlyRead& read : all) {
      if (!named.insert(read.landing->instruction).second) continue;
      others += (others.empty() ? " (also behind " : ", ") + spelled(*read.landing->instruction);
    }
    m_findings.add(
        Severity::error, "rebound-read", worst.reader->place,
        fmt::format("{} reads {} {} after {} writes it and gets the {} value{}: {} takes {} on this "
                    "machine, {} as scheduled",
                    spelled(*worst.reader), write.reg.str(), cycles_text(worst.distance), spelled(*write.instruction),
                    too_late ? "old" : "new", others.empty() ? "" : others + ")", write.instruction->row->mnemonic,
                    cycles_text(write.cycles), write.scheduled),
        too_late ? fmt::format("move the read {} later or schedule the kernel anew",
                               cycles_text(write.cycles - worst.distance))
                 : "keep the old value in another register or schedule the kernel anew");
  }

  // One note a packet, whatever number of its operands is in flight.
  void report_in_flight(const std::vector<EarlyRead>& all) {
    std::set<int> registers;
    for (const EarlyRead& read : all) registers.insert(read.landing->reg.flat());
    const EarlyRead& first = all.front();
    const int left = first.landing->cycles - first.distance;
    const std::string more =
        registers.size() == 1 ? "" : fmt::format(" ({} such registers in this packet)", registers.size());
    m_findings.add(
        Severity::note, "read-in-flight", first.reader->place,
        fmt::format("{} reads the old {}: the result of {} lands {} cycle{} later{}", spelled(*first.reader),
                    first.landing->reg.str(), spelled(*first.landing->instruction), left, left == 1 ? "" : "s", more),
        "");
  }

  // --- issue slots

  void absent_units() {
    for (int p = 0; p < m_checked.packets(); ++p) {
      if (!m_checked.flow().reachable(p)) continue;
      for (const Instruction& instruction : m_checked.packet(p).instructions) {
        const Row& row = *instruction.row;
        if (row.units == units::NONE || (m_checked.machine().units() & mask(instruction.unit))) continue;
        std::string left;
        for (int u = 0; u < k_units; ++u) {
          if ((m_checked.machine().units_of(row) & mask(static_cast<Unit>(u))) == 0) continue;
          left += (left.empty() ? "" : ", ") + std::string(name(static_cast<Unit>(u)));
        }
        m_findings.add(
            Severity::error, "absent-unit", instruction.place,
            fmt::format("{} issues to {}, which this machine does not have", row.mnemonic, name(instruction.unit)),
            fmt::format("{} can issue to {} here: schedule the kernel anew", row.mnemonic, left));
      }
    }
  }

  // --- branches

  // True when the machine has another number of delay slots than the schedule assumes, and says so.
  bool other_branch_latency() {
    const int now = m_checked.machine().branch_cycles();
    const int scheduled = m_checked.program().scheduled_for.branch_cycles();
    if (now == scheduled) return false;
    for (int p = 0; p < m_checked.packets(); ++p) {
      const Instruction* branch = m_checked.packet(p).branch();
      if (branch == nullptr || !m_checked.flow().reachable(p)) continue;
      m_findings.add(
          Severity::error, "rebound-read", branch->place,
          fmt::format(
              "SBR has {} delay slots on this machine and {} as scheduled: other packets run behind every branch",
              now - 1, scheduled - 1),
          "schedule the kernel anew for this machine");
      return true;
    }
    return false;
  }

  void double_branches(int p) {
    const Instruction* first = m_checked.packet(p).branch();
    if (first == nullptr) return;
    int distance = m_checked.packet(p).cycles();
    for (int q = p + 1; q < m_checked.packets() && distance < m_checked.machine().branch_cycles(); ++q) {
      const Instruction* second = m_checked.packet(q).branch();
      if (second != nullptr && taken_with(p, *first, *second, distance)) {
        m_findings.add(
            Severity::error, "double-branch", second->place,
            fmt::format("{} is taken {} cycle{} after {}, inside its {} delay slots", spelled(*second), distance,
                        distance == 1 ? "" : "s", spelled(*first), m_checked.machine().branch_cycles() - 1),
            "give the two opposite predicates or move one of them out");
      }
      distance += m_checked.packet(q).cycles();
    }
  }

  // When `first` is taken, `second` is for certain.
  bool taken_with(int p, const Instruction& first, const Instruction& second, int distance) const {
    if (!second.predicate) return !first.predicate;
    return first.predicate && *first.predicate == *second.predicate &&
           m_checked.stable(p, distance, second.predicate->reg);
  }

  // --- results nobody reads

  void unused_results() {
    std::array<std::vector<int>, k_register_count> touched_by;  // register -> packets, ascending
    for (int p = 0; p < m_checked.packets(); ++p) {
      const auto touch = [&](Register reg) {
        std::vector<int>& packets = touched_by[index(reg.flat())];
        if (packets.empty() || packets.back() != p) packets.push_back(p);
      };
      for (const auto& [unused_reader, reg] : m_checked.facts(p).reads) touch(reg);
      for (const Landing& write : m_checked.facts(p).writes) touch(write.reg);
    }
    std::vector<DeadResults::Access> accesses(index(m_checked.packets()));
    for (int flat = 0; flat < k_register_count && !m_checked.stopped(); ++flat) {
      mark_dead(flat, touched_by[index(flat)], accesses);
    }
    for (int p = 0; p < m_checked.packets(); ++p) {
      if (!m_checked.flow().reachable(p)) continue;
      for (const Instruction& instruction : m_checked.packet(p).instructions) report_unused(p, instruction);
    }
  }

  // `accesses` is empty before and after.
  void mark_dead(int flat, const std::vector<int>& packets, std::vector<DeadResults::Access>& accesses) {
    constexpr int k_steps_per_node = 10;
    for (const int p : packets) {
      DeadResults::Access& access = accesses[index(p)];
      for (const auto& [unused_reader, reg] : m_checked.facts(p).reads) access.read = access.read || reg.flat() == flat;
      for (const Landing& write : m_checked.facts(p).writes) {
        if (write.reg.flat() == flat && !write.instruction->predicate) access.kills.push_back(write.cycles);
      }
    }
    DeadResults results(m_checked.flow(), accesses, m_checked.steps_left() / k_steps_per_node);
    for (const int p : packets) {
      for (Landing& write : m_checked.facts(p).writes) {
        if (write.reg.flat() == flat && !write.post_modify) write.dead = results.dead(p, write.cycles);
      }
    }
    m_checked.spend(k_steps_per_node * results.steps());
    for (const int p : packets) accesses[index(p)] = {};
  }

  void report_unused(int p, const Instruction& instruction) {
    const Landing* last = nullptr;
    for (const Landing& write : m_checked.facts(p).writes) {
      if (write.instruction != &instruction || write.post_modify) continue;
      if (!write.dead) return;
      last = &write;
    }
    if (last == nullptr) return;
    m_findings.add(Severity::warning, "overwritten-unused", instruction.place,
                   fmt::format("the result of {} in {} is overwritten before anything reads it",
                               instruction.row->mnemonic, last->reg.str()),
                   "drop the instruction, or check that the reads come before the next write lands");
  }

  const std::vector<int>& m_entries;
  bool m_all_entries;
  CheckedProgram m_checked;
  Findings m_findings;
  std::map<int, std::vector<EarlyRead>> m_in_flight;  // by reading packet
  std::map<std::tuple<int, int, bool>, std::vector<EarlyRead>>
      m_rebound;  // by packet, register, whether it is too soon
};

}  // namespace

std::vector<Diagnostic> check(const Program& program, const Pipeline& machine, const std::string& entry) {
  const std::vector<int> entries = entry.empty() ? default_entries(program) : std::vector<int>{program.entry(entry)};
  return Checker(program, machine, entries, entry.empty()).run();
}

}  // namespace mtsim::isa
