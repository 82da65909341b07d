// SPDX-License-Identifier: Apache-2.0
#include "mutant_programs.h"

#include <fmt/format.h>

#include <map>

#include "kernels/add/add.h"
#include "kernels/attention/attention.h"
#include "kernels/bias/bias.h"
#include "kernels/convert/convert.h"
#include "kernels/gather/gather.h"
#include "kernels/gemm/gemm.h"
#include "kernels/kv_append/kv_append.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/rope/rope.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/softmax/softmax.h"
#include "kernels/transpose/transpose.h"
#include "reference.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

constexpr int k_cores = 3;

/// Random operands in new DDR.
sim::Pointer random_operand(sim::Cluster& cluster, std::int64_t rows, std::int64_t columns, DType dtype,
                            std::uint32_t seed) {
  return upload(cluster, random_matrix(rows, columns, seed), dtype);
}

struct Result {
  sim::Pointer y;
  std::int64_t bytes;
  Result(sim::Cluster& cluster, std::int64_t elements, DType dtype)
      : y(cluster.ddr_malloc(elements * bytes_of(dtype))), bytes(elements * bytes_of(dtype)) {}
  Prepared of(sim::DspProgram program) const { return {std::move(program), y, bytes}; }
};

MutantProgram gemm(std::string name, const GemmShape& shape, const std::string& tiles, DType dtype,
                   const GemmChoice& choice) {
  MutantProgram program{std::move(name), {.dtype = dtype}, {}};
  program.polls = choice.dataflow == GemmDataflow::large_m && choice.variant == GemmVariant::best;
  const auto* rope = std::get_if<RopeEpilogue>(&choice.epilogue);
  if (rope != nullptr) {
    program.facts.pairs = rope->pairs;
    program.facts.rope_heads = 1;
    program.facts.rope_head_dim = rope->head_dim;
  }
  program.prepare = [=](sim::Cluster& cluster) {
    const auto [m, n, k] = shape;
    const GemmPlan plan = plan_gemm(shape, dtype, parse_gemm_tiles(tiles, dtype, choice), choice, cluster.machine());
    const Result result(cluster, m * n, dtype);
    GemmOperands operands{random_operand(cluster, m, k, dtype, 1), random_operand(cluster, k, n, dtype, 2), result.y};
    if (const auto* epilogue = std::get_if<RopeEpilogue>(&plan.epilogue)) {
      const std::vector<float> inv_freq = rope_inv_freq(epilogue->head_dim, 1e4);
      operands.frequencies = upload(cluster, gemm_frequencies(plan, inv_freq), DType::f32);
    }
    return result.of(gemm_program(cluster, plan, operands));
  };
  return program;
}

void add_gemms(std::vector<MutantProgram>& all) {
  using enum GemmDataflow;
  using enum GemmVariant;
  const std::string large = "mg=12,kg=16,k2=8,n2=128";
  all.push_back(gemm("gemm, large M", {20, 300, 40}, large, DType::f32, {large_m, best}));
  all.push_back(gemm("gemm, large M, paper", {20, 300, 40}, large, DType::f32, {large_m, paper}));
  all.push_back(
      gemm("gemm, large M, paper, Y in and out", {9, 600, 18}, "kg=8,k2=4,n2=128", DType::f32, {large_m, paper}));
  all.push_back(gemm("gemm, large M, FP16 with FP32 sums", {9, 700, 80}, "kg=32,k2=16,n2=256,k_promote=16", DType::f16,
                     {large_m, best}));
  all.push_back(gemm("gemm, W stationary", {50, 300, 40}, "mg=24,m2=6,kg=16,k2=8,n2=128,m1=6,n1=128,w_buffers=2",
                     DType::f32, {w_stationary, best}));
  all.push_back(gemm("gemm, W stationary, one buffer of each", {50, 300, 40},
                     "mg=24,m2=6,kg=16,k2=8,n2=64,m1=3,n1=64,x_buffers=1,w_buffers=1,y_buffers=2", DType::f32,
                     {w_stationary, best}));
  all.push_back(gemm("gemm, W stationary, FP16 with FP32 sums", {40, 700, 80},
                     "mg=16,m2=8,kg=32,k2=16,n2=256,k_promote=16,m1=8,n1=256,w_buffers=1", DType::f16,
                     {w_stationary, best}));
  all.push_back(gemm("gemm, small M, X whole", {7, 700, 30}, "k2=8,n2=128", DType::f32, {small_m, best}));
  all.push_back(gemm("gemm, small M, X in blocks", {40, 400, 140}, "k2=16,n2=128", DType::f32, {small_m, best}));
  const GemmChoice rows{small_m, best, GemmSums::promoted, GemmWeights::out_in};
  all.push_back(gemm("gemm, W by rows, X whole", {3, 700, 150}, "k2=64,n2=64", DType::f32, rows));
  all.push_back(gemm("gemm, W by rows, X in blocks, FP16", {5, 400, 3200}, "k2=256,n2=64", DType::f16, rows));
  GemmChoice linear{large_m, paper};
  linear.epilogue = RopeEpilogue{.pairs = RopePairs::half, .head_dim = 64};
  all.push_back(gemm("linear_rope, large M", {20, 320, 40}, large, DType::f32, linear));
  linear = {small_m, best};
  linear.epilogue = RopeEpilogue{.pairs = RopePairs::interleaved, .head_dim = 64};
  all.push_back(gemm("linear_rope, small M", {7, 768, 30}, "k2=8,n2=128", DType::f32, linear));
}

