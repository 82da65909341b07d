// SPDX-License-Identifier: Apache-2.0
// What the DSP programs of the three attentions share; private to kernels/attention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/gemm/gemm_tile.h"
#include "kernels/reduce/rows.h"
#include "kernels/round.h"
#include "kernels/stream/stream.h"
#include "sim/cluster.h"
#include "sim/dsp.h"

namespace mtsim::kernels::attention {

inline constexpr std::int64_t k_vector_bytes = 128, k_lanes = 32;
/// A tile of scores or weights: rows of 128 keys, which the softmax and the products work on.
inline constexpr std::int64_t k_tile_keys = 128, k_tile_pitch = 4 * k_tile_keys;
inline constexpr std::int64_t k_kept_bytes = 256;   // of a group: m and l
inline constexpr std::int64_t k_turn_bytes = 2560;  // attention_rows.s
inline constexpr std::int64_t k_lanes_bytes = 512;  // attention_lanes.s
inline constexpr std::int64_t k_block = 512;        // of AM: what fill_am and convert count in
inline constexpr std::int64_t k_wide_block = 1024;  // of FP32: what attention_widen counts in
inline constexpr std::int64_t k_key_unit = 4;       // keys of a product of weights and V come padded to it

/// Sizes that plan and programs derive from a plan, in bytes where nothing else is said.
struct Sizes {
  explicit Sizes(const AttentionPlan& plan);
  bool half;                 // operands are FP16
  std::int64_t bytes;        // of an element of them
  std::int64_t d, padded_d;  // elements of a row of V and O, in DDR and in AM
  std::int64_t row;          // FP32, of V and O in AM
  std::int64_t kt;           // a block of K^T, FP32
  std::int64_t slot, wire;   // of K^T or V, FP32; as it arrives in FP16
  std::int64_t tile;         // of scores
  std::int64_t block_tiles;  // tiles of a block of keys
  std::int64_t groups;       // of k_rows_at_once
  std::int64_t vectors;      // a vector a row, of all groups
  std::int64_t kept;         // m and l
  std::int64_t o;            // FP32
  std::int64_t q, q_wire;    // in SM and GSM, FP32; as it arrives in FP16
  std::int64_t home;         // of a core in GSM
  std::int64_t weights;      // a chunk in SM
  std::int64_t token_block;  // tokens of a core in a round
  std::int64_t score_row;    // unfused: elements of a row of scores in DDR
  std::int64_t score_bytes;  // and bytes of one
};

/// A block of K^T and V as it is loaded.
struct KeyStep {
  std::int64_t block = 0, first = 0;  // of the cache, and the first position in it
  std::int64_t keys = 0;
  std::int64_t position = 0;  // of the first key in the context
};
std::vector<KeyStep> key_steps(const AttentionPlan& plan);

/// Consecutive tokens of one item, `share` rows each.
struct RowBlock {
  std::int64_t item = 0, token = 0, tokens = 0;
};

/// The rows of a core in a round.
RowBlock row_block(const AttentionPlan& plan, std::int64_t cores, std::int64_t item, std::int64_t round,
                   std::int64_t core);
/// Keys that the last token of a block sees, at least 1: a row of which all are masked is computed all the same.
std::int64_t visible_keys(const AttentionShape& shape, const RowBlock& block);

struct Kernels {
  sim::Kernel accumulate, write_only;  // 6 x 128
  std::shared_ptr<TileKernels> tiles;  // all others
  sim::Kernel mask, most, weights;     // of a tile
  sim::Kernel begin, next, add, finish;
  sim::Kernel rescale;       // O
  sim::Kernel rescale_tile;  // 128 columns
  sim::Kernel paper_scale, paper_most, paper_exp, paper_sum;
  sim::Kernel lanes, fill, zero_vectors, widen, narrow;
};
Kernels load_kernels(sim::Cluster& cluster, const AttentionPlan& plan);

struct Memory {
  sim::Pointer gsm, scratch;
};

/// Throws KernelError: as many blocks as the context has, or none, and of one sequence.
void check_blocks(const AttentionBlocks& blocks, std::int64_t count, bool one_sequence);

/// An FP32 argument of a microkernel.
std::uint64_t bits(float value);

/// One core's part of an attention.
class CoreProgram {
 protected:
  CoreProgram(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
              const Memory& memory);

  using Channel = std::optional<int>;
  void wait(Channel& channel, sim::Dsp::Source from = sim::Dsp::Source::current());

  // --- Priorities of later transfers.
  enum Priority : int { k_urgent = 0, k_usual = 1 };
  void set_priority(int priority) {
    if (priority != m_priority) m_dsp.set_priority(m_priority = priority);
  }

  // --- Geometry.
  bool paper() const { return m_plan.choice.sequence == AttentionSequence::paper; }
  std::int64_t rounds() const { return m_rounds; }
  RowBlock row_block(std::int64_t item, std::int64_t round) const { return row_block(item, round, m_core); }
  RowBlock row_block(std::int64_t item, std::int64_t round, std::int64_t core) const {
    return attention::row_block(m_plan, m_cores, item, round, core);
  }
  std::int64_t rows(const RowBlock& block) const { return block.tokens * m_plan.share; }
  std::int64_t visible_keys(const RowBlock& block) const { return attention::visible_keys(m_shape, block); }
  /// Blocks of keys that some core of a round sees.
  std::int64_t round_steps(std::int64_t round) const;
  sim::Pointer q_at(sim::Pointer base, const RowBlock& block) const;
  sim::Rows ddr_rows(const RowBlock& block) const;

