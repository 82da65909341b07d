// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/internal.h"

namespace mtsim::isa {
namespace {

int resource_bound(const std::vector<Instruction>& body, const DependenceGraph& graph, const LoopRequest& request) {
  int bound = 1;
  for (const ResourceBound& resource : resource_bounds({body, graph, request.pipeline, request.allow_assumed})) {
    bound = std::max(bound, resource.cycles);
  }
  return bound;
}

bool in_pair(const Instruction& instruction, Register reg) {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(), [&](const Operand& operand) {
    const auto* pair = std::get_if<RegisterPair>(&operand);
    return pair != nullptr && (pair->low == reg || pair->high() == reg);
  });
}

// Where a copy of what `reader` reads in `reg` can stand: behind the write that reaches it, 0 for the value from the
// iteration before. nullopt when several writes may reach it.
std::optional<int> copy_position(const std::vector<Instruction>& body, int reader, Register reg) {
  for (int i = reader - 1; i >= 0; --i) {
    for (const Write& write : writes(body[index(i)], Pipeline{})) {
      if (write.reg != reg) continue;
      if (body[index(i)].predicate) return std::nullopt;
      return i + 1;
    }
  }
  return 0;
}

// Gives one late reader of the cycle its own copy; false when no reader of it can have one.
bool add_copy(BoundedBody& from, int recurrence, const LoopRequest& request) {
  for (const int e : from.graph.critical_cycle(recurrence)) {
    const Dependence edge = from.graph.edges()[index(e)];
    const bool copyable = edge.kind == DependenceKind::anti && edge.reg.is_virtual() &&
                          (edge.reg.file == RegisterFile::VR || edge.reg.file == RegisterFile::R);
    if (!copyable || in_pair(from.body[index(edge.from)], edge.reg)) continue;
    const auto position = copy_position(from.body, edge.from, edge.reg);
    if (!position) continue;
    const Register copy = request.fresh(
        edge.reg.file, fmt::format("{}.{}.copy{}", request.loop.label, request.name(edge.reg), from.copies));
    Instruction& reader = from.body[index(edge.from)];
    const Instruction move = make_instruction(edge.reg.file == RegisterFile::VR ? Mnemonic::VMOV : Mnemonic::SMOV,
                                              {edge.reg, copy}, reader.place);
    replace_registers(
        reader, [&](Register reg) { return reg == edge.reg ? copy : reg; }, [](Register reg) { return reg; });
    from.body.insert(from.body.begin() + *position, move);
    ++from.copies;
    return true;
  }
  return false;
}

}  // namespace

BoundedBody bounded_body(std::vector<Instruction> body, const LoopRequest& request) {
  DependenceGraph graph = find_dependences(body, request.pipeline, {true, request.independent, 2});
  const int bound = std::max(graph.recurrence_bound(), resource_bound(body, graph, request));
  return {std::move(body), std::move(graph), bound, 0};
}

BoundedBody with_copies(BoundedBody body, const LoopRequest& request) {
  constexpr int k_most_copies = 24;
  BoundedBody best = body, current = std::move(body);
  while (current.copies < k_most_copies) {
    const int recurrence = current.graph.recurrence_bound();
    if (recurrence < best.bound || recurrence <= resource_bound(current.body, current.graph, request)) break;
    if (!add_copy(current, recurrence, request)) break;
    const int copies = current.copies;
    current = bounded_body(std::move(current.body), request);
    current.copies = copies;
    if (current.bound < best.bound) best = current;
  }
  return best;
}

}  // namespace mtsim::isa
