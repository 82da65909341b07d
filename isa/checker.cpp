// SPDX-License-Identifier: Apache-2.0
#include "isa/checker.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <tuple>

#include "isa/analysis.h"
#include "isa/control_flow.h"

namespace mtsim::isa {
namespace {

// A write of one instruction, with the cycles until it lands on the machine and under .scheduled_for.
struct Landing {
  const Instruction* instruction;
  Register reg;
  int cycles;
  int scheduled;
  bool post_modify;
};

struct PacketFacts {
  std::vector<std::pair<const Instruction*, Register>> reads;
  std::vector<Landing> writes;
  const Instruction* branch = nullptr;
  int horizon = 1;  // every landing is less than this many cycles away, on the machine and as scheduled
};

bool always_opposite(const Instruction& a, const Instruction& b) {
  return a.predicate && b.predicate && a.predicate->reg == b.predicate->reg &&
         a.predicate->negated != b.predicate->negated;
}

std::string spelled(const Instruction& instruction) {
  return fmt::format("{} (line {})", instruction.row->mnemonic, instruction.place.line);
}

class Checker {
 public:
  Checker(const Program& program, const Latencies& machine, const std::vector<int>& entries)
      : m_program(program), m_machine(machine), m_flow(program, machine, entries) {
    for (const Packet& packet : program.packets) m_facts.push_back(facts_of(packet));
    collect_predicate_landings();
  }

  std::vector<Diagnostic> run() {
    check_branch_latency();
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      if (!m_flow.reachable(p)) continue;
      pairs_of(p);
      double_branches(p);
      for (const Instruction& instruction : m_program.packets[index(p)].instructions) unused(p, instruction);
    }
    for (const auto& [packet, reads] : m_in_flight) report_in_flight(reads);
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

  static std::size_t index(int packet) { return static_cast<std::size_t>(packet); }

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
      if (instruction.row->id == Mnemonic::SBR) facts.branch = &instruction;
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
    m_pending_predicates.resize(m_facts.size());
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      for (const Landing& write : m_facts[index(p)].writes) {
        if (write.reg.file != RegisterFile::R || write.cycles < 2) continue;
        m_flow.walk(p, write.cycles, [&](int q, int distance) {
          m_pending_predicates[index(q)].emplace_back(write.reg, write.cycles - distance);
          return true;
        });
      }
    }
  }

  // True when no write to `reg` can land in the `distance` cycles after packet p's issue.
  bool stable(int p, int distance, Register reg) const {
    for (const auto& [other, cycles] : m_pending_predicates[index(p)]) {
      if (other == reg && cycles <= distance) return false;
    }
    bool changes = false;
    const auto look = [&](int q, int at) {
      for (const Landing& write : m_facts[index(q)].writes) {
        changes = changes || (write.reg == reg && at + write.cycles <= distance);
      }
      return !changes;
    };
    if (distance > 0 && look(p, 0)) m_flow.walk(p, distance, look);
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
    m_flow.walk(p, here.horizon, [&](int q, int distance) {
      const PacketFacts& there = m_facts[index(q)];
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
          fmt::format(
              "{} and {} land in {} in the other order than scheduled: {} now takes {} cycles (scheduled {}), {} "
              "{} (scheduled {})",
              spelled(*a.instruction), spelled(*b.instruction), a.reg.str(), a.instruction->row->mnemonic, a.cycles,
              a.scheduled, b.instruction->row->mnemonic, b.cycles, b.scheduled),
          "schedule the kernel anew for these latencies");
    }
  }

