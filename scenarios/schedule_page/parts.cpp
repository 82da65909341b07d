// SPDX-License-Identifier: Apache-2.0
#include "scenarios/schedule_page/parts.h"

#include <algorithm>
#include <set>

namespace mtsim::scenarios {

namespace {

class Cutter {
 public:
  Cutter(const isa::Program& program, const isa::Pipeline& pipeline, const std::vector<isa::LoopSchedule>& loops)
      : m_program(program), m_pipeline(pipeline), m_loops(loops), m_count(static_cast<int>(program.packets.size())) {
    m_cuts = {0, m_count};
    for (const auto& [unused_label, packet] : program.labels) m_cuts.insert(packet);
    for (const isa::LoopSchedule& loop : loops) m_cuts.insert({loop.first, loop.last});
    for (int p = 0; p < m_count; ++p) {
      if (leaves(p)) m_ends.insert(behind(p));
    }
    m_cuts.insert(m_ends.begin(), m_ends.end());
  }

  void cut_as_scheduled(const isa::LoopSchedule& loop, const isa::LoopReport& report) {
    int first = loop.first, last = loop.last;
    for (int left = report.prologue_cycles; left > 0 && first > 0;) left -= packet(--first).cycles();
    for (int left = report.epilogue_cycles; left > 0 && last < m_count;) left -= packet(last++).cycles();
    m_cuts.insert({first, last});
  }

  std::vector<SchedulePart> parts() const {
    std::vector<SchedulePart> parts;
    for (auto cut = m_cuts.begin(); std::next(cut) != m_cuts.end(); ++cut) {
      SchedulePart part{PartKind::code, *cut, *std::next(cut), -1};
      const int own = loop_at(part.first);
      if (own >= 0 && m_loops[static_cast<std::size_t>(own)].last == part.last) {
        part.kind = PartKind::loop;
        part.loop = own;
      }
      parts.push_back(part);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) name(parts, i);
    return parts;
  }

 private:
  const isa::Packet& packet(int p) const { return m_program.packets[static_cast<std::size_t>(p)]; }

  // Whatever the registers hold, what follows its delay slots is not reached from it.
  bool leaves(int p) const {
    const isa::Instruction* branch = packet(p).branch();
    return branch != nullptr && !branch->predicate;
  }

  // The packet that follows the delay slots of p's branch.
  int behind(int p) const {
    int slots = 0;
    while (p < m_count && slots < m_pipeline.branch_cycles()) slots += packet(p++).cycles();
    return p;
  }

  // Of the scheduler, for fewer iterations than the pipelined loop needs: nothing is left when it ends.
  static bool is_simple(const std::string& label) { return label.ends_with(".simple"); }

  int loop_at(int first) const {
    for (std::size_t i = 0; i < m_loops.size(); ++i) {
      if (m_loops.at(i).first == first) return static_cast<int>(i);
    }
    return -1;
  }

  int entered_loop(const SchedulePart& part) const {
    if (!m_ends.contains(part.last) && loop_at(part.last) >= 0) return loop_at(part.last);
    for (int p = part.first; p < part.last; ++p) {
      const isa::Instruction* branch = packet(p).branch();
      const auto* target = branch == nullptr ? nullptr : std::get_if<isa::Target>(branch->operands.data());
      // A branch back to a loop in front is that of an outer loop; one to the loop for few iterations is a test.
      if (target != nullptr && is_simple(target->label)) continue;
      if (target != nullptr && (!branch->predicate || target->packet > p) && loop_at(target->packet) >= 0) {
        return loop_at(target->packet);
      }
    }
    return -1;
  }

  void name(std::vector<SchedulePart>& parts, std::size_t i) const {
    SchedulePart& part = parts[i];
    if (part.kind == PartKind::loop) return;
    const bool drains = i > 0 && parts[i - 1].kind == PartKind::loop && !m_ends.contains(part.first) &&
                        !is_simple(m_loops[static_cast<std::size_t>(parts[i - 1].loop)].label);
    const int entered = entered_loop(part);
    if (drains) {
      part.kind = entered >= 0 ? PartKind::between : PartKind::epilogue;
      part.loop = parts[i - 1].loop;
    } else if (entered >= 0) {
      part.kind = PartKind::prologue;
      part.loop = entered;
    }
  }

  const isa::Program& m_program;
  const isa::Pipeline& m_pipeline;
  const std::vector<isa::LoopSchedule>& m_loops;
  int m_count;
  std::set<int> m_cuts;
  std::set<int> m_ends;  // packets that the one before does not fall into
};

}  // namespace

const char* to_string(PartKind kind) {
  switch (kind) {
    case PartKind::code: return "code";
    case PartKind::prologue: return "prologue";
    case PartKind::loop: return "loop";
    case PartKind::between: return "between";
    case PartKind::epilogue: return "epilogue";
  }
  return "code";
}

std::vector<SchedulePart> schedule_parts(const isa::Program& program, const isa::Pipeline& pipeline,
                                         const std::vector<isa::LoopSchedule>& loops,
                                         const std::vector<isa::LoopReport>& reports) {
  Cutter cutter(program, pipeline, loops);
  for (const isa::LoopSchedule& loop : loops) {
    const isa::LoopReport* report = report_of(loop.label, reports);
    if (report != nullptr && report->pipelined && loop.label != report->label) cutter.cut_as_scheduled(loop, *report);
  }
  return cutter.parts();
}

const isa::LoopReport* report_of(const std::string& label, const std::vector<isa::LoopReport>& reports) {
  const auto found = std::find_if(reports.begin(), reports.end(), [&](const isa::LoopReport& report) {
    return label == report.label || label == report.label + ".kernel";
  });
  return found == reports.end() ? nullptr : &*found;
}

}  // namespace mtsim::scenarios
