// SPDX-License-Identifier: Apache-2.0
#include "isa/list_schedule.h"

#include <algorithm>

namespace mtsim::isa {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

}  // namespace

int cycles_until_done(const Instruction& instruction, const Pipeline& pipeline) {
  int cycles = 1;
  for (const Write& write : writes(instruction, pipeline)) cycles = std::max(cycles, write.cycles);
  return cycles;
}

BlockSchedule list_schedule(std::span<const Instruction> block, const DependenceGraph& graph, const Pipeline& pipeline,
                            bool allow_assumed, int window) {
  const int count = graph.size();
  BlockSchedule schedule{std::vector<int>(index(count), -1), std::vector<Unit>(index(count)), 0};
  ReservationTable table(block, pipeline, {0, allow_assumed});
  const std::vector<int> height = *graph.heights(1);  // a straight block has no cycle of dependences
  std::vector<int> earliest(index(count), 0), waits_for(index(count), 0), ready;
  for (const Dependence& edge : graph.edges()) ++waits_for[index(edge.to)];
  for (int i = 0; i < count; ++i) {
    if (waits_for[index(i)] == 0) ready.push_back(i);
  }
  const auto before = [&](int a, int b) {
    return height[index(a)] != height[index(b)] ? height[index(a)] > height[index(b)] : a < b;
  };
  int first_left = 0;
  for (int cycle = 0, done = 0; done < count; ++cycle) {
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
  return schedule;
}

}  // namespace mtsim::isa