  // --- K^T and V, broadcast to all cores.
  enum class Matrix : std::uint8_t { k, v };
  /// A block on its way from DDR.
  struct KeyMove {
    sim::Pointer from;
    sim::Rows from_rows, to_rows;
  };
  /// How it comes into `wire`, as it lies in DDR; its pads there are set to zero: keys to whole tiles (K^T) or to
  /// k_key_unit (V). `block`: of a KV head in DDR.
  KeyMove prepare(Matrix matrix, sim::Pointer block, const KeyStep& step, sim::Pointer wire);
  /// A block of KV head `head` among `blocks`, or else among those of all heads from `base` on, `count` a head.
  sim::Pointer key_block(const AttentionBlocks& blocks, Matrix matrix, sim::Pointer base, std::int64_t count,
                         std::int64_t head, std::int64_t block) const;
  int broadcast(Matrix matrix, std::int64_t item, const KeyStep& step, sim::Pointer wire);
  /// FP16 to FP32.
  void widen(sim::Pointer wire, sim::Pointer to, std::int64_t bytes);

  // --- Q: FP32 DDR -> SM. FP16 DDR -> AM, widened into the first tiles, -> GSM -> SM.
  void ask_for_queries(const RowBlock& block);
  void stage_queries();  // FP16: once nothing else will be in the first tiles
  void fetch_queries();  // FP16: once SM is free
  void wait_for_queries() { wait(m_q_channel); }

  // --- Products.
  struct Product {
    sim::Pointer x;  // SM
    std::int64_t x_pitch = 0;
    sim::Pointer w;  // AM
    std::int64_t w_pitch = 0;
    sim::Pointer y;  // AM
    std::int64_t y_pitch = 0;
    std::int64_t rows = 0, vectors = 0, k = 0;  // y: rows of `vectors` vectors
    bool accumulate = false;
  };
  void multiply(const Product& product);

  // --- Memory.
  void allocate_queries();
  void allocate_softmax();
  void allocate_tiles();

  // --- Tiles of scores of one pass.
  struct Tile {
    std::int64_t step = 0, column = 0;  // where in which block of keys
    std::int64_t keys = 0;              // that some row sees
  };
  /// The tiles of steps [first, end) that `block` sees; resident ones last. Nothing is known of their scores yet.
  void begin_pass(const RowBlock& block, std::int64_t first, std::int64_t end);
  void score(std::int64_t step, sim::Pointer kt);
  /// Makes weights of the pass's scores and sends them to GSM; m and l in `kept`. `first`: the first pass of the rows,
  /// else O is rescaled.
  void softmax(sim::Pointer kept, bool first, sim::Pointer o);
  /// O (+)= weights of a step times its V.
  void multiply_values(std::int64_t step, sim::Pointer v, sim::Pointer o, bool fresh);
  /// O /= l, and to DDR in its own type.
  void divide(sim::Pointer kept, sim::Pointer o);
  int store(sim::Pointer o, const RowBlock& block);

  /// Of a tile in GSM.
  sim::Pointer home(std::size_t tile) const;
  void mask(sim::Pointer tile, std::int64_t position, std::int64_t keys);
  void fill(sim::Pointer am, std::int64_t bytes, std::uint64_t value) {
    m_dsp.call(m_kernels.fill, {am, bytes, value});
  }

  sim::Dsp& m_dsp;
  const AttentionPlan& m_plan;
  const AttentionShape& m_shape;
  const Sizes m_sizes;
  const AttentionOperands m_operands;
  const Kernels& m_kernels;
  const Memory m_memory;
  const std::int64_t m_core, m_cores;
  const std::int64_t m_rounds;
  std::vector<KeyStep> m_steps;   // of the context
  const std::int64_t m_kt_pitch;  // of K^T in AM, FP32

  sim::Pointer m_q, m_weights[2];  // SM
  std::vector<sim::Pointer> m_tiles;
  sim::Pointer m_first, m_second, m_value, m_turn, m_lanes, m_q_wire;  // AM

 private:
  struct Chunk {
    std::size_t tile = 0;
    std::int64_t column = 0, keys = 0;
  };
  sim::Pointer slot(std::size_t tile) const;
  void send(std::size_t tile, int priority);
  void recall(std::size_t tile);
  void weigh(std::size_t tile);
  void ask_for_chunk(std::size_t chunk);
  void rows_call(const sim::Kernel& kernel, sim::Pointer kept);
  void free_tiles(std::int64_t bytes);

  int m_priority = k_usual;
  Channel m_q_channel, m_q_home_channel;
  std::int64_t m_q_rows = 0;  // of those asked for
  RowBlock m_block;
  std::int64_t m_block_rows = 0;
  std::vector<Tile> m_pass;
  std::size_t m_spilled = 0;              // tiles of the pass that do not stay in AM
  std::vector<Channel> m_sent, m_recall;  // by tile
  std::vector<Chunk> m_chunks;
  std::size_t m_chunk = 0;
  Channel m_chunk_channel[2];
};

void run_mt(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
            const Memory& memory, std::int64_t items);
void run_flash(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
               const Memory& memory, std::int64_t items);
void run_scores(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
                const Memory& memory, std::int64_t item);
void run_values(sim::Dsp& dsp, const AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
                const Memory& memory, std::int64_t item);
/// Rows of scores in DDR, masked and made weights in place.
StreamPlan plan_softmax_of_scores(const AttentionPlan& plan, const sim::MachineConfig& machine);
sim::DspProgram softmax_of_scores(sim::Cluster& cluster, const AttentionPlan& plan, const Kernels& kernels,
                                  const Memory& memory);

}  // namespace mtsim::kernels::attention
