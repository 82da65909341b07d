// SPDX-License-Identifier: Apache-2.0
// Scalar code as a compiler makes it (kernels/naive): the baseline of the ablation. What another library fuses is here
// one operator behind the other.
#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "kernels/naive/attention_naive.h"
#include "kernels/naive/naive.h"
#include "runtime/lower/library.h"

namespace mtsim::runtime {
namespace {

using kernels::DType;
using kernels::NaiveOp;
using kernels::NaiveRowsShape;
using models::GraphTensor;
using models::Node;

class NaiveLibrary final : public Library {
 public:
  explicit NaiveLibrary(LibraryContext context) : Library(std::move(context)) {}

  /// Masks, one for all heads and layers.
  void prepare() override {
    for (const models::SequenceStep& sequence : m_context.batch.sequences) {
      const kernels::NaiveAttentionPlan plan = attention_plan(sequence);
      if (!plan.is_masked()) continue;
      const auto [mask, is_new] = m_masks.try_emplace({sequence.tokens, sequence.context});
      if (!is_new) continue;
      const std::vector<float> values = kernels::causal_mask(plan.shape);
      mask->second = m_context.cluster.ddr_malloc(4 * std::ssize(values));
      m_context.cluster.write(mask->second, std::as_bytes(std::span(values)));
    }
  }

  std::vector<std::string> host_work() const override {
    return m_masks.empty() ? std::vector<std::string>{} : std::vector<std::string>{"causal mask"};
  }

  OperatorPrograms rmsnorm(const Node& node) override {
    NaiveRowsShape shape = rows_of(NaiveOp::rmsnorm, shape_of_input(node));
    shape.a_dtype = DType::f32;
    shape.value = eps();
    return {"rmsnorm naive", {rows(shape, {input(node), weight(node), output(node)})}};
  }

  OperatorPrograms linear(const Node& node) override { return {"gemm naive", {product(node, output(node))}}; }

  OperatorPrograms linear_rope(const Node& linear, const Node& rope) override {
    return {"gemm naive, rope naive",
            {product(linear, output(rope)), rotation(shape_of_input(rope), output(rope), output(rope))}};
  }

  /// Y^T = W X^T, a row of X at a time: it is a column as it lies.
  OperatorPrograms head(const Node& node) override {
    OperatorPrograms result{"gemm naive, W as [out, in]", {}};
    const GraphTensor &x = shape_of_input(node), &y = shape_of_output(node);
    const auto plan = kernels::plan_naive_gemm({y.columns, 1, x.columns}, dtype(), machine());
    for (std::int64_t row = 0; row < x.rows; ++row) {
      result.programs.push_back(kernels::naive_gemm(
          m_context.cluster, plan,
          {weight(node), {input(node) + row * x.columns * m_bytes}, output(node) + row * y.columns * m_bytes}));
    }
    return result;
  }

  OperatorPrograms bias(const Node& node) override {
    NaiveRowsShape shape = rows_of(NaiveOp::bias, shape_of_input(node));
    shape.a_dtype = dtype();
    return {"bias naive", {rows(shape, {input(node), weight(node), output(node)})}};
  }

  OperatorPrograms rope(const Node& node) override {
    return {"rope naive", {rotation(shape_of_input(node), input(node), output(node))}};
  }

  /// Sequence by sequence.
  OperatorPrograms attention(const Node& scores, const Node& values) override {
    OperatorPrograms result{"attention naive", {}};
    const std::int64_t row_bytes = config().q_width() * m_bytes;
    std::int64_t row = 0;
    for (std::size_t i = 0; i < m_context.batch.sequences.size(); ++i) {
      const models::SequenceStep& sequence = m_context.batch.sequences[i];
      const auto mask = m_masks.find({sequence.tokens, sequence.context});
      for (sim::DspProgram& program : kernels::naive_attention(m_context.cluster, attention_plan(sequence),
                                                               {input(scores) + row * row_bytes,
                                                                {},
                                                                {},
                                                                output(values) + row * row_bytes,
                                                                m_context.input.blocks(i, scores.layer)},
                                                               mask == m_masks.end() ? sim::Pointer{} : mask->second))
        result.programs.push_back(std::move(program));
      row += sequence.tokens;
    }
    return result;
  }

  using Library::add;
  OperatorPrograms add(const Node& node, sim::Pointer x, sim::Pointer a) const override {
    return {"add naive", {rows(rows_of(NaiveOp::add, shape_of_output(node)), {x, a, output(node)})}};
  }

  OperatorPrograms add_rmsnorm(const Node& add, const Node& norm) override {
    OperatorPrograms result = Library::add(add), behind = rmsnorm(norm);
    result.kernel += ", " + behind.kernel;
    result.programs.push_back(std::move(behind.programs.front()));
    return result;
  }

  OperatorPrograms silu_mul(const Node& silu, const Node& mul) override {
    const Gated its = gated(silu, mul);
    return {"silu_mul naive", {rows(rows_of(NaiveOp::silu_mul, its.shape), {its.gate, its.up, its.out})}};
  }

 private:
  NaiveRowsShape rows_of(NaiveOp op, const GraphTensor& x) const {
    return {.op = op, .rows = x.rows, .columns = x.columns, .dtype = dtype()};
  }
  sim::DspProgram rows(const NaiveRowsShape& shape, const kernels::NaiveRowsOperands& operands) const {
    return kernels::naive_rows(m_context.cluster, kernels::plan_naive_rows(shape, machine()), operands);
  }
  sim::DspProgram product(const Node& node, sim::Pointer y) const {
    const GraphTensor& x = shape_of_input(node);
    const auto plan = kernels::plan_naive_gemm({x.rows, shape_of_output(node).columns, x.columns}, dtype(), machine());
    return kernels::naive_gemm(m_context.cluster, plan, {input(node), {weight(node)}, y});
  }
  sim::DspProgram rotation(const GraphTensor& x, sim::Pointer from, sim::Pointer to) const {
    const bool is_half = rope_pairs(config()) == kernels::RopePairs::half;
    NaiveRowsShape shape = rows_of(is_half ? NaiveOp::rope_half : NaiveOp::rope_interleaved, x);
    shape.heads = x.columns / config().head_dim;
    shape.positions = m_context.batch.positions;
    return rows(shape, {from, m_context.model.frequencies(m_context.model.inv_freq()), to});
  }
  kernels::NaiveAttentionPlan attention_plan(const models::SequenceStep& sequence) const {
    return kernels::plan_naive_attention(m_context.plans.attention_shape(sequence), machine());
  }

  std::map<std::pair<std::int64_t, std::int64_t>, sim::Pointer> m_masks;  // by tokens and context
};

}  // namespace

std::unique_ptr<Library> Library::naive(LibraryContext context) {
  return std::make_unique<NaiveLibrary>(std::move(context));
}

}  // namespace mtsim::runtime
