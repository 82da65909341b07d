// SPDX-License-Identifier: Apache-2.0
#include "isa/modulo_schedule.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>

#include "isa/internal.h"

namespace mtsim::isa {
namespace {

int ceil_div(int a, int b) { return (a + b - 1) / b; }

std::string units_name(UnitMask set) {
  std::string text;
  for (const auto& [group, name] : {std::pair{units::SMAC, "SMAC"},
                                    {units::SIEU, "SIEU"},
                                    {mask(Unit::SLDST), "SLDST"},
                                    {mask(Unit::SBR), "SBR"},
                                    {units::VMAC, "VMAC"},
                                    {units::VIEU, "VIEU"},
                                    {units::VLDST, "VLDST"}}) {
    if (set & group) text += (text.empty() ? "" : "+") + std::string(name);
  }
  return text;
}

// The data's first stage is stage 0; the counter and the branch keep their rows there.
ModuloSchedule from_first_stage(int interval, std::vector<int> cycles, std::vector<Unit> units) {
  const int count = static_cast<int>(cycles.size());
  int least = count > 2 ? cycles[0] : 0;
  for (int i = 0; i + 2 < count; ++i) least = std::min(least, cycles[index(i)]);
  const int shift = (least >= 0 ? least / interval : -((interval - 1 - least) / interval)) * interval;
  ModuloSchedule schedule{interval, std::move(cycles), std::move(units), 1};
  for (int i = 0; i < count; ++i) {
    int& cycle = schedule.cycles[index(i)];
    cycle = i + 2 < count ? cycle - shift : cycle % interval;
    schedule.stages = std::max(schedule.stages, cycle / interval + 1);
  }
  return schedule;
}

class Scheduler {
 public:
  Scheduler(const ModuloLoop& loop, int interval)
      : m_loop(loop),
        m_interval(interval),
        m_count(static_cast<int>(loop.body.size())),
        m_table(loop.body, loop.pipeline, {interval, loop.allow_assumed, true}),
        m_cycle(index(m_count), k_unscheduled),
        m_last(index(m_count), k_unscheduled),
        m_evictions(index(m_count), 0) {}

  ModuloAttempt run() {
    const auto heights = m_loop.graph.heights(m_interval);
    if (!heights) return {};
    m_height = *heights;
    const int branch = m_count - 1;
    const int branch_row = m_interval - m_loop.pipeline.branch_cycles();
    if (branch_row < 0 || !m_table.place(branch, branch_row)) return {};
    m_cycle[index(branch)] = branch_row;
    for (int i = 0; i + 1 < m_count; ++i) m_left.insert({-m_height[index(i)], i});
    constexpr int k_tries_per_instruction = 12;
    int budget = k_tries_per_instruction * m_count;
    while (!m_left.empty()) {
      if (budget-- == 0) return {std::nullopt, hardest()};
      const int i = m_left.begin()->second;
      m_left.erase(m_left.begin());
      schedule(i);
    }
    sink();
    std::vector<Unit> units;
    for (int i = 0; i < m_count; ++i) units.push_back(m_table.unit(i));
    return {from_first_stage(m_interval, m_cycle, std::move(units)), hardest()};
  }

 private:
  static constexpr int k_unscheduled = std::numeric_limits<int>::min();
  bool scheduled(int i) const { return m_cycle[index(i)] != k_unscheduled; }
  const Dependence& edge(int e) const { return m_loop.graph.edges()[index(e)]; }

  int earliest(int i) const {
    int cycle = 0;
    for (const int e : m_loop.graph.in(i)) {
      const Dependence& d = edge(e);
      if (d.from == i || !scheduled(d.from)) continue;
      cycle = std::max(cycle, m_cycle[index(d.from)] + d.delay - m_interval * d.distance);
    }
    return cycle;
  }

  int latest(int i) const {
    int cycle = std::numeric_limits<int>::max();
    for (const int e : m_loop.graph.out(i)) {
      const Dependence& d = edge(e);
      if (d.to == i || !scheduled(d.to)) continue;
      cycle = std::min(cycle, m_cycle[index(d.to)] + m_interval * d.distance - d.delay);
    }
    return cycle;
  }

  void schedule(int i) {
    const int first = earliest(i);
    const int window = first + m_interval - 1;
    const int end = std::min(latest(i), window);
    for (int cycle = first; cycle <= end; ++cycle) {
      if (!m_table.place(i, cycle)) continue;
      set(i, cycle);
      return;
    }
    // Rau: at the earliest cycle, or one behind where it stood before, so that the search moves on.
    const int last = m_last[index(i)];
    const int cycle = last == k_unscheduled || first > last ? first : last + 1;
    for (const int other : m_table.force(i, cycle)) evict(other);
    set(i, cycle);
    for (const int e : m_loop.graph.out(i)) {
      const Dependence& d = edge(e);
      if (d.to != i && scheduled(d.to) && m_cycle[index(d.to)] < cycle + d.delay - m_interval * d.distance) evict(d.to);
    }
    for (const int e : m_loop.graph.in(i)) {
      const Dependence& d = edge(e);
      if (d.from != i && scheduled(d.from) && cycle < m_cycle[index(d.from)] + d.delay - m_interval * d.distance) {
        evict(d.from);
      }
    }
  }

  void set(int i, int cycle) {
    m_cycle[index(i)] = cycle;
    m_last[index(i)] = cycle;
  }

