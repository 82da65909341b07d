// SPDX-License-Identifier: Apache-2.0
// Vector microkernels with transfers under way while they compute.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/add/add.h"
#include "kernels/bias/bias.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/silu_mul/silu_mul.h"
#include "runtime/lower/library.h"

namespace mtsim::runtime {
namespace {

using models::GraphTensor;
using models::Node;

class MicrocodeLibrary final : public Library {
 public:
  explicit MicrocodeLibrary(LibraryContext context) : Library(std::move(context)) {}

  OperatorPrograms rmsnorm(const Node& node) override {
    const auto plan = kernels::plan_rmsnorm(norm_shape(node), 0, machine());
    return {"rmsnorm", {kernels::rmsnorm(m_context.cluster, plan, {input(node), weight(node), output(node)})}};
  }

  OperatorPrograms linear(const Node& node) override {
    const kernels::GemmPlan plan = *m_context.plans.linear(node);
    return {name_of(plan), {kernels::gemm_program(m_context.cluster, plan, {input(node), weight(node), output(node)})}};
  }

  OperatorPrograms linear_rope(const Node& linear, const Node& rope) override {
    const kernels::GemmPlan plan = *m_context.plans.linear(linear, &rope);
    const auto frequencies = m_context.model.frequencies(kernels::gemm_frequencies(plan, m_context.model.inv_freq()));
    return {
        name_of(plan) + " + rope",
        {kernels::gemm_program(m_context.cluster, plan, {input(linear), weight(linear), output(rope), frequencies})}};
  }

  /// In parts of as many rows as the kernel for [out, in] takes.
  OperatorPrograms head(const Node& node) override {
    OperatorPrograms result{"gemm small_m, W as [out, in]", {}};
    const GraphTensor &x = shape_of_input(node), &y = shape_of_output(node);
    const std::int64_t most = m_context.plans.head_rows(node);
    for (std::int64_t row = 0; row < x.rows; row += most) {
      const kernels::GemmPlan plan = m_context.plans.head(node, std::min(most, x.rows - row));
      result.programs.push_back(kernels::gemm_program(
          m_context.cluster, plan,
          {input(node) + row * x.columns * m_bytes, weight(node), output(node) + row * y.columns * m_bytes}));
    }
    return result;
  }

  OperatorPrograms bias(const Node& node) override {
    const GraphTensor& x = shape_of_input(node);
    const kernels::StreamPlan plan = kernels::plan_bias(x.rows, x.columns, dtype(), 0, machine());
    return {"bias", {kernels::bias(m_context.cluster, plan, dtype(), {input(node), weight(node), output(node)})}};
  }

  OperatorPrograms rope(const Node& node) override {
    const GraphTensor& x = shape_of_input(node);
    const std::int64_t head_dim = config().head_dim;
    const kernels::RopePlan plan = kernels::plan_rope({x.rows, x.columns / head_dim, head_dim}, rope_pairs(config()),
                                                      dtype(), {0, m_context.batch.positions}, 0, machine());
    const auto frequencies = m_context.model.frequencies(plan.layout.frequencies(m_context.model.inv_freq()));
    return {"rope", {kernels::rope(m_context.cluster, plan, {input(node), frequencies, output(node)})}};
  }

  /// Sequences with one new token in one launch, the others one by one.
  OperatorPrograms attention(const Node& scores, const Node& values) override {
    OperatorPrograms result;
    const sim::Pointer q = input(scores), o = output(values);
    const std::int64_t row_bytes = config().q_width() * m_bytes;
    const auto& sequences = m_context.batch.sequences;
    const std::int64_t requests = m_context.plans.decoding();
    const sim::Cluster::Allocations kept =
        m_context.cluster.allocations();  // what a program works in is the next one's
    if (requests > 0) {
      result.kernel = "attention decode";
      std::vector<kernels::AttentionCache> caches;
      for (std::size_t i = 0; i < static_cast<std::size_t>(requests); ++i)
        caches.push_back({sequences[i].context + 1, {}, {}, m_context.input.blocks(i, scores.layer)});
      result.programs.push_back(
          kernels::attention_decode(m_context.cluster, m_context.plans.decode(requests), q, o, caches));
      m_context.cluster.release(kept);
    }
    std::int64_t row = requests;
    for (auto i = static_cast<std::size_t>(requests); i < sequences.size(); ++i) {
      const kernels::AttentionPlan plan = m_context.plans.attention(sequences[i]);
      result.kernel += fmt::format("{}attention {}", result.kernel.empty() ? "" : ", ", to_string(plan.choice.variant));
      for (sim::DspProgram& program : kernels::attention_programs(
               m_context.cluster, plan,
               {q + row * row_bytes, {}, {}, o + row * row_bytes, m_context.input.blocks(i, scores.layer)}))
        result.programs.push_back(std::move(program));
      row += sequences[i].tokens;
      m_context.cluster.release(kept);
    }
    return result;
  }

  using Library::add;
  OperatorPrograms add(const Node& node, sim::Pointer x, sim::Pointer a) const override {
    const GraphTensor& y = shape_of_output(node);
    const kernels::StreamPlan plan = kernels::plan_add(y.rows * y.columns, dtype(), 0, machine());
    return {"add", {kernels::add(m_context.cluster, plan, dtype(), {x, a, output(node)})}};
  }

  OperatorPrograms add_rmsnorm(const Node& add, const Node& norm) override {
    const auto plan = kernels::plan_add_rmsnorm(norm_shape(norm), 0, machine());
    return {"add + rmsnorm",
            {kernels::add_rmsnorm(m_context.cluster, plan,
                                  {input(add, 0), input(add, 1), weight(norm), output(add), output(norm)})}};
  }

  OperatorPrograms silu_mul(const Node& silu, const Node& mul) override {
    const Gated its = gated(silu, mul);
    const auto plan = kernels::plan_silu_mul(its.shape.rows * its.shape.columns, dtype(), 0, machine());
    return {"silu_mul", {kernels::silu_mul(m_context.cluster, plan, dtype(), {its.gate, its.up, its.out})}};
  }

 private:
  static std::string name_of(const kernels::GemmPlan& plan) {
    return plan.dataflow == kernels::GemmDataflow::small_m ? "gemm small_m" : "gemm large_m";
  }
  kernels::RmsNormShape norm_shape(const Node& node) const {
    const GraphTensor& x = shape_of_input(node);
    return {x.rows, x.columns, dtype(), kernels::DType::f32, eps()};
  }
};

}  // namespace

std::unique_ptr<Library> Library::microcode(LibraryContext context) {
  return std::make_unique<MicrocodeLibrary>(std::move(context));
}

}  // namespace mtsim::runtime
