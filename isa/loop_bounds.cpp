// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_bounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/internal.h"

namespace mtsim::isa {
namespace {

int counter_cycles(const ModuloLoop& loop) { return loop.pipeline.of(row(Mnemonic::SSUB)); }

int resource_bound(const std::vector<ResourceBound>& resources) {
  return resources.empty() ? 1 : resources.front().cycles;
}

CycleBound cycle_bound(const ModuloLoop& loop, const DependenceGraph& graph, const RegisterName& name) {
  CycleBound bound{graph.recurrence_bound(), {}};
  for (const int e : graph.critical_cycle(bound.cycles)) {
    const Dependence& edge = graph.edges()[index(e)];
    bound.edges.push_back(fmt::format("{} to {}: {} cycle{}{}, {} through {}", spelled(loop.body[index(edge.from)]),
                                      spelled(loop.body[index(edge.to)]), edge.delay, edge.delay == 1 ? "" : "s",
                                      edge.distance == 0   ? ""
                                      : edge.distance == 1 ? " in the next iteration"
                                                           : fmt::format(" {} iterations later", edge.distance),
                                      to_string(edge.kind), name(edge.reg)));
  }
  return bound;
}

// Where the worst cycle goes through memory: the two accesses, and what the bound would be without such dependences.
void describe_memory(const ModuloLoop& written, const DependenceGraph& values, const IndependentGraph& independent,
                     LoopReport& report) {
  const Dependence* meets = nullptr;
  for (const int e : values.critical_cycle(report.recurrence.cycles)) {
    const Dependence& edge = values.edges()[index(e)];
    if (edge.kind == DependenceKind::memory) meets = &edge;
  }
  if (meets == nullptr) return;
  const int bound =
      std::max({report.resource_bound, independent().without_lifetimes().recurrence_bound(), counter_cycles(written)});
  if (bound >= report.bound()) return;
  report.independent_bound = bound;
  report.may_meet =
      fmt::format("{} and {}", spelled(written.body[index(meets->from)]), spelled(written.body[index(meets->to)]));
}

std::string slots_text(const ResourceBound& bound) {
  if (bound.instructions == 0) return bound.name;
  return fmt::format("{}: {} instruction{}, {} a cycle", bound.name, bound.instructions,
                     bound.instructions == 1 ? "" : "s", bound.slots);
}

// "A (line 3), B (line 4)": where the edges of a cycle start.
std::string cycle_text(const ModuloLoop& loop, const std::vector<int>& cycle) {
  constexpr std::size_t k_shown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), k_shown); ++i) {
    text += (i == 0 ? "" : ", ") + spelled(loop.body[index(loop.graph.edges()[index(cycle[i])].from)]);
  }
  return cycle.size() > k_shown ? text + fmt::format(" and {} more", cycle.size() - k_shown) : text;
}

// What an instruction needs, and how much of it is taken.
struct Demand {
  std::string text;
  double share = 0;
};

Demand fullest_units(const ModuloLoop& loop, int interval, const Instruction& instruction) {
  const UnitMask own = loop.pipeline.units_of(*instruction.row);
  Demand fullest;
  for (const ResourceBound& bound : resource_bounds(loop)) {
    if ((own & bound.units) == 0) continue;
    const int taken = bound.instructions > 0 ? bound.instructions : bound.cycles, slots = bound.slots * interval;
    const double share = static_cast<double>(taken) / slots;
    if (share > fullest.share) fullest = {fmt::format("{} takes {} of {} slots", bound.name, taken, slots), share};
  }
  return fullest;
}

Demand tightest_cycle(const ModuloLoop& loop, int interval, int instruction) {
  const std::vector<int> cycle = loop.graph.tightest_cycle(instruction, interval);
  int delay = 0, distance = 0;
  bool lifetime = false;
  for (const int e : cycle) {
    const Dependence& edge = loop.graph.edges()[index(e)];
    delay += edge.delay;
    distance += edge.distance;
    lifetime = lifetime || edge.kind == DependenceKind::anti || edge.kind == DependenceKind::output;
  }
  if (delay <= 0 || distance <= 0) return {};
  return {fmt::format("the {} through {} take {} of {} cycles", lifetime ? "dependences and lifetimes" : "dependences",
                      cycle_text(loop, cycle), delay, distance * interval),
          static_cast<double>(delay) / (distance * interval)};
}

}  // namespace

void describe_bounds(const ModuloLoop& written, const IndependentGraph& independent, const RegisterName& name,
                     LoopReport& report) {
  report.resources = resource_bounds(written);
  report.resource_bound = resource_bound(report.resources);
  const DependenceGraph values = written.graph.without_lifetimes();
  report.recurrence = cycle_bound(written, values, name);
  if (independent && report.recurrence.cycles > report.resource_bound) {
    describe_memory(written, values, independent, report);
  }
  if (counter_cycles(written) > report.recurrence.cycles) {
    const Instruction& counter = written.body[written.body.size() - 2];
    report.recurrence = {
        counter_cycles(written),
        {fmt::format("{} counts: {} cycles to the next iteration", spelled(counter), counter_cycles(written))}};
  }
  report.lifetime = cycle_bound(written, written.graph, name);
}

int interval_bound(const ModuloLoop& loop) {
  return std::max({resource_bound(resource_bounds(loop)), loop.graph.recurrence_bound(), counter_cycles(loop)});
}

std::string bound_reason(const LoopReport& report) {
  return report.recurrence.cycles > report.resource_bound ? "the cycle of dependences above"
                                                          : slots_text(report.resources.front());
}

std::string lifetime_reason(const ModuloLoop& loop) {
  const std::vector<ResourceBound> resources = resource_bounds(loop);
  const int recurrence = loop.graph.recurrence_bound();
  if (resource_bound(resources) >= recurrence) return slots_text(resources.front()) + ", with the copies";
  return fmt::format("a value that lives too long, overwritten before its last read: {}",
                     cycle_text(loop, loop.graph.critical_cycle(recurrence)));
}

std::string obstacle(const ModuloLoop& loop, int interval, int hardest) {
  const Instruction& instruction = loop.body[index(hardest)];
  const Demand units = fullest_units(loop, interval, instruction);
  const Demand cycle = tightest_cycle(loop, interval, hardest);
  const std::string& text = cycle.share > units.share ? cycle.text : units.text;
  return fmt::format("{} found no place{}{}", spelled(instruction), text.empty() ? "" : ": ", text);
}

}  // namespace mtsim::isa