  int hardest() const {
    const auto most = std::max_element(m_evictions.begin(), m_evictions.end());
    return static_cast<int>(most - m_evictions.begin());
  }

  void evict(int i) {
    ++m_evictions[index(i)];
    m_table.remove(i);
    m_cycle[index(i)] = k_unscheduled;
    m_left.insert({-m_height[index(i)], i});
  }

  // Moves each instruction as late as its readers allow: values live shorter, and loads move out of the first stage.
  void sink() {
    std::vector<int> order;
    for (int i = 0; i + 1 < m_count; ++i) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return m_cycle[index(a)] > m_cycle[index(b)]; });
    for (const int i : order) {
      if (!pays_to_sink(i)) continue;
      const int from = m_cycle[index(i)];
      const int end = latest(i);
      if (end == std::numeric_limits<int>::max()) continue;
      m_table.remove(i);
      int cycle = std::min(end, from + 4 * m_interval);
      while (cycle > from && !m_table.place(i, cycle)) --cycle;
      if (cycle <= from) {
        cycle = from;
        m_table.place(i, cycle);  // its own place is free again
      }
      set(i, cycle);
    }
  }

  // More values start with its result than end with its reads.
  bool pays_to_sink(int i) const {
    std::set<Register> in;
    const Instruction& instruction = m_loop.body[index(i)];
    for (const Register reg : reads(instruction)) {
      if (reg.file == RegisterFile::VR || reg.file == RegisterFile::R) in.insert(reg);
    }
    const std::vector<Write> out = writes(instruction, m_loop.pipeline);
    return out.size() >= in.size();
  }

  const ModuloLoop& m_loop;
  int m_interval;
  int m_count;
  ReservationTable m_table;
  std::vector<int> m_cycle, m_last, m_height, m_evictions;
  std::set<std::pair<int, int>> m_left;  // priority, instruction
};

// Packets that loads and stores of one base register need: pairs, but never two that post-modify.
int pairing_cycles(const ModuloLoop& loop) {
  struct Group {
    int all = 0, post_modifying = 0;
  };
  std::map<std::pair<Register, bool>, Group> groups;
  for (const Instruction& instruction : loop.body) {
    if ((instruction.row->units & units::VLDST) == 0) continue;
    const MemoryOperand* memory = memory_operand(instruction);
    Group& group = groups[{memory->base, is_load(instruction.row->format)}];
    ++group.all;
    group.post_modifying += memory->post_modifies() ? 1 : 0;
  }
  int cycles = 0;
  for (const auto& [unused_key, group] : groups) {
    cycles += std::max(ceil_div(group.all, 2), group.post_modifying);
  }
  return cycles;
}

}  // namespace

std::vector<ResourceBound> resource_bounds(const ModuloLoop& loop) {
  std::vector<ResourceBound> bounds;
  std::set<UnitMask> masks;
  int broadcasts = 0;
  for (const Instruction& instruction : loop.body) {
    masks.insert(loop.pipeline.units_of(*instruction.row));
    broadcasts += instruction.row->id == Mnemonic::SVBCAST ? 1 : 0;
  }
  std::set<UnitMask> sets = masks;
  for (const UnitMask a : masks) {
    for (const UnitMask b : masks) {
      if (a & b) sets.insert(a | b);
    }
  }
  for (const UnitMask set : sets) {
    if (set == 0) continue;
    int users = 0;
    for (const Instruction& instruction : loop.body) {
      users += (loop.pipeline.units_of(*instruction.row) & ~set) == 0 ? 1 : 0;
    }
    const int slots = std::popcount(set);
    bounds.push_back({units_name(set), users, slots, ceil_div(users, slots), set});
  }
  if (!loop.allow_assumed) {
    const int pairing = pairing_cycles(loop);
    if (pairing > 0) bounds.push_back({"VLDST pairing", 0, 1, pairing, units::VLDST});
    if (broadcasts > 0)
      bounds.push_back({"one SVBCAST a packet", broadcasts, 1, broadcasts, row(Mnemonic::SVBCAST).units});
  }
  bounds.push_back({"SBR delay slots", 0, 0, loop.pipeline.branch_cycles(), 0});
  std::stable_sort(bounds.begin(), bounds.end(),
                   [](const ResourceBound& a, const ResourceBound& b) { return a.cycles > b.cycles; });
  return bounds;
}

ModuloAttempt modulo_schedule(const ModuloLoop& loop, int interval) { return Scheduler(loop, interval).run(); }

std::optional<ModuloSchedule> assign_units(const ModuloLoop& loop, int interval, const std::vector<int>& cycles) {
  const int count = static_cast<int>(loop.body.size());
  ReservationTable table(loop.body, loop.pipeline, {interval, loop.allow_assumed, true});
  std::vector<int> all = cycles;
  all.resize(index(count), 0);
  const int branch = count - 1, decrement = count - 2;
  all[index(branch)] = interval - loop.pipeline.branch_cycles();
  if (all[index(branch)] < 0 || !table.place(branch, all[index(branch)])) return std::nullopt;
  for (int i = 0; i < decrement; ++i) {
    if (!table.place(i, all[index(i)])) return std::nullopt;
  }
  int& free = all[index(decrement)];
  while (free < interval && !table.place(decrement, free)) ++free;
  if (free == interval) return std::nullopt;
  std::vector<Unit> units;
  for (int i = 0; i < count; ++i) units.push_back(table.unit(i));
  return from_first_stage(interval, std::move(all), std::move(units));
}

}  // namespace mtsim::isa
