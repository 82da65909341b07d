// SPDX-License-Identifier: Apache-2.0
#include "isa/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <compare>
#include <optional>
#include <set>
#include <tuple>

#include "isa/analysis.h"
#include "isa/control_flow.h"
#include "isa/dead_results.h"
#include "isa/internal.h"

namespace mtsim::isa {
namespace {

// A write of one instruction, with the cycles until it lands on the machine and under .scheduled_for.
struct Landing {
  const Instruction* instruction;
  Register reg;
  int cycles;
  int scheduled;
  bool post_modify;
  bool dead = false;  // overwritten before anything can read it
};

struct PacketFacts {
  std::vector<std::pair<const Instruction*, Register>> reads;
  std::vector<Landing> writes;
  int horizon = 1;  // every landing is less than this many cycles away, on the machine and as scheduled
};

std::string cycles_text(int cycles) { return fmt::format("{} cycle{}", cycles, cycles == 1 ? "" : "s"); }

class Checker {
 public:
  Checker(const Program& program, const Pipeline& machine, const std::vector<int>& entries)
      : m_program(program), m_machine(machine), m_entries(entries), m_flow(program, machine, entries) {
    for (const Packet& packet : program.packets) m_facts.push_back(facts_of(packet));
    collect_predicate_landings();
  }

  std::vector<Diagnostic> run() {
    absent_units();
    if (other_branch_latency()) return std::move(m_diagnostics);  // all that follows would be about other packets
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      if (!m_flow.reachable(p)) continue;
      pairs_of(p);
      double_branches(p);
    }
    unused_results();
    end_of_program();
    overwritten_return();
    if (stopped()) {
      add(Severity::warning, "analysis-stopped", m_program.packets[0].instructions[0].place,
          fmt::format("analysis stopped after {} steps: part of the program is not checked", k_most_steps),
          "check it in parts with fewer branches or shorter latencies");
    }
    for (const auto& [packet, reads] : m_in_flight) report_in_flight(reads);
    for (const auto& [reg, reader] : find_never_written(m_program, [&](int p) { return m_flow.reachable(p); })) {
      add(Severity::warning, "never-written", reader->place, fmt::format("{} is read but nothing writes it", reg.str()),
          "declare it with .param or set it before");
    }
    for (const AssumedShape& shape : find_assumed_shapes(m_program)) {
      add(Severity::note, "assumed-shape", shape.first,
          fmt::format("{} ({} {}): not known to run on hardware", shape.name, shape.packets,
                      shape.packets == 1 ? "packet" : "packets"),
          "");
    }
    std::stable_sort(m_diagnostics.begin(), m_diagnostics.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::tie(a.place.line, a.place.column) < std::tie(b.place.line, b.place.column);
    });
    return std::move(m_diagnostics);
  }

 private:
  struct ReadInFlight {
    const Instruction* reader;
    const Landing* landing;
    int distance;
  };

  // A kernel takes thousands of steps. A text made to have paths without number must not keep the host busy.
  static constexpr std::int64_t k_most_steps = 100'000'000;
  bool stopped() const { return m_steps > k_most_steps; }

  template <typename F>
  void walk(int packet, int horizon, const F& visit) const {
    constexpr int k_steps_per_visit = 10;
    if (stopped()) return;
    m_flow.walk(packet, horizon, [&](int q, int distance) {
      m_steps += k_steps_per_visit;
      return visit(q, distance) && !stopped();
    });
  }

  PacketFacts facts_of(const Packet& packet) const {
    PacketFacts facts;
    for (const Instruction& instruction : packet.instructions) {
      for (const Register reg : reads(instruction)) facts.reads.emplace_back(&instruction, reg);
      const std::vector<Write> now = writes(instruction, m_machine);
      const std::vector<Write> scheduled = writes(instruction, m_program.scheduled_for);
      for (std::size_t i = 0; i < now.size(); ++i) {
        facts.writes.push_back({&instruction, now[i].reg, now[i].cycles, scheduled[i].cycles, now[i].post_modify});
        facts.horizon = std::max({facts.horizon, now[i].cycles, scheduled[i].cycles});
      }
    }
    return facts;
  }

