// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_bound.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "isa/schedule_view.h"
#include "kernels/attention/attention_program.h"
#include "kernels/gemm/gemm.h"
#include "kernels/library.h"

namespace mtsim::kernels {

using attention::KeyStep;
using attention::RowBlock;
using attention::Sizes;

/// Of all items.
struct AttentionBounds::Totals {
  double core_cycles = 0;  // of the core that has most to do
  double ddr_bytes = 0, ddr_rows = 0, gsm_bytes = 0;
};

namespace {

/// Keys of a step that a block of rows sees.
std::int64_t seen(const KeyStep& step, std::int64_t visible) {
  return std::clamp<std::int64_t>(visible - step.position, 0, step.keys);
}

double broadcast_bytes(const AttentionPlan& plan, const KeyStep& step, double factor) {
  return factor * static_cast<double>(step.keys * plan.shape.head_dim * bytes_of(plan.shape.dtype));
}
/// Of K^T in DDR; those of V follow each other.
double broadcast_rows(const AttentionPlan& plan, const KeyStep& step, double factor) {
  return step.keys < plan.shape.block() ? factor * static_cast<double>(plan.shape.head_dim) : 0;
}

/// Of Q or O of some tokens in DDR: those of heads that go together, unless they are all there are.
double token_rows(const AttentionPlan& plan, std::int64_t tokens) {
  return plan.share < plan.shape.heads ? static_cast<double>(tokens) : 0;
}

}  // namespace

AttentionBounds::AttentionBounds(const sim::MachineConfig& machine)
    : m_machine(machine),
      m_transfer(static_cast<double>(machine.core.dma_issue_cycles + machine.core.dma_wait_cycles)),
      m_jump(static_cast<double>(machine.core.call_cycles + machine.core.loop_cycles)),
      m_products(static_cast<double>(attention::k_lanes *
                                     std::popcount(machine.pipeline.units_of(isa::row(isa::Mnemonic::VFMULAS32))))) {}

/// As CoreProgram::multiply cuts it.
double AttentionBounds::product_cycles(std::int64_t rows, std::int64_t vectors, std::int64_t k) const {
  const std::int64_t strips = ceil_div(rows, k_gemm_m1);
  double all = 0;
  for (std::int64_t i = 0; i < strips; ++i) {
    const std::int64_t height = rows * (i + 1) / strips - rows * i / strips;
    for (std::int64_t vector = 0; vector < vectors; vector += 4) {
      const std::int64_t width = std::min<std::int64_t>(4, vectors - vector);
      const bool by_hand = height == k_gemm_m1 && width == 4;
      all += m_jump + (by_hand ? static_cast<double>(gemm_main_cycles(k, false))
                               : static_cast<double>(height * width * k * attention::k_lanes) / m_products);
    }
  }
  return all;
}

/// Cycles of a pass of a loop of a microkernel; `vectors`: V of the template.
double AttentionBounds::interval(const std::string& name, const std::string& loop, std::int64_t vectors) const {
  const auto [known, is_new] = m_intervals.try_emplace({name, loop, vectors});
  if (!is_new) return known->second;
  const Defines defines = vectors > 0 ? Defines{{"V", vectors}} : Defines{};
  // A loop that was not pipelined has no kernel; its passes take longer.
  for (const isa::LoopSchedule& found : isa::loops(program(name, m_machine.pipeline, defines), m_machine.pipeline)) {
    if (found.label == loop + ".kernel" || (found.label == loop && known->second == 0))
      known->second = found.initiation_interval;
  }
  return known->second;
}

double AttentionBounds::widen_cycles(std::int64_t bytes) const {
  return static_cast<double>(bytes) / attention::k_wide_block * interval("attention_widen", "widen");
}

/// Scores, softmax and values of `rows` rows and the `keys` of a block that they see.
double AttentionBounds::block_cycles(const AttentionPlan& plan, std::int64_t rows, std::int64_t keys) const {
  if (rows == 0 || keys == 0) return 0;
  const std::int64_t d = plan.shape.head_dim;
  const auto [known, is_new] = m_blocks.try_emplace({rows, keys, d, plan.weight_columns});
  if (!is_new) return known->second;
  const double of_row = interval("attention_max", "maxima") + interval("attention_exp", "weights");
  double all = 0;
  for (std::int64_t column = 0; column < keys; column += attention::k_tile_keys) {
    const std::int64_t tile = std::min(attention::k_tile_keys, keys - column);
    all += product_cycles(rows, attention::k_tile_keys / attention::k_lanes, d) + m_transfer;
    all += static_cast<double>(rows) * of_row + 2 * m_jump;
    for (std::int64_t at = 0; at < tile; at += plan.weight_columns) {
      const std::int64_t chunk = round_up(std::min(plan.weight_columns, tile - at), attention::k_key_unit);
      all += m_transfer + product_cycles(rows, ceil_div(d, attention::k_lanes), chunk);
    }
  }
  return known->second = all;
}

double AttentionBounds::of(const AttentionPlan& plan) const {
  if (plan.choice.variant == AttentionVariant::unfused || plan.choice.sequence == AttentionSequence::paper) return 0;
  const Totals totals = plan.choice.variant == AttentionVariant::mt ? of_mt(plan) : of_flash(plan);
  const double ddr =
      totals.ddr_bytes / (m_machine.ddr.bandwidth_gb_s * 1e9) + totals.ddr_rows * m_machine.ddr.row_cost_ns * 1e-9;
  const double gsm = totals.gsm_bytes / (m_machine.cluster.gsm_bandwidth_gb_s * 1e9);
  return m_machine.cluster.launch_us * 1e-6 +
         std::max({totals.core_cycles / (m_machine.core.clock_ghz * 1e9), ddr, gsm});
}

/// Every core takes part in every broadcast, the next block's while one is used.
AttentionBounds::Totals AttentionBounds::of_mt(const AttentionPlan& plan) const {
  const Sizes sizes(plan);
  const std::vector<KeyStep> steps = attention::key_steps(plan);
  const std::int64_t cores = m_machine.cluster.cores, rounds = plan.rounds(cores);
  const auto items = static_cast<double>(plan.items);
  const double factor = m_machine.dma.broadcast_factor, ddr = m_machine.ddr.bandwidth_gb_s * 1e9;
  const double divide = interval("attention_rescale", "rescale", ceil_div(plan.shape.head_dim, attention::k_lanes));

  Totals totals;
  std::vector<double> core_cycles(static_cast<std::size_t>(cores));
  double of_all_cores = 0;  // broadcasts
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::int64_t visible = 1;
    for (std::int64_t core = 0; core < cores; ++core) {
      const RowBlock block = attention::row_block(plan, cores, 0, round, core);
      if (block.tokens > 0) visible = std::max(visible, attention::visible_keys(plan.shape, block));
    }
    for (const KeyStep& step : steps) {
      if (step.position >= visible) continue;
      const double bytes = broadcast_bytes(plan, step, factor);
      of_all_cores += 2 * (m_transfer + cycles(m_machine.dma.broadcast_rendezvous_us * 1e-6));
      if (m_machine.dma.broadcast_exposed != 0) of_all_cores += 2 * cycles(m_machine.dma.start_us * 1e-6 + bytes / ddr);
      totals.ddr_bytes += 2 * bytes;
      totals.ddr_rows += broadcast_rows(plan, step, factor);
    }
    for (std::int64_t core = 0; core < cores; ++core) {
      const RowBlock block = attention::row_block(plan, cores, 0, round, core);
      if (block.tokens == 0) continue;
      const std::int64_t rows = block.tokens * plan.share, sees = attention::visible_keys(plan.shape, block);
      double& all = core_cycles[static_cast<std::size_t>(core)];
      for (const KeyStep& step : steps) {
        const std::int64_t keys = seen(step, sees);
        if (keys == 0) break;
        all += block_cycles(plan, rows, keys);
        if (sizes.half)
          all += widen_cycles(sizes.kt) + widen_cycles(round_up(step.keys, attention::k_key_unit) * sizes.row);
        totals.gsm_bytes += 2.0 * static_cast<double>(rows * keys * 4);
      }
      all += static_cast<double>(rows) * divide + 2 * m_transfer;  // Q comes, O leaves
      totals.ddr_rows += 2 * token_rows(plan, block.tokens);
    }
  }
  totals.core_cycles = items * (of_all_cores + *std::max_element(core_cycles.begin(), core_cycles.end()));
  totals.ddr_bytes *= items;
  totals.ddr_rows *= items;
  totals.gsm_bytes *= items;
  totals.ddr_bytes += 2.0 * static_cast<double>(plan.shape.q_elements() * bytes_of(plan.shape.dtype));
  return totals;
}

