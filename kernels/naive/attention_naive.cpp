// SPDX-License-Identifier: Apache-2.0
#include "kernels/naive/attention_naive.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/library.h"

namespace mtsim::kernels {
namespace {

void require_shape(const AttentionShape& s) {
  const bool is_one = s.batch == 1 && s.heads > 0 && s.kv_heads > 0 && s.heads % s.kv_heads == 0 && s.seq_q > 0 &&
                      s.seq_k > 0 && s.head_dim > 0 && s.kv_block >= 0 && (!s.causal || s.seq_q <= s.seq_k);
  if (is_one) return;
  throw KernelError(fmt::format(
      "attention, naive: batch {}, heads {}, kv_heads {}, seq_q {}, seq_k {}, head_dim {}, kv_block {}: one "
      "sequence, at least 1 of each, heads a multiple of kv_heads, and causal at most seq_k tokens of Q",
      s.batch, s.heads, s.kv_heads, s.seq_q, s.seq_k, s.head_dim, s.kv_block));
}

/// One KV head in each block.
std::vector<sim::Pointer> blocks_of(const AttentionShape& shape, sim::Pointer whole,
                                    const std::vector<sim::Pointer>& blocks, std::int64_t kv_head) {
  const std::int64_t bytes = shape.block() * shape.head_dim * bytes_of(shape.dtype);
  if (!blocks.empty() && std::ssize(blocks) < shape.blocks()) {
    throw KernelError(fmt::format("attention, naive: {} blocks of the cache for {} positions, {} needed", blocks.size(),
                                  shape.seq_k, shape.blocks()));
  }
  std::vector<sim::Pointer> result;
  for (std::int64_t b = 0; b < shape.blocks(); ++b) {
    result.push_back(blocks.empty() ? whole + (kv_head * shape.blocks() + b) * bytes
                                    : blocks[static_cast<std::size_t>(b)] + kv_head * bytes);
  }
  return result;
}

}  // namespace

NaiveAttentionPlan plan_naive_attention(const AttentionShape& shape, const sim::MachineConfig& machine) {
  require_shape(shape);
  const std::int64_t width = shape.heads * shape.head_dim;
  NaiveAttentionPlan plan{.shape = shape};
  plan.scores = plan_naive_gemm(
      {shape.seq_q, shape.seq_k, shape.head_dim},
      NaiveGemmLayout{
          .x = shape.dtype, .w = shape.dtype, .y = DType::f32, .x_pitch = width, .part_columns = shape.block()},
      machine);
  const NaiveRowsShape rows{.rows = shape.seq_q, .columns = shape.seq_k, .dtype = DType::f32};
  NaiveRowsShape mask = rows, softmax = rows;
  mask.op = NaiveOp::add;
  softmax.op = NaiveOp::softmax;
  softmax.value = shape.scale;
  if (plan.is_masked()) plan.mask = plan_naive_rows(mask, machine);
  plan.softmax = plan_naive_rows(softmax, machine);
  plan.values = plan_naive_gemm(
      {shape.seq_q, shape.head_dim, shape.seq_k},
      NaiveGemmLayout{
          .x = DType::f32, .w = shape.dtype, .y = shape.dtype, .y_pitch = width, .part_rows = shape.block()},
      machine);
  plan.scratch_bytes = bytes_of(DType::f32) * shape.seq_q * shape.seq_k;
  plan.sm_bytes = std::max({plan.scores.sm_bytes, plan.mask.sm_bytes, plan.softmax.sm_bytes, plan.values.sm_bytes});
  return plan;
}

std::vector<float> causal_mask(const AttentionShape& shape) {
  std::vector<float> mask;
  mask.reserve(static_cast<std::size_t>(shape.seq_q * shape.seq_k));
  for (std::int64_t i = 0; i < shape.seq_q; ++i) {
    for (std::int64_t j = 0; j < shape.seq_k; ++j)
      mask.push_back(j <= shape.seq_k - shape.seq_q + i ? 0.0F : -std::numeric_limits<float>::infinity());
  }
  return mask;
}

std::vector<sim::DspProgram> naive_attention(sim::Cluster& cluster, const NaiveAttentionPlan& plan,
                                             const AttentionOperands& operands, sim::Pointer mask) {
  const AttentionShape& shape = plan.shape;
  const sim::Pointer scores = cluster.ddr_malloc(plan.scratch_bytes);
  std::vector<sim::DspProgram> programs;
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    const std::int64_t offset = head * shape.head_dim * bytes_of(shape.dtype), kv_head = head / shape.group();
    const auto kt = blocks_of(shape, operands.kt, operands.blocks.kt, kv_head);
    const auto v = blocks_of(shape, operands.v, operands.blocks.v, kv_head);
    programs.push_back(naive_gemm(cluster, plan.scores, {operands.q + offset, kt, scores}));
    if (plan.is_masked()) programs.push_back(naive_rows(cluster, plan.mask, {scores, mask, scores}));
    programs.push_back(naive_rows(cluster, plan.softmax, {scores, {}, scores}));
    programs.push_back(naive_gemm(cluster, plan.values, {scores, v, operands.o + offset}));
  }
  return programs;
}

}  // namespace mtsim::kernels
