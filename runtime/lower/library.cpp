// SPDX-License-Identifier: Apache-2.0
#include "runtime/lower/library.h"

#include <utility>

#include "kernels/gather/gather.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/move/move.h"

namespace mtsim::runtime {

using models::Node;

Library::Library(LibraryContext context) : m_context(std::move(context)), m_bytes(bytes_of(m_context.model.dtype())) {}

std::unique_ptr<Library> Library::of(OperatorLibrary operators, LibraryContext context) {
  return operators == OperatorLibrary::naive ? naive(std::move(context)) : microcode(std::move(context));
}

sim::Pointer Library::weight(const Node& node) const {
  return m_context.model.weight(m_context.plans.tensor(node.inputs[1]).name);
}

Library::Gated Library::gated(const Node& silu, const Node& mul) const {
  const int gate = silu.inputs.front();
  const int up = mul.inputs[0] == silu.outputs.front() ? mul.inputs[1] : mul.inputs[0];
  return {m_context.plans.tensor(gate), m_context.place(gate), m_context.place(up), output(mul)};
}

OperatorPrograms Library::gather(const Node& node) const {
  return {"gather",
          {kernels::gather(m_context.cluster, config().hidden_size * m_bytes, config().vocab_size,
                           {weight(node), output(node), m_context.input.ids})}};
}

OperatorPrograms Library::select(const Node& node) const {
  const std::int64_t bytes = config().hidden_size * m_bytes;
  std::vector<kernels::RowsMove> moves;
  std::int64_t to = 0;
  for (const std::int64_t row : m_context.input.logits_rows)
    moves.push_back({input(node) + row * bytes, {1, bytes, 0}, output(node) + to++ * bytes, {1, bytes, 0}});
  return {"select", {kernels::move_rows(std::move(moves))}};
}

OperatorPrograms Library::sum(const Node& node, const std::vector<sim::Pointer>& parts) const {
  OperatorPrograms result{"sum of parts", {}};
  sim::Pointer x = parts.front();
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    OperatorPrograms one = add(node, x, parts[rank]);
    result.programs.push_back(std::move(one.programs.front()));
    x = output(node);
  }
  return result;
}

OperatorPrograms Library::kv_append(const Node& node) const {
  const kernels::KvAppendShape shape{config().kv_heads, config().head_dim, m_context.batch.kv_block, dtype()};
  std::vector<kernels::KvAppend> appends;
  std::int64_t row = 0;
  for (std::size_t i = 0; i < m_context.batch.sequences.size(); ++i) {
    const auto [tokens, context] = m_context.batch.sequences[i];
    const std::int64_t offset = row * shape.row() * m_bytes;
    appends.push_back(
        {context, tokens, input(node, 0) + offset, input(node, 1) + offset, m_context.input.blocks(i, node.layer)});
    row += tokens;
  }
  return {"kv_append", {kernels::kv_append(m_context.cluster, shape, appends)}};
}

}  // namespace mtsim::runtime
