// SPDX-License-Identifier: Apache-2.0
#include "isa/schedule_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>
#include <optional>
#include <set>

#include "isa/internal.h"
#include "isa/printer.h"

namespace mtsim::isa {
namespace {

// The branch that leaves the loop when the loop's own does not go back: `[!R0] SBR R63` beside `[R0] SBR loop`.
bool is_exit_beside(const Instruction& other, const Instruction& back) {
  return other.predicate && back.predicate && other.predicate->reg == back.predicate->reg &&
         other.predicate->negated != back.predicate->negated;
}

// `labelled`: the packets that have a label, ascending.
std::optional<LoopSchedule> loop_of(const Program& program, const Pipeline& pipeline, const std::vector<int>& labelled,
                                    int branch_packet) {
  const Instruction* back = program.packets[index(branch_packet)].branch();
  const auto* target = back == nullptr ? nullptr : std::get_if<Target>(&back->operands[0]);
  if (target == nullptr || target->packet < 0 || target->packet > branch_packet) return std::nullopt;
  const int count = static_cast<int>(program.packets.size());
  LoopSchedule loop;
  loop.first = target->packet;
  loop.last = branch_packet;
  int slots = 0;
  while (loop.last < count && slots < pipeline.branch_cycles()) slots += program.packets[index(loop.last++)].cycles();
  if (slots < pipeline.branch_cycles()) return std::nullopt;  // the delay slots run past the end
  const auto inside = std::upper_bound(labelled.begin(), labelled.end(), loop.first);
  if (inside != labelled.end() && *inside < loop.last) return std::nullopt;
  loop.label = target->label;
  loop.initiation_interval = pipeline.branch_cycles();
  for (int p = loop.first; p < branch_packet; ++p) loop.initiation_interval += program.packets[index(p)].cycles();
  for (int p = loop.first; p < loop.last; ++p) {
    const Instruction* other = program.packets[index(p)].branch();
    if (other != nullptr && other != back && !is_exit_beside(*other, *back)) return std::nullopt;
    for (const Instruction& instruction : program.packets[index(p)].instructions) {
      if (instruction.row->units != units::NONE) ++loop.issues[index(static_cast<int>(instruction.unit))];
    }
  }
  loop.busiest_slot = *std::max_element(loop.issues.begin(), loop.issues.end());
  return loop;
}

struct Range {
  std::string name;
  int first, last;
};

const LoopSchedule* find_loop(const std::vector<LoopSchedule>& all_loops, const std::string& label) {
  const auto found =
      std::find_if(all_loops.begin(), all_loops.end(), [&](const LoopSchedule& loop) { return loop.label == label; });
  return label.empty() || found == all_loops.end() ? nullptr : &*found;
}

bool is_pipelined(const Program& program, const std::string& label) {
  return std::any_of(program.linear_loops.begin(), program.linear_loops.end(),
                     [&](const LoopReport& report) { return report.pipelined && report.label == label; });
}

// A loop's label, a region or any label (which shows up to the next label).
Range find_part(const Program& program, const std::vector<LoopSchedule>& all_loops, const std::string& part) {
  if (const LoopSchedule* loop = find_loop(all_loops, part)) return {part, loop->first, loop->last};
  if (is_pipelined(program, part)) {
    const std::string kernel = part + ".kernel";
    if (const LoopSchedule* loop = find_loop(all_loops, kernel)) return {kernel, loop->first, loop->last};
  }
  for (const Region& region : program.regions) {
    if (region.name == part) return {part, region.first, region.last};
  }
  const auto it = program.labels.find(part);
  if (it != program.labels.end()) {
    int last = static_cast<int>(program.packets.size());
    for (const auto& [other_label, packet] : program.labels) {
      if (packet > it->second) last = std::min(last, packet);
    }
    return {part, it->second, last};
  }
  std::vector<std::string_view> known;
  std::string list;
  const auto offer = [&](const std::string& name) {
    known.push_back(name);
    list += (list.empty() ? "" : ", ") + name;
  };
  for (const auto& [label, unused_packet] : program.labels) offer(label);
  for (const Region& region : program.regions) offer(region.name);
  for (const LoopReport& report : program.linear_loops) {
    if (report.pipelined && program.labels.count(report.label) == 0) offer(report.label);
  }
  throw IsaError({{Severity::fatal,
                   {program.file},
                   fmt::format("no loop, region or label '{}'{}", part, did_you_mean(part, known)),
                   "known: " + (list.empty() ? "none" : list),
                   "unknown-part"}});
}

struct InFlight {
  std::string name;
  int lands;  // cycle
};

// Rows of one straight-line pass.
class View {
 public:
  View(const Program& program, const Pipeline& pipeline, const Range& range)
      : m_program(program), m_pipeline(pipeline), m_first(range.first), m_last(range.last) {
    for (int p = m_first; p < m_last; ++p) {
      for (const Instruction& instruction : program.packets[index(p)].instructions) {
        if (instruction.row->units == units::NONE) continue;
        const std::size_t u = index(static_cast<int>(instruction.unit));
        m_widths[u] = std::max({m_widths[u], print(instruction).size(), k_unit_names[u].size()});
      }
    }
  }