/// Cores meet at each block of keys, whose K^T all wait for; its rows follow.
AttentionBounds::Totals AttentionBounds::of_flash(const AttentionPlan& plan) const {
  const Sizes sizes(plan);
  const std::vector<KeyStep> steps = attention::key_steps(plan);
  const std::int64_t cores = m_machine.cluster.cores, rounds = plan.rounds(cores);
  const auto items = static_cast<double>(plan.items);
  const double factor = m_machine.dma.broadcast_factor, ddr = m_machine.ddr.bandwidth_gb_s * 1e9;
  const double rendezvous = m_transfer + cycles(m_machine.dma.broadcast_rendezvous_us * 1e-6);
  const double start = cycles(m_machine.dma.start_us * 1e-6);
  const auto q_row = static_cast<double>(plan.share * plan.shape.head_dim * bytes_of(plan.shape.dtype));

  Totals totals;
  for (const KeyStep& step : steps) {
    const double bytes = broadcast_bytes(plan, step, factor), arrival = start + cycles(bytes / ddr);
    const bool exposed = m_machine.dma.broadcast_exposed != 0;
    double longest = 0;
    for (std::int64_t core = 0; core < cores; ++core) {
      double all = 0;
      for (std::int64_t round = 0; round < rounds; ++round) {
        const RowBlock block = attention::row_block(plan, cores, 0, round, core);
        const std::int64_t visible = block.tokens > 0 ? attention::visible_keys(plan.shape, block) : 0;
        const std::int64_t rows = block.tokens * plan.share, keys = seen(step, visible);
        if (keys == 0) continue;
        all += block_cycles(plan, rows, keys) + 2 * m_transfer;
        const auto tokens = static_cast<double>(block.tokens);
        const bool last = step.position + step.keys >= visible;
        const auto o = static_cast<double>(sizes.kept + rows * sizes.row);
        totals.ddr_bytes += tokens * q_row + (step.position > 0 ? o : 0) + (last ? tokens * q_row : o);
        totals.ddr_rows += token_rows(plan, block.tokens) * (last ? 2 : 1);
        totals.gsm_bytes += 2.0 * static_cast<double>(rows * keys * 4);
      }
      longest = std::max(longest, all);
    }
    totals.ddr_bytes += 2 * bytes;
    totals.ddr_rows += broadcast_rows(plan, step, factor);
    totals.core_cycles += longest;
    if (sizes.half) {  // through one buffer, one after the other
      totals.core_cycles += 2 * (rendezvous + arrival) + widen_cycles(sizes.kt) +
                            widen_cycles(round_up(step.keys, attention::k_key_unit) * sizes.row);
    } else {
      totals.core_cycles += exposed ? 2 * (rendezvous + arrival) : std::max(2 * rendezvous, rendezvous + arrival);
    }
  }
  totals.core_cycles *= items;
  totals.ddr_bytes *= items;
  totals.ddr_rows *= items;
  totals.gsm_bytes *= items;
  return totals;
}

}  // namespace mtsim::kernels
