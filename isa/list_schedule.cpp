// SPDX-License-Identifier: Apache-2.0
#include "isa/list_schedule.h"

#include <algorithm>

#include "isa/internal.h"

namespace mtsim::isa {

int cycles_until_done(const Instruction& instruction, const Pipeline& pipeline) {
  int cycles = 1;
  for (const Write& write : writes(instruction, pipeline)) cycles = std::max(cycles, write.cycles);
  return cycles;
}

BlockSchedule list_schedule(std::span<const Instruction> block, const DependenceGraph& graph, const Pipeline& pipeline,
                            bool allow_assumed, int window, const Surroundings& around) {
  const int count = graph.size(), fixed = static_cast<int>(around.fixed.size());
  BlockSchedule schedule{std::vector<int>(index(count), -1), std::vector<Unit>(index(count)), around.first_cycle, {}};
  std::vector<Instruction> all(block.begin(), block.end());  // the block's first, then what is fixed
  for (const PlacedInstruction& one : around.fixed) all.push_back(one.instruction);
  ReservationTable table(all, pipeline, {0, allow_assumed, true});
  for (int f = 0; f < fixed; ++f) {
    const PlacedInstruction& one = around.fixed[index(f)];
    table.fix(count + f, one.cycle, one.instruction.unit);
  }
  const std::vector<int> height = *graph.heights(1);  // a straight block has no cycle of dependences
  std::vector<int> earliest = around.earliest, waits_for(index(count), 0), ready;
  earliest.resize(index(count), around.first_cycle);
  for (const Dependence& edge : graph.edges()) ++waits_for[index(edge.to)];
  for (int i = 0; i < count; ++i) {
    if (waits_for[index(i)] == 0) ready.push_back(i);
  }
  const auto before = [&](int a, int b) {
    return height[index(a)] != height[index(b)] ? height[index(a)] > height[index(b)] : a < b;
  };
  int first_left = 0;
  for (int cycle = around.first_cycle, done = 0; done < count; ++cycle) {
    bool placed_any = true;
    while (placed_any) {  // an instruction placed may free another for the same packet
      placed_any = false;
      std::sort(ready.begin(), ready.end(), before);
      for (std::size_t r = 0; r < ready.size(); ++r) {
        const int i = ready[r];
        if (earliest[index(i)] > cycle || i - first_left > window || !table.place(i, cycle)) continue;
        schedule.cycles[index(i)] = cycle;
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(r));
        ++done;
        for (const int e : graph.out(i)) {
          const Dependence& edge = graph.edges()[index(e)];
          earliest[index(edge.to)] = std::max(earliest[index(edge.to)], cycle + edge.delay);
          if (--waits_for[index(edge.to)] == 0) ready.push_back(edge.to);
        }
        while (first_left < count && schedule.cycles[index(first_left)] >= 0) ++first_left;
        placed_any = true;
        break;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    schedule.units[index(i)] = table.unit(i);
    schedule.length =
        std::max(schedule.length, schedule.cycles[index(i)] + cycles_until_done(block[index(i)], pipeline));
  }
  for (int f = 0; f < fixed; ++f) schedule.fixed_units.push_back(table.unit(count + f));
  return schedule;
}

}  // namespace mtsim::isa