  std::string header() const {
    std::array<std::string, k_units> names;
    for (std::size_t u = 0; u < k_units; ++u) names[u] = k_unit_names[u];
    return row("cycle", names, "in flight");
  }

  // `period` > 0: the rows of a loop in steady state, where results of the pass before are still in flight. Else those
  // of the packets in front are.
  std::string rows(int period) {
    m_straight = period == 0;
    std::map<int, std::string> labels;
    for (const auto& [label, at] : m_program.labels) labels[at] += label + ":\n";
    std::string text;
    int cycle = 0;
    if (period > 0) {
      // Enough passes for the longest latency, not printed.
      const int passes = k_max_latency / period + 1;
      for (int pass = -passes; pass < 0; ++pass) issue_all(m_first, m_last, pass * period);
    } else {
      int before = 0;
      for (int p = 0; p < m_first; ++p) before += m_program.packets[index(p)].cycles();
      issue_all(0, m_first, -before);
    }
    for (int p = m_first; p < m_last; ++p) {
      const Packet& packet = m_program.packets[index(p)];
      if (const auto it = labels.find(p); it != labels.end()) text += it->second;
      std::array<std::string, k_units> cells;
      for (const Instruction& instruction : packet.instructions) {
        if (instruction.row->units != units::NONE)
          cells[index(static_cast<int>(instruction.unit))] = print(instruction);
      }
      issue(packet, cycle);
      if (packet.is_idle()) {
        text += fmt::format("{:>5} | {}\n", cycle, print(packet.instructions[0]));
      } else {
        text += row(std::to_string(cycle), cells, in_flight(cycle));
      }
      cycle += packet.cycles();
    }
    return text;
  }

 private:
  std::string row(const std::string& cycle, const std::array<std::string, k_units>& cells,
                  const std::string& flight) const {
    std::string text = fmt::format("{:>5}", cycle);
    for (std::size_t u = 0; u < k_units; ++u) {
      if (m_widths[u] > 0) text += fmt::format(" | {:<{}}", cells[u], m_widths[u]);
    }
    text += " | " + flight;
    const std::size_t end = text.find_last_not_of(' ');
    return text.substr(0, end + 1) + "\n";
  }

  void issue_all(int first, int last, int cycle) {
    for (int p = first; p < last; ++p) {
      issue(m_program.packets[index(p)], cycle);
      cycle += m_program.packets[index(p)].cycles();
    }
  }