/// The three launches of unfused as one, with a barrier in between.
MutantProgram attention(std::string name, AttentionShape shape, const AttentionTiles& tiles,
                        const AttentionChoice& choice) {
  shape.scale = 0.25F;
  MutantProgram program{std::move(name), {.dtype = shape.dtype}, {}};
  program.facts.rescaled_bytes = (shape.head_dim + 31) / 32 * 128;
  program.prepare = [=](sim::Cluster& cluster) {
    const AttentionPlan plan = plan_attention(shape, tiles, choice, cluster.machine());
    const Result result(cluster, shape.q_elements(), shape.dtype);
    const AttentionOperands operands{random_operand(cluster, 1, shape.q_elements(), shape.dtype, 1),
                                     random_operand(cluster, 1, shape.kv_elements(), shape.dtype, 2),
                                     random_operand(cluster, 1, shape.kv_elements(), shape.dtype, 3), result.y};
    const std::vector<sim::DspProgram> programs = attention_programs(cluster, plan, operands);
    return result.of([=](sim::Dsp& dsp) {
      for (const sim::DspProgram& each : programs) {
        each(dsp);
        if (programs.size() > 1) dsp.group_barrier(1);
      }
    });
  };
  return program;
}

void add_attentions(std::vector<MutantProgram>& all) {
  using enum AttentionVariant;
  using enum AttentionSequence;
  const auto shape = [](std::int64_t heads, std::int64_t seq_q, std::int64_t seq_k, bool causal, DType dtype) {
    AttentionShape s;
    s.heads = s.kv_heads = heads;
    s.seq_q = seq_q;
    s.seq_k = seq_k;
    s.head_dim = 32;
    s.causal = causal;
    s.dtype = dtype;
    return s;
  };
  const AttentionTiles tiles{.mr = 2, .mc = 128};
  const AttentionTiles spilling{.mr = 8, .mc = 256, .pass = 2};  // AM holds three of four tiles of scores
  all.push_back(attention("attention, mt", shape(2, 11, 290, false, DType::f32), tiles, {mt, best}));
  all.push_back(
      attention("attention, mt, paper, scores in GSM", shape(1, 40, 500, false, DType::f32), spilling, {mt, paper}));
  all.push_back(attention("attention, mt, FP16, causal", shape(2, 11, 290, true, DType::f16), tiles, {mt, best}));
  all.push_back(attention("attention, flash", shape(2, 11, 290, false, DType::f32), tiles, {flash, best}));
  all.push_back(attention("attention, flash, paper", shape(2, 11, 290, true, DType::f32), tiles, {flash, paper}));
  all.push_back(attention("attention, flash, FP16", shape(2, 11, 290, false, DType::f16), tiles, {flash, best}));
  const AttentionTiles one_row{.mr = 1, .mc = 128};  // AM holds the buffers of all three launches
  all.push_back(attention("attention, unfused", shape(1, 5, 140, false, DType::f32), one_row, {unfused, best}));
  all.push_back(attention("attention, unfused, scores in FP16", shape(1, 5, 140, false, DType::f32), one_row,
                          {unfused, best, DType::f16}));
}

/// Tiles of one block of 512 bytes of the widest operand, and a rest on the last core.
constexpr std::int64_t k_f32_elements = 128 * 17 + 5, k_f16_elements = 256 * 17 + 6;

