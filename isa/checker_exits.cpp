// SPDX-License-Identifier: Apache-2.0
#include "isa/checker_exits.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <optional>

namespace mtsim::isa {
namespace {

class Exits {
 public:
  Exits(const CheckedProgram& checked, const std::vector<int>& entries, Findings& findings)
      : m_checked(checked), m_entries(entries), m_findings(findings) {}

  // `[R0] SBR loop` and `[!R0] SBR R63` behind it leave no path that takes neither: what the first one told is followed
  // until something writes the register.
  void end_of_program() {
    std::set<std::pair<int, Known>> seen;
    std::vector<std::pair<int, Known>> pending;
    const auto follow = [&](int state, Known known) {
      if (state >= 0 && seen.insert({state, known}).second) pending.emplace_back(state, known);
    };
    std::optional<std::pair<int, int>> off_end;  // last packet, delay cycles that a taken branch lacks
    const int count = m_checked.packets();
    for (const int entry : m_entries) {
      if (entry >= count) {  // a label behind the last packet
        off_end = {count - 1, 0};
        continue;
      }
      for (const int state : m_checked.flow().states_of(entry)) follow(state, {});
    }
    while (!pending.empty()) {
      const auto [at, known] = pending.back();
      pending.pop_back();
      const ControlFlow::State& state = m_checked.flow().states()[index(at)];
      m_reached.insert(state.packet);
      const auto& edges = m_checked.flow().successors(at);
      const Instruction* branch = m_checked.packet(state.packet).branch();
      for (std::size_t i = 0; i < edges.size(); ++i) {
        const bool branches = branch != nullptr && state.branch_in == 0;
        Known then = known;
        if (branches && branch->predicate) {
          const Known told{branch->predicate->reg.flat(), branch->predicate->negated == (i > 0)};
          if (known.reg == told.reg && known.holds != told.holds) continue;
          if (m_checked.settled(state.packet, told.reg)) then = told;
        }
        if (m_checked.writes_register(state.packet, then.reg)) then = {};
        if (edges[i].state != ControlFlow::k_off_end) {
          follow(edges[i].state, then);
          continue;
        }
        const int taken_in = branches && i == 0 ? m_checked.machine().branch_cycles() : state.branch_in;
        const int missing = std::max(0, taken_in - edges[i].cycles);
        if (!off_end || off_end->second < missing) off_end = {state.packet, missing};
      }
    }
    if (off_end) report_off_end(off_end->first, off_end->second);
  }

  // Behind end_of_program(). Idle cycles that nothing reaches are padding.
  void unreached() {
    if (m_checked.stopped()) return;  // what predicates tell is not known for all packets
    const int count = m_checked.packets();
    const Instruction* leaves = nullptr;  // the last branch in front
    for (int p = 0; p < count; ++p) {
      if (m_reached.count(p) > 0) {
        if (m_checked.packet(p).branch() != nullptr) leaves = m_checked.packet(p).branch();
        continue;
      }
      const Instruction* first = nullptr;
      const Instruction* last = nullptr;
      for (; p < count && m_reached.count(p) == 0; ++p) {
        const Packet& packet = m_checked.packet(p);
        if (packet.is_idle() || packet.instructions.empty()) continue;
        if (first == nullptr) first = packet.instructions.data();
        last = &packet.instructions.back();
      }
      --p;
      if (first != nullptr) report_unreached(*first, *last, leaves);
    }
  }

  // A kernel that saves R63 first knows what it does.
  void overwritten_return() {
    const auto of_return = [](Register reg) { return reg == k_return_register; };
    const Instruction* overwrites = nullptr;
    bool returns = false;
    for (int p = 0; p < m_checked.packets(); ++p) {
      if (!m_checked.flow().reachable(p)) continue;
      for (const auto& [reader, reg] : m_checked.facts(p).reads) {
        if (!of_return(reg)) continue;
        if (reader->row->id != Mnemonic::SBR) return;
        returns = true;
      }
      for (const Landing& write : m_checked.facts(p).writes) {
        if (of_return(write.reg) && overwrites == nullptr) overwrites = write.instruction;
      }
    }
    if (!returns || overwrites == nullptr) return;
    m_findings.add(Severity::warning, "return-overwritten", overwrites->place,
                   fmt::format("{} overwrites R63, which SBR R63 returns through", overwrites->row->mnemonic),
                   "use another register, or save R63 first");
  }

 private:
  // What a branch told about its predicate register.
  struct Known {
    int reg = -1;  // flat; -1: nothing
    bool holds = false;
    auto operator<=>(const Known&) const = default;
  };

  void report_off_end(int packet, int missing) {
    const Place& place = m_checked.packet(packet).instructions[0].place;
    const int slots = m_checked.machine().branch_cycles() - 1;
    if (missing > 0) {
      m_findings.add(
          Severity::warning, "runs-off-end", place,
          fmt::format("the program ends {} cycle{} before its last branch takes effect: SBR has {} delay slots",
                      missing, missing == 1 ? "" : "s", slots),
          fmt::format("add SNOP {} at the end", missing));
    } else {
      m_findings.add(Severity::warning, "runs-off-end", place,
                     "some path runs off the end of the program: no branch is taken in front of it",
                     fmt::format("end the program with SBR R63 and SNOP {}", slots));
    }
  }

  void report_unreached(const Instruction& first, const Instruction& last, const Instruction* leaves) {
    const std::string to = last.place.line > first.place.line ? fmt::format(" to line {}", last.place.line) : "";
    const std::string why =
        leaves == nullptr ? "" : fmt::format(": {} has left before it, and no branch leads here", spelled(*leaves));
    m_findings.add(Severity::warning, "unreachable", first.place,
                   fmt::format("{}{} is never reached{}", spelled(first), to, why),
                   fmt::format("move it in front of that branch or into its {} delay slots, or put a label in front of "
                               "it where a caller enters here",
                               m_checked.machine().branch_cycles() - 1));
  }

  const CheckedProgram& m_checked;
  const std::vector<int>& m_entries;
  Findings& m_findings;
  std::set<int> m_reached;  // packets
};

}  // namespace

void check_exits(const CheckedProgram& checked, const std::vector<int>& entries, bool all_entries, Findings& findings) {
  Exits exits(checked, entries, findings);
  exits.end_of_program();
  if (all_entries) exits.unreached();
  exits.overwritten_return();
}

}  // namespace mtsim::isa
