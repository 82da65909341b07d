// SPDX-License-Identifier: Apache-2.0
// Attention as the baseline of the ablation has it: head by head, and each step an operator of its own: Q K^T, the
// mask, softmax with the scale, weights times V. Scores and weights lie in DDR, in FP32, [seq_q, seq_k] of one head at
// a time.
#pragma once

#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/naive/naive.h"

namespace mtsim::kernels {

struct NaiveAttentionPlan {
  AttentionShape shape;
  NaiveGemmPlan scores, values;
  NaiveRowsPlan mask, softmax;     // the mask only with more than one token and AttentionShape::causal
  std::int64_t scratch_bytes = 0;  // DDR beyond the operands: the scores
  std::int64_t sm_bytes = 0;

  bool is_masked() const { return shape.causal && shape.seq_q > 1; }
};

/// `shape` is of one sequence (batch 1). Throws KernelError: a shape that is none, or a row of scores that does not fit
/// SM, in bytes.
NaiveAttentionPlan plan_naive_attention(const AttentionShape& shape, const sim::MachineConfig& machine);

/// [seq_q, seq_k], added to the scores: 0, and -infinity where token i of Q does not see a key. The host makes it once
/// for all heads.
std::vector<float> causal_mask(const AttentionShape& shape);

/// The DSP programs, to be launched one after the other: three a head, or four with the mask. `mask` is causal_mask in
/// cluster DDR and needed only where is_masked().
std::vector<sim::DspProgram> naive_attention(sim::Cluster& cluster, const NaiveAttentionPlan& plan,
                                             const AttentionOperands& operands, sim::Pointer mask);

}  // namespace mtsim::kernels
