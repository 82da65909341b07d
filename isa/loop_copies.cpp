// SPDX-License-Identifier: Apache-2.0
#include "isa/loop_copies.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/internal.h"
#include "isa/linear.h"

namespace mtsim::isa {
namespace {

bool in_pair(const Instruction& instruction, Register reg) {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(), [&](const Operand& operand) {
    const auto* pair = std::get_if<RegisterPair>(&operand);
    return pair != nullptr && (pair->low == reg || pair->high() == reg);
  });
}

bool writes_register(const Instruction& instruction, Register reg) {
  const std::vector<Write> all = writes(instruction, Pipeline{});
  return std::any_of(all.begin(), all.end(), [&](const Write& write) { return write.reg == reg; });
}

// The copy stands behind the writes of this iteration that `reader` may see.
int position_of_copy(const DependenceGraph& graph, int reader, Register reg) {
  int position = 0;
  for (const int e : graph.in(reader)) {
    const Dependence& edge = graph.edges()[index(e)];
    if (edge.kind != DependenceKind::flow || edge.reg != reg || edge.distance > 0) continue;
    position = std::max(position, edge.from + 1);
  }
  return position;
}

// `move` takes the reader's place at `reg`: it waits for the same writes, and the next ones wait for it. The reader
// waits for the copy alone.
LoopBody copied(const LoopBody& loop, int reader, Register reg, const Instruction& move, int move_cycles) {
  const int at = position_of_copy(loop.graph, reader, reg);
  const auto moved = [&](int i) { return i < at ? i : i + 1; };
  const Register copy = std::get<Register>(move.operands[1]);
  LoopBody out{loop.body, DependenceGraph(static_cast<int>(loop.body.size()) + 1)};
  for (const Dependence& edge : loop.graph.edges()) {
    Dependence now = edge;
    now.from = moved(edge.from);
    now.to = moved(edge.to);
    if (edge.reg == reg && edge.kind == DependenceKind::flow && edge.to == reader) now.to = at;
    if (edge.reg == reg && edge.kind == DependenceKind::anti && edge.from == reader) now.from = at;
    out.graph.add(now);
  }
  out.graph.add({at, moved(reader), move_cycles, 0, DependenceKind::flow, copy});
  out.graph.add({moved(reader), at, 1 - move_cycles, 1, DependenceKind::anti, copy});
  replace_registers(
      out.body[index(reader)], [&](Register other) { return other == reg ? copy : other; },
      [](Register other) { return other; });
  out.body.insert(out.body.begin() + at, move);
  return out;
}

// Gives one late reader of the cycle its own copy; false when no reader of it can have one.
bool add_copy(CopiedLoop& from, int recurrence, const CopyOptions& options) {
  for (const int e : from.loop.graph.critical_cycle(recurrence)) {
    const Dependence edge = from.loop.graph.edges()[index(e)];
    const Instruction& reader = from.loop.body[index(edge.from)];
    const bool copyable = edge.kind == DependenceKind::anti && edge.reg.is_virtual() &&
                          (edge.reg.file == RegisterFile::VR || edge.reg.file == RegisterFile::R);
    if (!copyable || in_pair(reader, edge.reg) || writes_register(reader, edge.reg)) continue;
    const Register copy =
        options.fresh(edge.reg.file, fmt::format("{}.{}.copy{}", options.label, options.name(edge.reg), from.copies));
    const Row& row = isa::row(edge.reg.file == RegisterFile::VR ? Mnemonic::VMOV : Mnemonic::SMOV);
    from.loop = copied(from.loop, edge.from, edge.reg, make_instruction(row.id, {edge.reg, copy}, reader.place),
                       options.pipeline.of(row, copy));
    ++from.copies;
    return true;
  }
  return false;
}

}  // namespace

CopiedLoop with_copies(LoopBody loop, const CopyOptions& options) {
  constexpr int k_most_copies = 24;
  const auto modulo = [&](const CopiedLoop& one) {
    return ModuloLoop{one.loop.body, one.loop.graph, options.pipeline, options.allow_assumed};
  };
  CopiedLoop best{std::move(loop), 0}, current = best;
  int least = interval_bound(modulo(best));
  while (current.copies < k_most_copies) {
    const int recurrence = current.loop.graph.recurrence_bound();
    if (recurrence < least || recurrence <= resource_bounds(modulo(current)).front().cycles) break;
    if (!add_copy(current, recurrence, options)) break;
    const int bound = interval_bound(modulo(current));
    if (bound >= least) continue;
    least = bound;
    best = current;
  }
  return best;
}

}  // namespace mtsim::isa