  void add(Severity severity, const char* code, const Place& place, const std::string& message,
           const std::string& fix) {
    if (m_seen.insert({code, place.line, place.column, message}).second) {
      m_diagnostics.push_back({severity, place, message, fix, code});
    }
  }

  // --- predicates that cannot both hold

  // Cycles after packet p's issue at which a predicate register written before p still changes.
  void collect_predicate_landings() {
    std::set<int> predicates;
    for (const Packet& packet : m_program.packets) {
      for (const Instruction& instruction : packet.instructions) {
        if (instruction.predicate) predicates.insert(instruction.predicate->reg.flat());
      }
    }
    m_pending_predicates.resize(m_facts.size());
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      for (const Landing& write : m_facts[index(p)].writes) {
        if (predicates.count(write.reg.flat()) == 0 || write.cycles < 2) continue;
        walk(p, write.cycles, [&](int q, int distance) {
          m_pending_predicates[index(q)].emplace(write.reg.flat(), write.cycles - distance);
          return true;
        });
      }
    }
  }

  // True when no write to `reg` can land in the `distance` cycles after packet p's issue.
  bool stable(int p, int distance, Register reg) const {
    for (const auto& [other, cycles] : m_pending_predicates[index(p)]) {
      if (other == reg.flat() && cycles <= distance) return false;
    }
    bool changes = false;
    const auto look = [&](int q, int at) {
      for (const Landing& write : m_facts[index(q)].writes) {
        changes = changes || (write.reg == reg && at + write.cycles <= distance);
      }
      return !changes;
    };
    if (distance > 0 && look(p, 0)) walk(p, distance, look);
    return !changes;
  }

  // True when a (in packet p) and b (`distance` cycles later) can never both execute.
  bool exclusive(int p, const Instruction& a, const Instruction& b, int distance) const {
    return always_opposite(a, b) && stable(p, distance, a.predicate->reg);
  }

  // --- a result and what happens while it is in flight

  void pairs_of(int p) {
    const PacketFacts& here = m_facts[index(p)];
    for (std::size_t i = 0; i < here.writes.size(); ++i) {
      for (std::size_t j = i + 1; j < here.writes.size(); ++j) {
        if (here.writes[i].instruction != here.writes[j].instruction) {
          write_pair(p, here.writes[i], here.writes[j], 0);
        }
      }
    }
    walk(p, here.horizon, [&](int q, int distance) {
      const PacketFacts& there = m_facts[index(q)];
      m_steps += static_cast<std::int64_t>(here.writes.size() * (there.writes.size() + there.reads.size()));
      for (const Landing& write : here.writes) {
        for (const Landing& other : there.writes) write_pair(p, write, other, distance);
        for (const auto& [reader, reg] : there.reads) {
          if (reg == write.reg) read_of(write, *reader, q, distance);
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
      if (together && same_unit && !exclusive(p, *a.instruction, *b.instruction, distance)) {
        add(Severity::warning, "same-unit-landing", b.instruction->place,
            fmt::format("two results of {} land in the same cycle: {} of {} and {} of {}", name(b.instruction->unit),
                        a.reg.str(), spelled(*a.instruction), b.reg.str(), spelled(*b.instruction)),
            "move one of them to another unit or cycle");
      }
      return;
    }
    const int before = a.scheduled - (distance + b.scheduled);
    const int now = a.cycles - (distance + b.cycles);
    const bool swapped = (before < 0 && now > 0) || (before > 0 && now < 0);
    if ((!together && !swapped) || exclusive(p, *a.instruction, *b.instruction, distance)) return;
    if (together) {
      add(Severity::error, "waw-same-cycle", b.instruction->place,
          fmt::format("{} and {} write {} and land in the same cycle", spelled(*a.instruction), spelled(*b.instruction),
                      a.reg.str()),
          "move one of them by a cycle or give it another register");
    } else {
      add(Severity::error, "rebound-read", b.instruction->place,
          fmt::format("{} and {} land in {} in the other order than scheduled: {} now takes {} (scheduled {}), {} "
                      "{} (scheduled {})",
                      spelled(*a.instruction), spelled(*b.instruction), a.reg.str(), a.instruction->row->mnemonic,
                      cycles_text(a.cycles), a.scheduled, b.instruction->row->mnemonic, b.cycles, b.scheduled),
          "schedule the kernel anew for these latencies");
    }
  }

  void read_of(const Landing& write, const Instruction& reader, int q, int distance) {
    const int early = std::min(write.cycles, write.scheduled);
    const int late = std::max(write.cycles, write.scheduled);
    if (early <= distance && distance < late) {
      const bool too_late = write.cycles > write.scheduled;
      add(Severity::error, "rebound-read", reader.place,
          fmt::format("{} reads {} {} after {} writes it and gets the {} value: {} takes {} on this "
                      "machine, {} as scheduled",
                      spelled(reader), write.reg.str(), cycles_text(distance), spelled(*write.instruction),
                      too_late ? "old" : "new", write.instruction->row->mnemonic, cycles_text(write.cycles),
                      write.scheduled),
          too_late
              ? fmt::format("move the read {} later or schedule the kernel anew", cycles_text(write.cycles - distance))
              : "keep the old value in another register or schedule the kernel anew");
    } else if (distance < write.cycles) {
      m_in_flight[q].push_back({&reader, &write, distance});
    }
  }

  // One note a packet, whatever number of its operands is in flight.
  void report_in_flight(const std::vector<ReadInFlight>& all) {
    std::set<int> registers;
    for (const ReadInFlight& read : all) registers.insert(read.landing->reg.flat());
    const ReadInFlight& first = all.front();
    const int left = first.landing->cycles - first.distance;
    const std::string more =
        registers.size() == 1 ? "" : fmt::format(" ({} such registers in this packet)", registers.size());
    add(Severity::note, "read-in-flight", first.reader->place,
        fmt::format("{} reads the old {}: the result of {} lands {} cycle{} later{}", spelled(*first.reader),
                    first.landing->reg.str(), spelled(*first.landing->instruction), left, left == 1 ? "" : "s", more),
        "");
  }

  // --- issue slots

  void absent_units() {
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      if (!m_flow.reachable(p)) continue;
      for (const Instruction& instruction : m_program.packets[index(p)].instructions) {
        const Row& row = *instruction.row;
        if (row.units == units::NONE || (m_machine.units() & mask(instruction.unit))) continue;
        std::string left;
        for (int u = 0; u < k_units; ++u) {
          if ((m_machine.units_of(row) & mask(static_cast<Unit>(u))) == 0) continue;
          left += (left.empty() ? "" : ", ") + std::string(name(static_cast<Unit>(u)));
        }
        add(Severity::error, "absent-unit", instruction.place,
            fmt::format("{} issues to {}, which this machine does not have", row.mnemonic, name(instruction.unit)),
            fmt::format("{} can issue to {} here: schedule the kernel anew", row.mnemonic, left));
      }
    }
  }

  // --- branches

  // True when the machine has another number of delay slots than the schedule assumes, and says so.
  bool other_branch_latency() {
    const int now = m_machine.branch_cycles();
    const int scheduled = m_program.scheduled_for.branch_cycles();
    if (now == scheduled) return false;
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      const Instruction* branch = m_program.packets[index(p)].branch();
      if (branch == nullptr || !m_flow.reachable(p)) continue;
      add(Severity::error, "rebound-read", branch->place,
          fmt::format(
              "SBR has {} delay slots on this machine and {} as scheduled: other packets run behind every branch",
              now - 1, scheduled - 1),
          "schedule the kernel anew for this machine");
      return true;
    }
    return false;
  }

  void double_branches(int p) {
    const Instruction* first = m_program.packets[index(p)].branch();
    if (first == nullptr) return;
    int distance = m_program.packets[index(p)].cycles();
    for (std::size_t q = index(p) + 1; q < m_facts.size() && distance < m_machine.branch_cycles(); ++q) {
      const Instruction* second = m_program.packets[q].branch();
      if (second != nullptr && taken_with(p, *first, *second, distance)) {
        add(Severity::error, "double-branch", second->place,
            fmt::format("{} is taken {} cycle{} after {}, inside its {} delay slots", spelled(*second), distance,
                        distance == 1 ? "" : "s", spelled(*first), m_machine.branch_cycles() - 1),
            "give the two opposite predicates or move one of them out");
      }
      distance += m_program.packets[q].cycles();
    }
  }

  // When `first` is taken, `second` is for certain.
  bool taken_with(int p, const Instruction& first, const Instruction& second, int distance) const {
    if (!second.predicate) return !first.predicate;
    return first.predicate && *first.predicate == *second.predicate && stable(p, distance, second.predicate->reg);
  }

  // --- results nobody reads

  void unused_results() {
    std::array<std::vector<int>, k_register_count> touched_by;  // register -> packets, ascending
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      const auto touch = [&](Register reg) {
        std::vector<int>& packets = touched_by[index(reg.flat())];
        if (packets.empty() || packets.back() != p) packets.push_back(p);
      };
      for (const auto& [unused_reader, reg] : m_facts[index(p)].reads) touch(reg);
      for (const Landing& write : m_facts[index(p)].writes) touch(write.reg);
    }
    std::vector<DeadResults::Access> accesses(m_facts.size());
    for (int flat = 0; flat < k_register_count && !stopped(); ++flat) {
      mark_dead(flat, touched_by[index(flat)], accesses);
    }
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      if (!m_flow.reachable(p)) continue;
      for (const Instruction& instruction : m_program.packets[index(p)].instructions) report_unused(p, instruction);
    }
  }

  // `accesses` is empty before and after.
  void mark_dead(int flat, const std::vector<int>& packets, std::vector<DeadResults::Access>& accesses) {
    constexpr int k_steps_per_node = 10;
    for (const int p : packets) {
      DeadResults::Access& access = accesses[index(p)];
      for (const auto& [unused_reader, reg] : m_facts[index(p)].reads) access.read = access.read || reg.flat() == flat;
      for (const Landing& write : m_facts[index(p)].writes) {
        if (write.reg.flat() == flat && !write.instruction->predicate) access.kills.push_back(write.cycles);
      }
    }
    DeadResults results(m_flow, accesses, (k_most_steps - m_steps) / k_steps_per_node);
    for (const int p : packets) {
      for (Landing& write : m_facts[index(p)].writes) {
        if (write.reg.flat() == flat && !write.post_modify) write.dead = results.dead(p, write.cycles);
      }
    }
    m_steps += k_steps_per_node * results.steps();
    for (const int p : packets) accesses[index(p)] = {};
  }

  void report_unused(int p, const Instruction& instruction) {
    const Landing* last = nullptr;
    for (const Landing& write : m_facts[index(p)].writes) {
      if (write.instruction != &instruction || write.post_modify) continue;
      if (!write.dead) return;
      last = &write;
    }
    if (last == nullptr) return;
    add(Severity::warning, "overwritten-unused", instruction.place,
        fmt::format("the result of {} in {} is overwritten before anything reads it", instruction.row->mnemonic,
                    last->reg.str()),
        "drop the instruction, or check that the reads come before the next write lands");
  }

  // --- the way out

  // What a branch told about its predicate register.
  struct Known {
    int reg = -1;  // flat; -1: nothing
    bool holds = false;
    auto operator<=>(const Known&) const = default;
  };

  // `[R0] SBR loop` and `[!R0] SBR R63` behind it leave no path that takes neither: what the first one told is followed
  // until something writes the register.
  void end_of_program() {
    std::set<std::pair<int, Known>> seen;
    std::vector<std::pair<int, Known>> pending;
    const auto follow = [&](int state, Known known) {
      if (state >= 0 && seen.insert({state, known}).second) pending.emplace_back(state, known);
    };
    std::optional<std::pair<int, int>> off_end;  // last packet, delay cycles that a taken branch lacks
    const int count = static_cast<int>(m_facts.size());
    for (const int entry : m_entries) {
      if (entry >= count) {  // a label behind the last packet
        off_end = {count - 1, 0};
        continue;
      }
      for (const int state : m_flow.states_of(entry)) follow(state, {});
    }
    while (!pending.empty()) {
      const auto [at, known] = pending.back();
      pending.pop_back();
      const ControlFlow::State& state = m_flow.states()[index(at)];
      const auto& edges = m_flow.successors(at);
      const Instruction* branch = m_program.packets[index(state.packet)].branch();
      for (std::size_t i = 0; i < edges.size(); ++i) {
        const bool branches = branch != nullptr && state.branch_in == 0;
        Known then = known;
        if (branches && branch->predicate) {
          const Known told{branch->predicate->reg.flat(), branch->predicate->negated == (i > 0)};
          if (known.reg == told.reg && known.holds != told.holds) continue;
          if (settled(state.packet, told.reg)) then = told;
        }
        if (writes_register(state.packet, then.reg)) then = {};
        if (edges[i].state != ControlFlow::k_off_end) {
          follow(edges[i].state, then);
          continue;
        }
        const int taken_in = branches && i == 0 ? m_machine.branch_cycles() : state.branch_in;
        const int missing = std::max(0, taken_in - edges[i].cycles);
        if (!off_end || off_end->second < missing) off_end = {state.packet, missing};
      }
    }
    if (off_end) report_off_end(off_end->first, off_end->second);
  }

  // No write to the register is in flight when the packet issues.
  bool settled(int packet, int flat) const {
    const auto& landings = m_pending_predicates[index(packet)];
    const auto first = landings.lower_bound({flat, 0});
    return first == landings.end() || first->first != flat;
  }

  bool writes_register(int packet, int flat) const {
    const auto& all = m_facts[index(packet)].writes;
    return std::any_of(all.begin(), all.end(), [&](const Landing& write) { return write.reg.flat() == flat; });
  }

  void report_off_end(int packet, int missing) {
    const Place& place = m_program.packets[index(packet)].instructions[0].place;
    const int slots = m_machine.branch_cycles() - 1;
    if (missing > 0) {
      add(Severity::warning, "runs-off-end", place,
          fmt::format("the program ends {} cycle{} before its last branch takes effect: SBR has {} delay slots",
                      missing, missing == 1 ? "" : "s", slots),
          fmt::format("add SNOP {} at the end", missing));
    } else {
      add(Severity::warning, "runs-off-end", place,
          "some path runs off the end of the program: no branch is taken in front of it",
          fmt::format("end the program with SBR R63 and SNOP {}", slots));
    }
  }

  // A kernel that saves R63 first knows what it does.
  void overwritten_return() {
    const auto of_return = [](Register reg) { return reg == k_return_register; };
    const Instruction* overwrites = nullptr;
    bool returns = false;
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      if (!m_flow.reachable(p)) continue;
      for (const auto& [reader, reg] : m_facts[index(p)].reads) {
        if (!of_return(reg)) continue;
        if (reader->row->id != Mnemonic::SBR) return;
        returns = true;
      }
      for (const Landing& write : m_facts[index(p)].writes) {
        if (of_return(write.reg) && overwrites == nullptr) overwrites = write.instruction;
      }
    }
    if (!returns || overwrites == nullptr) return;
    add(Severity::warning, "return-overwritten", overwrites->place,
        fmt::format("{} overwrites R63, which SBR R63 returns through", overwrites->row->mnemonic),
        "use another register, or save R63 first");
  }

  const Program& m_program;
  const Pipeline& m_machine;
  const std::vector<int>& m_entries;
  ControlFlow m_flow;
  std::vector<PacketFacts> m_facts;
  std::vector<std::set<std::pair<int, int>>> m_pending_predicates;  // by packet: flat register, cycles until it lands
  std::map<int, std::vector<ReadInFlight>> m_in_flight;             // by reading packet
  std::set<std::tuple<std::string, int, int, std::string>> m_seen;
  std::vector<Diagnostic> m_diagnostics;
  mutable std::int64_t m_steps = 0;
};

}  // namespace

std::vector<Diagnostic> check(const Program& program, const Pipeline& machine, const std::string& entry) {
  const std::vector<int> entries = entry.empty() ? default_entries(program) : std::vector<int>{program.entry(entry)};
  return Checker(program, machine, entries).run();
}

}  // namespace mtsim::isa
