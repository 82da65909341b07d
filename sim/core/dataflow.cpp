// SPDX-License-Identifier: Apache-2.0
#include "sim/core/dataflow.h"

namespace mtsim::sim {
namespace {

#include "isa/semantics.inc"

template <class Sem>
std::vector<Piece> pieces_of(isa::Format format) {
  using enum isa::Format;
  if constexpr (requires { Sem::first; }) {
    const bool is_pair = format == MVV || format == VVM || format == MSS || format == SSM;
    if constexpr (requires { Sem::low(0); }) {
      std::vector<Piece> all;
      const auto add = [&](int part, std::int64_t from, std::int64_t at) {
        if (!all.empty() && all.back().part == part && all.back().at + all.back().bytes == at) {
          all.back().bytes += 8;
        } else {
          all.push_back({part, from, at, 8});
        }
      };
      for (int lane = 0; lane < isa::k_vector_lanes; ++lane) add(0, 8 * lane, Sem::low(lane));
      for (int lane = 0; lane < isa::k_vector_lanes; ++lane) add(1, 8 * lane, Sem::high(lane));
      return all;
    } else if (is_pair) {
      constexpr std::int64_t bytes = (Sem::last - Sem::first) / 2;
      return {{0, 0, Sem::first, bytes}, {1, 0, Sem::first + bytes, bytes}};
    } else {
      return {{0, 0, Sem::first, Sem::last - Sem::first}};
    }
  } else {
    return {};
  }
}

}  // namespace

const std::vector<Piece>& pieces(const isa::Row& row) {
  static const std::vector<std::vector<Piece>> k_all = {
#define ROW(mnemonic, units, format, cycles, name, ...) pieces_of<semantics::name>(isa::Format::format),
#include "isa/instructions.def"
#undef ROW
  };
  return k_all[static_cast<std::size_t>(row.id)];
}

Step step_of(const isa::Instruction& instruction, int index, const isa::Pipeline& pipeline) {
  Step step;
  step.row = instruction.row;
  step.index = index;
  step.immediate_first =
      !instruction.operands.empty() && std::holds_alternative<isa::Immediate>(instruction.operands.front());
  for (const isa::Register reg : isa::reads(instruction)) step.values.push_back(reg.flat());
  if (instruction.predicate) {
    step.predicate = instruction.predicate->reg.flat();
    step.values.pop_back();  // isa::reads has it last
  }
  for (const isa::Operand& operand : instruction.operands) {
    const auto* memory = std::get_if<isa::MemoryOperand>(&operand);
    if (memory == nullptr) continue;
    step.addresses.push_back(memory->base.flat());
    if (memory->offset) step.addresses.push_back(memory->offset->flat());
    // A load's operand is the address alone; a store's address comes behind its data.
    step.values.resize(step.values.size() - step.addresses.size());
  }
  for (const isa::Write& write : isa::writes(instruction, pipeline)) {
    if (write.post_modify) {
      step.post_modified = write.reg.flat();
    } else {
      step.results.push_back({write.reg.flat(), write.cycles});
    }
  }
  return step;
}

}  // namespace mtsim::sim