void add_elementwise(std::vector<MutantProgram>& all) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    const std::int64_t elements = dtype == DType::f32 ? k_f32_elements : k_f16_elements;
    const std::int64_t tile = 512 / bytes_of(dtype);
    const auto name = [&](const char* op) { return fmt::format("{}, {}", op, to_string(dtype)); };
    all.push_back({name("add"),
                   {.dtype = dtype},
                   [=](sim::Cluster& cluster) {
                     const StreamPlan plan = plan_add(elements, dtype, tile, cluster.machine());
                     const Result result(cluster, elements, dtype);
                     return result.of(add(cluster, plan, dtype,
                                          {random_operand(cluster, 1, elements, dtype, 1),
                                           random_operand(cluster, 1, elements, dtype, 2), result.y}));
                   },
                   2});
    all.push_back({name("silu_mul"),
                   {.dtype = dtype},
                   [=](sim::Cluster& cluster) {
                     const StreamPlan plan = plan_silu_mul(elements, dtype, tile, cluster.machine());
                     const Result result(cluster, elements, dtype);
                     return result.of(silu_mul(cluster, plan, dtype,
                                               {random_operand(cluster, 1, elements, dtype, 1),
                                                random_operand(cluster, 1, elements, dtype, 2), result.y}));
                   },
                   2});
    all.push_back({name("convert from"),
                   {.dtype = dtype},
                   [=](sim::Cluster& cluster) {
                     const StreamPlan plan = plan_convert(k_f16_elements, dtype, 256, cluster.machine());
                     const Result result(cluster, k_f16_elements, other(dtype));
                     return result.of(
                         convert(cluster, plan, dtype, random_operand(cluster, 1, k_f16_elements, dtype, 1), result.y));
                   },
                   2});
    all.push_back({name("gather"), {.dtype = dtype}, [=](sim::Cluster& cluster) {
                     constexpr std::int64_t k_rows = 12, k_columns = 40;
                     std::vector<std::int32_t> ids;
                     for (int i = 0; i < 25; ++i) ids.push_back(i * 7 % k_rows);
                     const Result result(cluster, std::ssize(ids) * k_columns, dtype);
                     return result.of(gather(cluster, k_columns * bytes_of(dtype), k_rows,
                                             {random_operand(cluster, k_rows, k_columns, dtype, 1), result.y, ids}));
                   }});
  }
}

void add_rows(std::vector<MutantProgram>& all) {
  constexpr std::int64_t k_rows = 17, k_columns = 300;  // a row does not fill its blocks
  for (const DType dtype : {DType::f32, DType::f16}) {
    const auto name = [&](const char* op) { return fmt::format("{}, {}", op, to_string(dtype)); };
    all.push_back({name("bias"), {.dtype = dtype}, [=](sim::Cluster& cluster) {
                     const StreamPlan plan = plan_bias(2 * k_rows, k_columns, dtype, 2, cluster.machine());
                     const Result result(cluster, 2 * k_rows * k_columns, dtype);
                     return result.of(bias(cluster, plan, dtype,
                                           {random_operand(cluster, 2 * k_rows, k_columns, dtype, 1),
                                            random_operand(cluster, 1, k_columns, dtype, 2), result.y}));
                   }});
    all.push_back(
        {name("softmax"), {.dtype = dtype}, [=](sim::Cluster& cluster) {
           const SoftmaxPlan plan = plan_softmax({k_rows, k_columns, dtype}, 1, cluster.machine());
           const Result result(cluster, k_rows * k_columns, dtype);
           return result.of(softmax(cluster, plan, {random_operand(cluster, k_rows, k_columns, dtype, 1), result.y}));
         }});
    all.push_back(
        {name("rmsnorm"), {.dtype = dtype}, [=](sim::Cluster& cluster) {
           const RmsNormPlan plan = plan_rmsnorm({k_rows, k_columns, dtype, DType::f32}, 1, cluster.machine());
           const Result result(cluster, k_rows * k_columns, dtype);
           return result.of(rmsnorm(cluster, plan,
                                    {random_operand(cluster, k_rows, k_columns, dtype, 1),
                                     random_operand(cluster, 1, k_columns, DType::f32, 2), result.y}));
         }});
    all.push_back(
        {name("add_rmsnorm"), {.dtype = dtype}, [=](sim::Cluster& cluster) {
           const RmsNormPlan plan = plan_add_rmsnorm({k_rows, k_columns, dtype, DType::f32}, 1, cluster.machine());
           const Result result(cluster, 2 * k_rows * k_columns, dtype);
           const sim::Pointer z = result.y, y = z + k_rows * k_columns * bytes_of(dtype);
           return result.of(add_rmsnorm(cluster, plan,
                                        {random_operand(cluster, k_rows, k_columns, dtype, 1),
                                         random_operand(cluster, k_rows, k_columns, dtype, 3),
                                         random_operand(cluster, 1, k_columns, DType::f32, 2), z, y}));
         }});
    all.push_back(
        {name("transpose"), {.dtype = dtype}, [=](sim::Cluster& cluster) {
           const std::int64_t unit = transpose_unit(dtype), rows = 4 * unit - 7, columns = 4 * unit - 10;
           const TransposePlan plan = plan_transpose({rows, columns}, dtype, {unit, unit}, cluster.machine());
           const Result result(cluster, rows * columns, dtype);
           return result.of(transpose(cluster, plan, {random_operand(cluster, rows, columns, dtype, 1), result.y}));
         }});
  }
}

