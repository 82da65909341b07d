// SPDX-License-Identifier: Apache-2.0
// Geometry, transfers and products of one core. Order of the rows of a block: token by token, the heads that share K
// and V within a token, as they lie in DDR.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "kernels/attention/attention_program.h"
#include "kernels/gemm/gemm.h"
#include "kernels/library.h"

namespace mtsim::kernels::attention {

void check_blocks(const AttentionBlocks& blocks, std::int64_t count, bool one_sequence) {
  if (blocks.kt.empty() && blocks.v.empty()) return;
  if (!one_sequence) throw KernelError("attention: blocks of K and V in places of their own are those of one sequence");
  if (std::ssize(blocks.kt) < count || std::ssize(blocks.v) < count)
    throw KernelError(fmt::format("attention: {} blocks of K^T and {} of V for a context of {}", blocks.kt.size(),
                                  blocks.v.size(), count));
}

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

Kernels load_kernels(sim::Cluster& cluster, const AttentionPlan& plan) {
  const auto load = [&](const char* name, const char* entry = "", const Defines& defines = {}) {
    return cluster.load(program(name, cluster.machine().pipeline, defines), entry);
  };
  Kernels kernels;
  kernels.accumulate = load("gemm_f32_6x128", "accumulate");
  kernels.write_only = load("gemm_f32_6x128", "write_only");
  kernels.tiles = std::make_shared<TileKernels>(cluster);
  kernels.mask = load("attention_mask");
  kernels.most = load("attention_max");
  kernels.weights = load("attention_exp");
  kernels.begin = load("attention_rows", "begin");
  kernels.next = load("attention_rows", "next");
  kernels.add = load("attention_rows", "add");
  kernels.finish = load("attention_rows", "finish");
  kernels.rescale = load("attention_rescale", "", {{"V", ceil_div(plan.shape.head_dim, k_lanes)}});
  kernels.rescale_tile = load("attention_rescale", "", {{"V", k_tile_keys / k_lanes}});
  kernels.paper_scale = load("attention_paper", "scale");
  kernels.paper_most = load("attention_paper", "most");
  kernels.paper_exp = load("attention_paper", "exp");
  kernels.paper_sum = load("attention_paper", "sum");
  kernels.lanes = load("attention_lanes");
  kernels.fill = load("fill_am");
  kernels.zero_vectors = load("zero_am_column");
  kernels.widen = load("attention_widen");
  kernels.narrow = load("convert", "f32_to_f16");
  return kernels;
}

CoreProgram::CoreProgram(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands,
                         const Kernels& kernels, const Memory& memory)
    : m_dsp(dsp),
      m_plan(plan),
      m_shape(plan.shape),
      m_sizes(plan),
      m_operands(operands),
      m_kernels(kernels),
      m_memory(memory),
      m_core(dsp.thread_id()),
      m_cores(dsp.group_size()),
      m_rounds(plan.rounds(m_cores)),
      m_steps(key_steps(plan)),
      m_kt_pitch(4 * plan.tiles.mc) {}

void CoreProgram::wait(Channel& channel, sim::Dsp::Source from) {
  if (channel) m_dsp.dma_wait(*std::exchange(channel, std::nullopt), from);
}

void CoreProgram::allocate_queries() {
  m_q = m_dsp.scalar_malloc(m_sizes.q);
  for (sim::Pointer& chunk : m_weights) chunk = m_dsp.scalar_malloc(m_sizes.weights);
  if (m_sizes.half) m_q_wire = m_dsp.vector_malloc(m_sizes.q_wire);
}

void CoreProgram::allocate_tiles() {
  for (std::int64_t i = 0; i < m_plan.score_tiles; ++i) m_tiles.push_back(m_dsp.vector_malloc(m_sizes.tile));
}

/// Every size is a multiple of k_block, so that each part is aligned to one.
void CoreProgram::allocate_softmax() {
  for (sim::Pointer* vectors : {&m_first, &m_second, &m_value}) *vectors = m_dsp.vector_malloc(m_sizes.vectors);
  m_turn = m_dsp.vector_malloc(k_turn_bytes);
  m_lanes = m_dsp.vector_malloc(k_lanes_bytes);
  allocate_tiles();
  m_dsp.call(m_kernels.lanes, {m_lanes});
}

// --- Geometry

std::int64_t CoreProgram::round_steps(std::int64_t round) const {
  std::int64_t keys = 1;
  for (std::int64_t core = 0; core < m_cores; ++core) {
    const RowBlock block = row_block(0, round, core);
    if (block.tokens > 0) keys = std::max(keys, visible_keys(block));
  }
  return std::count_if(m_steps.begin(), m_steps.end(), [&](const KeyStep& step) { return step.position < keys; });
}

sim::Pointer CoreProgram::q_at(sim::Pointer base, const RowBlock& block) const {
  const std::int64_t parts = m_shape.heads / m_plan.share;  // items of one batch entry
  const std::int64_t batch = block.item / parts, head = block.item % parts * m_plan.share;
  return base + ((batch * m_shape.seq_q + block.token) * m_shape.heads + head) * m_sizes.d * m_sizes.bytes;
}

sim::Rows CoreProgram::ddr_rows(const RowBlock& block) const {
  const std::int64_t bytes = m_plan.share * m_sizes.d * m_sizes.bytes;
  return {block.tokens, bytes, m_shape.heads * m_sizes.d * m_sizes.bytes - bytes};
}

// --- K^T and V

sim::Pointer CoreProgram::key_block(const AttentionBlocks& blocks, Matrix matrix, sim::Pointer base, std::int64_t count,
                                    std::int64_t head, std::int64_t block) const {
  const std::int64_t bytes = m_shape.block() * m_sizes.d * m_sizes.bytes;
  if (blocks.kt.empty()) return base + (head * count + block) * bytes;
  return (matrix == Matrix::k ? blocks.kt : blocks.v)[static_cast<std::size_t>(block)] + head * bytes;
}

CoreProgram::KeyMove CoreProgram::prepare(Matrix matrix, sim::Pointer start, const KeyStep& step, sim::Pointer wire) {
  const auto& s = m_sizes;
  const std::int64_t block = m_shape.block();
  if (matrix == Matrix::k) {
    const std::int64_t pitch = m_plan.tiles.mc * s.bytes, bytes = step.keys * s.bytes;
    const std::int64_t end = round_up(step.keys, k_tile_keys) * s.bytes;
    for (std::int64_t at = bytes / k_vector_bytes * k_vector_bytes; at < end && bytes < end; at += k_vector_bytes) {
      m_dsp.loop_iteration();
      m_dsp.call(m_kernels.zero_vectors, {wire + at, s.d, pitch});
    }
    return {start + step.first * s.bytes, {s.d, bytes, block * s.bytes - bytes}, {s.d, bytes, pitch - bytes}};
  }
  const std::int64_t pitch = s.padded_d * s.bytes, bytes = s.d * s.bytes;
  if (const std::int64_t pads = round_up(step.keys, k_key_unit) - step.keys; pads > 0)
    m_dsp.call(m_kernels.zero_vectors, {wire + step.keys * pitch, pads * pitch / k_vector_bytes, k_vector_bytes});
  return {start + step.first * bytes, {1, step.keys * bytes, 0}, {step.keys, bytes, pitch - bytes}};
}

int CoreProgram::broadcast(Matrix matrix, std::int64_t item, const KeyStep& step, sim::Pointer wire) {
  const std::int64_t head = item * m_plan.share / m_shape.group();  // of all KV heads of all batch entries
  const sim::Pointer block = key_block(m_operands.blocks, matrix, matrix == Matrix::k ? m_operands.kt : m_operands.v,
                                       m_shape.blocks(), head, step.block);
  const KeyMove move = prepare(matrix, block, step, wire);
  set_priority(k_usual);
  return m_dsp.dma_broadcast(move.from, move.from_rows, wire, move.to_rows, 0);
}

void CoreProgram::widen(sim::Pointer wire, sim::Pointer to, std::int64_t bytes) {
  m_dsp.call(m_kernels.widen, {wire, to, round_up(bytes, k_wide_block)});
}

// --- Q

void CoreProgram::ask_for_queries(const RowBlock& block) {
  m_q_rows = rows(block);
  if (m_q_rows == 0) return;
  const std::int64_t bytes = m_q_rows * m_sizes.d * m_sizes.bytes;
  set_priority(k_usual);
  m_q_channel = m_dsp.dma_p2p(q_at(m_operands.q, block), ddr_rows(block), m_sizes.half ? m_q_wire : m_q, {1, bytes, 0});
}

void CoreProgram::stage_queries() {
  if (!m_sizes.half || m_q_rows == 0) return;
  wait(m_q_channel);
  const std::int64_t bytes = m_q_rows * m_sizes.d * 4;
  free_tiles(bytes);
  widen(m_q_wire, m_tiles[0], bytes);
  const sim::Pointer gsm = m_memory.gsm + m_core * m_sizes.home + m_plan.homes * m_sizes.tile;
  set_priority(k_usual);
  m_q_home_channel = m_dsp.dma_p2p(m_tiles[0], {1, bytes, 0}, gsm, {1, bytes, 0});
}

void CoreProgram::fetch_queries() {
  if (!m_sizes.half || m_q_rows == 0) return;
  wait(m_q_home_channel);
  const std::int64_t bytes = m_q_rows * m_sizes.d * 4;
  const sim::Pointer gsm = m_memory.gsm + m_core * m_sizes.home + m_plan.homes * m_sizes.tile;
  set_priority(k_usual);
  m_q_channel = m_dsp.dma_p2p(gsm, {1, bytes, 0}, m_q, {1, bytes, 0});
}

// --- Products

/// Strips of at most 6 rows, all about as high, and blocks of at most 4 vectors: 6 x 128 by the microkernel written by
/// hand, others by generated ones.
void CoreProgram::multiply(const Product& p) {
  const std::int64_t strips = ceil_div(p.rows, k_gemm_m1);
  for (std::int64_t i = 0; i < strips; ++i) {
    const std::int64_t row = p.rows * i / strips, rows = p.rows * (i + 1) / strips - row;
    for (std::int64_t vector = 0; vector < p.vectors; vector += 4) {
      const std::int64_t vectors = std::min<std::int64_t>(4, p.vectors - vector);
      const bool whole = rows == k_gemm_m1 && vectors == 4;
      const sim::Kernel& kernel =
          whole ? (p.accumulate ? m_kernels.accumulate : m_kernels.write_only)
                : m_kernels.tiles->kernel({static_cast<int>(rows), static_cast<int>(vectors)}, p.accumulate);
      m_dsp.loop_iteration();
      m_dsp.call(kernel, {p.x + row * p.x_pitch, p.w + vector * k_vector_bytes,
                          p.y + row * p.y_pitch + vector * k_vector_bytes, p.k, p.x_pitch, p.w_pitch, p.y_pitch});
    }
  }
}

int CoreProgram::store(sim::Pointer o, const RowBlock& block) {
  const std::int64_t rows = this->rows(block), bytes = m_sizes.d * m_sizes.bytes;
  if (m_sizes.half) m_dsp.call(m_kernels.narrow, {o, o, round_up(rows * m_sizes.row, k_block)});
  set_priority(k_usual);
  return m_dsp.dma_p2p(o, {rows, bytes, m_sizes.padded_d * m_sizes.bytes - bytes}, q_at(m_operands.o, block),
                       ddr_rows(block));
}

}  // namespace mtsim::kernels::attention