  void read_of(const Landing& write, const Instruction& reader, int q, int distance) {
    const int early = std::min(write.cycles, write.scheduled);
    const int late = std::max(write.cycles, write.scheduled);
    if (early <= distance && distance < late) {
      const bool too_late = write.cycles > write.scheduled;
      add(Severity::error, "rebound-read", reader.place,
          fmt::format("{} reads {} {} cycles after {} writes it and gets the {} value: {} takes {} cycles on this "
                      "machine, {} as scheduled",
                      spelled(reader), write.reg.str(), distance, spelled(*write.instruction), too_late ? "old" : "new",
                      write.instruction->row->mnemonic, write.cycles, write.scheduled),
          too_late ? fmt::format("move the read {} cycles later or schedule the kernel anew", write.cycles - distance)
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

  // --- branches

  void check_branch_latency() {
    const int now = m_machine.branch_cycles();
    const int scheduled = m_program.scheduled_for.branch_cycles();
    if (now == scheduled) return;
    for (int p = 0; p < static_cast<int>(m_facts.size()); ++p) {
      const Instruction* branch = m_facts[index(p)].branch;
      if (branch == nullptr || !m_flow.reachable(p)) continue;
      add(Severity::error, "rebound-read", branch->place,
          fmt::format(
              "SBR has {} delay slots on this machine and {} as scheduled: other packets run behind every branch",
              now - 1, scheduled - 1),
          "schedule the kernel anew for this machine");
      return;
    }
  }

  void double_branches(int p) {
    const Instruction* first = m_facts[index(p)].branch;
    if (first == nullptr) return;
    int distance = m_program.packets[index(p)].cycles();
    for (std::size_t q = index(p) + 1; q < m_facts.size() && distance < m_machine.branch_cycles(); ++q) {
      const Instruction* second = m_facts[q].branch;
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

  void unused(int p, const Instruction& instruction) {
    const Landing* last = nullptr;
    for (const Landing& write : m_facts[index(p)].writes) {
      if (write.instruction != &instruction || write.post_modify) continue;
      if (!overwritten_unread(p, write)) return;
      last = &write;
    }
    if (last == nullptr) return;
    add(Severity::warning, "overwritten-unused", instruction.place,
        fmt::format("the result of {} in {} is overwritten before anything reads it", instruction.row->mnemonic,
                    last->reg.str()),
        "drop the instruction, or check that the reads come before the next write lands");
  }

  // True when on every path another write lands in the register before a read sees the value.
  bool overwritten_unread(int p, const Landing& write) const {
    constexpr int k_no_kill = std::numeric_limits<int>::max();
    struct Node {
      int state, lands_in, killed_in;
      bool operator<(const Node& other) const {
        return std::tie(state, lands_in, killed_in) < std::tie(other.state, other.lands_in, other.killed_in);
      }
    };
    std::set<Node> seen;
    std::vector<Node> pending;
    const auto kill_in = [&](int packet, int lands_in, int killed_in) {
      for (const Landing& other : m_facts[index(packet)].writes) {
        if (other.reg == write.reg && !other.instruction->predicate && other.cycles > lands_in) {
          killed_in = std::min(killed_in, other.cycles);
        }
      }
      return killed_in;
    };
    for (const int state : m_flow.states_of(p))
      pending.push_back({state, write.cycles, kill_in(p, write.cycles, k_no_kill)});
    while (!pending.empty()) {
      const Node node = pending.back();
      pending.pop_back();
      if (m_flow.successors(node.state).empty()) return false;
      for (const ControlFlow::Edge& edge : m_flow.successors(node.state)) {
        if (edge.state < 0) return false;  // the value leaves the kernel
        const int lands_in = std::max(0, node.lands_in - edge.cycles);
        if (node.killed_in <= edge.cycles) continue;
        const int still = node.killed_in == k_no_kill ? k_no_kill : node.killed_in - edge.cycles;
        const int packet = m_flow.states()[index(edge.state)].packet;
        if (lands_in == 0) {
          for (const auto& [unused_reader, reg] : m_facts[index(packet)].reads) {
            if (reg == write.reg) return false;
          }
        }
        const Node next{edge.state, lands_in, kill_in(packet, lands_in, still)};
        if (seen.insert(next).second) pending.push_back(next);
      }
    }
    return true;
  }

  const Program& m_program;
  const Latencies& m_machine;
  ControlFlow m_flow;
  std::vector<PacketFacts> m_facts;
  std::vector<std::vector<std::pair<Register, int>>> m_pending_predicates;
  std::map<int, std::vector<ReadInFlight>> m_in_flight;  // by reading packet
  std::set<std::tuple<std::string, int, int, std::string>> m_seen;
  std::vector<Diagnostic> m_diagnostics;
};

}  // namespace

std::vector<Diagnostic> check(const Program& program, const Latencies& machine, const std::string& entry) {
  const std::vector<int> entries = entry.empty() ? default_entries(program) : std::vector<int>{program.entry(entry)};
  return Checker(program, machine, entries).run();
}

}  // namespace mtsim::isa