  void issue(const Packet& packet, int cycle) {
    if (m_straight && cycle >= m_left_at) {  // nothing falls through: whoever enters here has nothing in flight
      m_in_flight.clear();
      m_left_at = INT_MAX;
    }
    if (packet.branch() != nullptr && !packet.branch()->predicate) m_left_at = cycle + m_pipeline.branch_cycles();
    m_in_flight.erase(std::remove_if(m_in_flight.begin(), m_in_flight.end(),
                                     [&](const InFlight& result) { return result.lands <= cycle; }),
                      m_in_flight.end());
    for (const Instruction& instruction : packet.instructions) {
      for (const Write& write : writes(instruction, m_pipeline)) {
        if (write.cycles > 1) m_in_flight.push_back({write.reg.str(), cycle + write.cycles});
      }
    }
  }

  // "VR3+6 VR4+6": cycles until each lands, the next first; results of one cycle never show.
  std::string in_flight(int cycle) const {
    constexpr std::size_t k_shown = 6;
    std::vector<InFlight> all = m_in_flight;
    std::stable_sort(all.begin(), all.end(), [](const InFlight& a, const InFlight& b) { return a.lands < b.lands; });
    std::string text;
    for (std::size_t i = 0; i < std::min(all.size(), k_shown); ++i) {
      text += fmt::format("{}{}+{}", i == 0 ? "" : " ", all[i].name, all[i].lands - cycle);
    }
    if (all.size() > k_shown) text += fmt::format(" and {} more", all.size() - k_shown);
    return text;
  }

  const Program& m_program;
  const Pipeline& m_pipeline;
  int m_first, m_last;
  bool m_straight = true;
  int m_left_at = INT_MAX;                      // the cycle in which an unconditional branch has left
  std::array<std::size_t, k_units> m_widths{};  // 0: the unit is not used and has no column
  std::vector<InFlight> m_in_flight;
};

std::string loop_summary(const LoopSchedule& loop) {
  std::string text = fmt::format("loop '{}': packets {}..{}, initiation interval {} cycles, busiest slot {} cycles\n",
                                 loop.label.empty() ? "no label" : loop.label, loop.first, loop.last - 1,
                                 loop.initiation_interval, loop.busiest_slot);
  for (std::size_t u = 0; u < k_units; ++u) {
    if (loop.issues[u] == 0) continue;
    text += fmt::format("  {:<6} {:>4} of {} slots  {:>5.1f} %\n", k_unit_names[u], loop.issues[u],
                        loop.initiation_interval, 100.0 * loop.issues[u] / loop.initiation_interval);
  }
  return text;
}

}  // namespace

std::vector<LoopSchedule> loops(const Program& program, const Pipeline& pipeline) {
  std::vector<LoopSchedule> found;
  std::vector<int> labelled;
  for (const auto& [unused_label, packet] : program.labels) labelled.push_back(packet);
  std::sort(labelled.begin(), labelled.end());
  for (int p = 0; p < static_cast<int>(program.packets.size()); ++p) {
    if (auto loop = loop_of(program, pipeline, labelled, p)) found.push_back(std::move(*loop));
  }
  return found;
}

std::string named_part(const Program& program, const Pipeline& pipeline, const std::string& part) {
  return find_part(program, loops(program, pipeline), part).name;
}

std::string schedule_text(const Program& program, const Pipeline& pipeline, const std::string& part) {
  const std::vector<LoopSchedule> all_loops = loops(program, pipeline);
  Range range{"", 0, static_cast<int>(program.packets.size())};
  if (!part.empty()) range = find_part(program, all_loops, part);
  int cycles = 0;
  for (int p = range.first; p < range.last; ++p) cycles += program.packets[index(p)].cycles();
  std::string text = fmt::format("{}{}: {} packets, {} cycles when no branch is taken\n", program.name,
                                 part.empty() ? "" : " " + range.name, range.last - range.first, cycles);
  int period = 0;
  for (const LoopSchedule& loop : all_loops) {
    if (!part.empty() && loop.first == range.first && loop.last == range.last) period = loop.initiation_interval;
  }
  View view(program, pipeline, range);
  text += view.header() + view.rows(period);
  for (const LoopSchedule& loop : all_loops) {
    if (loop.first >= range.first && loop.last <= range.last) text += "\n" + loop_summary(loop);
  }
  return text;
}

}  // namespace mtsim::isa
