// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/attention/attention_program.h"
#include "kernels/library.h"
#include "kernels/reduce/rows.h"
#include "kernels/stream/stream.h"

namespace mtsim::kernels {
namespace attention {
namespace {

/// Rows of scores in AM, at most k_rows_at_once, where kernels/stream puts them.
struct ScoreRows {
  sim::Pointer x;
  std::int64_t token = 0, count = 0;
  std::int64_t pitch = 0;
  sim::Pointer area, kept, lanes;
};

/// Where AM has its pads behind seq_k, and what a causal mask hides, becomes -infinity.
void mask_rows(sim::Dsp& dsp, const AttentionShape& shape, const Kernels& kernels, const ScoreRows& rows) {
  const std::int64_t last = shape.seq_k - shape.seq_q + rows.token;  // key that the first row sees
  for (std::int64_t at = 0; 4 * at < rows.pitch; at += k_tile_keys) {
    if (at + k_tile_keys <= (shape.causal ? last + 1 : shape.seq_k)) continue;
    const float limit = shape.causal ? static_cast<float>(std::max<std::int64_t>(last - at, -k_tile_keys)) + 0.5F
                                     : static_cast<float>(shape.seq_k - at);
    dsp.loop_iteration();
    dsp.call(kernels.mask,
             {rows.x + 4 * at, rows.lanes, rows.count, rows.pitch, bits(limit), bits(shape.causal ? 1.0F : 0.0F)});
  }
}

void paper_rows(sim::Dsp& dsp, const AttentionShape& shape, const Kernels& kernels, const ScoreRows& rows) {
  constexpr std::int64_t part = k_rows_at_once * k_vector_bytes;
  const sim::Pointer first = rows.area, second = first + part, value = second + part, turn = value + part;
  const auto each_tile = [&](const sim::Kernel& kernel, sim::Pointer lane, float factor) {
    for (std::int64_t at = 0; 4 * at < rows.pitch; at += k_tile_keys) {
      dsp.loop_iteration();
      dsp.call(kernel, {rows.x + 4 * at, lane, 0, rows.count, rows.pitch, bits(factor)});
    }
  };
  const auto of_rows = [&](const sim::Kernel& kernel) {
    dsp.call(kernel, {first, second, value, turn, rows.kept, bits(1)});
  };
  dsp.call(kernels.fill, {first, part, std::uint64_t{0xFF800000'FF800000}});
  dsp.call(kernels.fill, {second, part, 0});
  each_tile(kernels.paper_scale, first, shape.scale);
  each_tile(kernels.paper_most, first, 0);
  of_rows(kernels.begin);
  each_tile(kernels.paper_exp, value, 0);
  each_tile(kernels.paper_sum, second, 0);
  of_rows(kernels.add);
  of_rows(kernels.finish);
  for (std::int64_t at = 0; 4 * at < rows.pitch; at += k_tile_keys) {
    dsp.loop_iteration();
    dsp.call(kernels.rescale_tile, {rows.x + 4 * at, value, rows.count, rows.pitch});
  }
}

}  // namespace

sim::DspProgram softmax_of_scores(sim::Cluster& cluster, const AttentionPlan& plan, const Kernels& kernels,
                                  const Memory& memory) {
  const AttentionShape shape = plan.shape;
  const sim::Kernel best = cluster.load(program("softmax", cluster.machine().pipeline));
  const StreamPlan stream_plan = plan_softmax_of_scores(plan, cluster.machine());
  const std::int64_t blocks = row_blocks(Sizes(plan).score_row), pitch = blocks * k_row_block * 4;  // in FP32
  const bool paper = plan.choice.sequence == AttentionSequence::paper, half = plan.choice.scores == DType::f16;
  const auto kernel = [=](sim::Dsp& dsp, const StreamTile& tile) {
    const sim::Pointer kept = tile.scratch + k_rows_area_bytes, lanes = kept + k_block;
    dsp.call(kernels.lanes, {lanes});
    for_each_row_group(tile.items, [&](std::int64_t first, std::int64_t count) {
      const sim::Pointer stored = tile.inputs[0] + first * (half ? pitch / 2 : pitch);
      const sim::Pointer x = half ? tile.scratch_items : stored;
      const ScoreRows rows{x, tile.first + first, count, pitch, tile.scratch, kept, lanes};
      dsp.loop_iteration();
      if (half) dsp.call(kernels.widen, {stored, x, count * pitch});
      mask_rows(dsp, shape, kernels, rows);
      if (paper)
        paper_rows(dsp, shape, kernels, rows);
      else
        dsp.call(best, {x, x, x, rows.area, count, blocks, bits(shape.scale)});
      if (half) dsp.call(kernels.narrow, {x, stored, count * pitch});
    });
  };
  return stream(cluster, stream_plan, {{memory.scratch}, {memory.scratch}, {}}, kernel);
}

StreamPlan plan_softmax_of_scores(const AttentionPlan& plan, const sim::MachineConfig& machine) {
  const Sizes sizes(plan);
  const std::int64_t row = sizes.score_bytes * sizes.score_row;
  const std::int64_t pitch = row_pitch(sizes.score_row, plan.choice.scores);
  return plan_stream(
      {.op = "attention unfused: softmax",
       .items = plan.shape.seq_q,
       .inputs = {{"scores", row, pitch}},
       .outputs = {{"weights", row, pitch}},
       .constants = {},
       .in_place = true,
       .scratch_bytes = k_rows_area_bytes + k_block + k_lanes_bytes,
       // FP16 rows are widened there, as many as are reduced together; a tile has as many at least.
       .scratch_item_bytes = plan.choice.scores == DType::f16 ? row_pitch(sizes.score_row, DType::f32) : 0},
      0, machine);
}

}  // namespace attention

std::vector<sim::DspProgram> attention_programs(sim::Cluster& cluster, const AttentionPlan& plan,
                                                const AttentionOperands& operands, std::int64_t items) {
  attention::check_blocks(operands.blocks, plan.shape.blocks(), plan.shape.batch == 1);
  const attention::Kernels kernels = attention::load_kernels(cluster, plan);
  attention::Memory memory;
  if (plan.gsm_bytes > 0) memory.gsm = cluster.gsm_malloc(plan.gsm_bytes);
  if (plan.scratch_bytes > 0) memory.scratch = cluster.ddr_malloc(plan.scratch_bytes);
  const std::int64_t count = items > 0 ? std::min(items, plan.items) : plan.items;
  const auto on_all_cores = [&](auto run) -> sim::DspProgram {
    return [=](sim::Dsp& dsp) {
      if (dsp.group_size() != dsp.machine().cluster.cores) {
        throw KernelError(fmt::format("attention was planned for {} cores and launched on {}; launch it on all cores",
                                      dsp.machine().cluster.cores, dsp.group_size()));
      }
      run(dsp);
    };
  };
  if (plan.choice.variant != AttentionVariant::unfused) {
    const auto run = plan.choice.variant == AttentionVariant::mt ? attention::run_mt : attention::run_flash;
    return {on_all_cores([=](sim::Dsp& dsp) { run(dsp, plan, operands, kernels, memory, count); })};
  }
  std::vector<sim::DspProgram> programs;
  const sim::DspProgram softmax = attention::softmax_of_scores(cluster, plan, kernels, memory);
  for (std::int64_t item = 0; item < count; ++item) {
    programs.push_back(
        on_all_cores([=](sim::Dsp& dsp) { attention::run_scores(dsp, plan, operands, kernels, memory, item); }));
    programs.push_back(softmax);
    programs.push_back(
        on_all_cores([=](sim::Dsp& dsp) { attention::run_values(dsp, plan, operands, kernels, memory, item); }));
  }
  return programs;
}

}  // namespace mtsim::kernels
