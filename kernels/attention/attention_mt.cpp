// SPDX-License-Identifier: Apache-2.0
// MT Attention (III-C2, Fig. 8). Loops item > round (cores * mr rows) > pass (`pass` blocks of keys) > stage > block of
// mc keys.
//
// One pass of a core, whose Q lies in SM and whose unfinished O in AM:
//   stage 1  each K^T_j [d, mc]: scores, tile by tile, to AM, from there to GSM what AM does not hold; maxima of the
//   rows stage 2  scale and softmax, tile by tile, to GSM; with the first pass as it is, later ones rescale O by exp(m
//   before - m) stage 3  each V_j [mc, d]: weights GSM -> SM, chunk by chunk; O += weights V_j
// and at the end of the round O / l to DDR, once.
//
// The paper's stages see the scores of all keys. 64 rows of 4096 keys are 1 MB in FP32, more than a core's AM and its
// part of GSM together hold beside two blocks of keys; so stages are repeated for passes of as many keys as there is
// room for, which the running maximum and sum of online softmax join without a rounding more than the rescaling takes.
// best keeps one block of keys at a time, which stays in AM and spares GSM the scores; the paper's sequence fills AM
// and GSM.
//
//   K^T, V   the next block is broadcast while this one is used (a core without rows takes part in that, too)
//   scores   leave and come back a tile behind and ahead of the work on them
//   weights  leave tile by tile behind the exponential, come to SM a chunk ahead
//   Q        of the next round comes once the last scores of this one are made, O leaves behind the next round's stage
//   1
#include <algorithm>

#include "kernels/attention/attention_ring.h"

namespace mtsim::kernels::attention {
namespace {

class MtAttention : KeyRing {
 public:
  MtAttention(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
              const Memory& memory, std::int64_t items)
      : KeyRing(dsp, plan, operands, kernels, memory), m_items(items) {
    std::vector<Load> loads;
    for (std::int64_t round = 0; round < rounds(); ++round) {
      for_each_pass(round, [&](std::int64_t first, std::int64_t end, bool) {
        for (std::int64_t step = first; step < end; ++step) loads.push_back({Matrix::k, m_steps[step]});
        for (std::int64_t step = end; step-- > first;) loads.push_back({Matrix::v, m_steps[step]});
      });
    }
    begin_ring(std::move(loads), 0, m_items);
    allocate_queries();
    allocate_softmax();
    m_o = m_dsp.vector_malloc(m_sizes.o);
    m_kept = m_dsp.vector_malloc(m_sizes.kept);
  }

  void run() {
    ask_for_queries(row_block(0, 0));
    load_first();
    stage_queries();
    fetch_queries();
    for (std::int64_t item = 0; item < m_items; ++item) {
      for (std::int64_t round = 0; round < rounds(); ++round) run_round(item, round);
    }
    wait(m_o_channel);
  }

 private:
  /// f(first, end, last): passes of about as many blocks of keys.
  template <typename F>
  void for_each_pass(std::int64_t round, const F& f) {
    const std::int64_t steps = round_steps(round), passes = ceil_div(steps, m_plan.tiles.pass);
    for (std::int64_t p = 0; p < passes; ++p) f(steps * p / passes, steps * (p + 1) / passes, p + 1 == passes);
  }

  void run_round(std::int64_t item, std::int64_t round) {
    const RowBlock now = row_block(item, round);
    const bool works = now.tokens > 0;
    wait_for_queries();
    for_each_pass(round, [&](std::int64_t first, std::int64_t end, bool last) {
      m_dsp.loop_iteration();
      if (works) begin_pass(now, first, end);
      for (std::int64_t step = first; step < end; ++step) {
        const sim::Pointer kt = take(works);
        if (works) score(step, kt);
      }
      if (last) ask_for_queries(next_block(item, round));
      wait(m_o_channel);
      if (works) softmax(m_kept, first == 0, m_o);
      for (std::int64_t step = end; step-- > first;) {
        const sim::Pointer v = take(works);
        if (last && step == first) stage_queries();
        if (works) multiply_values(step, v, m_o, first == 0);
      }
    });
    fetch_queries();
    if (!works) return;
    divide(m_kept, m_o);
    m_o_channel = store(m_o, now);
  }

  RowBlock next_block(std::int64_t item, std::int64_t round) const {
    if (round + 1 < rounds()) return row_block(item, round + 1);
    return item + 1 < m_items ? row_block(item + 1, 0) : RowBlock{};
  }

  const std::int64_t m_items;
  sim::Pointer m_o, m_kept;  // AM
  Channel m_o_channel;
};

}  // namespace

void run_mt(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
            const Memory& memory, std::int64_t items) {
  MtAttention(dsp, plan, operands, kernels, memory, items).run();
}

}  // namespace mtsim::kernels::attention