/// The new tokens of a sequence, which are transposed, and those of others, which are moved.
void add_kv_appends(std::vector<MutantProgram>& all) {
  for (const DType dtype : {DType::f32, DType::f16}) {
    all.push_back({fmt::format("kv_append, {}", to_string(dtype)), {.dtype = dtype}, [=](sim::Cluster& cluster) {
                     const std::int64_t unit = transpose_unit(dtype), block = 4 * unit;
                     const KvAppendShape shape{4, unit - 16, block, dtype};
                     constexpr std::int64_t k_blocks = 12;  // K^T and V of six
                     const Result result(cluster, k_blocks * shape.row() * block, dtype);
                     cluster.write(result.y, std::vector<std::byte>(static_cast<std::size_t>(result.bytes)));
                     std::vector<KvAppend> appends;
                     const auto append = [&](std::int64_t place, std::int64_t first, std::int64_t tokens) {
                       const auto seed = static_cast<std::uint32_t>(2 * place);
                       KvAppend& one = appends.emplace_back();
                       one.first = first;
                       one.tokens = tokens;
                       one.k = random_operand(cluster, tokens, shape.row(), dtype, seed + 1);
                       one.v = random_operand(cluster, tokens, shape.row(), dtype, seed + 2);
                       for (std::int64_t i = 0; i * block < first + tokens; ++i) {
                         one.blocks.kt.push_back(result.y + 2 * (place + i) * shape.block_bytes());
                         one.blocks.v.push_back(result.y + (2 * (place + i) + 1) * shape.block_bytes());
                       }
                     };
                     append(0, 9, 3 * unit);
                     for (std::int64_t place = 1; place < 6; ++place) append(place, 7 * place, 1);
                     return result.of(kv_append(cluster, shape, appends));
                   }});
  }
}

MutantProgram rotation(const char* name, DType dtype, RopePairs pairs, std::int64_t heads, std::int64_t head_dim,
                       std::int64_t block_heads) {
  const RopeLayout layout = RopeLayout::of(heads, head_dim, pairs, dtype);
  const KernelFacts facts{dtype, DType::f32, pairs, block_heads, 2 * layout.angles};
  return {name, facts, [=](sim::Cluster& cluster) {
            const RopePlan plan = plan_rope({18, heads, head_dim}, pairs, dtype, {5, {}}, 1, cluster.machine());
            const Result result(cluster, 18 * heads * head_dim, dtype);
            const std::vector<float> frequencies = layout.frequencies(rope_inv_freq(head_dim, 1e4));
            return result.of(rope(cluster, plan,
                                  {random_operand(cluster, 18, heads * head_dim, dtype, 1),
                                   upload(cluster, frequencies, DType::f32), result.y}));
          }};
}

}  // namespace

const sim::MachineConfig& mutant_machine(double dma_times) {
  static std::map<double, sim::MachineConfig> known;
  const auto [place, is_new] = known.try_emplace(dma_times);
  sim::MachineConfig& config = place->second;
  if (is_new) {
    config = sim::Machine::load(
                 "mt3000", {fmt::format("cluster.cores={}", k_cores), "core.sm_bytes=16384", "core.am_bytes=98304"})
                 .config();
    config.dma.start_us *= dma_times;
    config.dma.broadcast_rendezvous_us *= dma_times;
    config.ddr.bandwidth_gb_s /= dma_times;
    config.cluster.gsm_bandwidth_gb_s /= dma_times;
    config.cluster.port_bandwidth_gb_s /= dma_times;
  }
  return config;
}

const std::vector<MutantProgram>& mutant_programs() {
  static const std::vector<MutantProgram> k_all = [] {
    std::vector<MutantProgram> all;
    add_gemms(all);
    add_attentions(all);
    add_elementwise(all);
    add_rows(all);
    add_kv_appends(all);
    all.push_back(rotation("rope, interleaved", DType::f32, RopePairs::interleaved, 4, 64, 4));
    all.push_back(rotation("rope, halves with pads", DType::f16, RopePairs::half, 3, 40, 1));
    return all;
  }();
  return k_all;
}

}  // namespace mtsim::kernels
