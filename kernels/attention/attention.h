// SPDX-License-Identifier: Apache-2.0
// O = softmax(scale Q K^T) V on one cluster, head by head, three ways (paper, III-C2, Fig. 8 and Table III):
//
//   unfused  three launches a head: scores to DDR, softmax on them there, weights times V
//   flash    blocks of K and V stay in AM, rows of Q and of the unfinished O pass by (online softmax)
//   mt       rows of Q stay in SM and of O in AM, blocks of K^T and V pass by, broadcast to all cores
//
// All three work in FP32; FP16 operands are widened on their way in, and O is rounded once, on its way out.
//
// A row whose keys are all masked gives 0. A score that is NaN or +infinity makes its row NaN, -infinity counts for
// nothing. Masked keys count for nothing either, but where V is infinite or NaN at one, rows that mask it may show it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

enum class AttentionVariant : std::uint8_t { mt, flash, unfused };
/// best: written to be fast. paper: the sequence of the paper's text where it says one (attention_paper.s,
/// attention_plan.cpp); unfused has one sequence and two softmax.
enum class AttentionSequence : std::uint8_t { best, paper };

std::string_view to_string(AttentionVariant variant);

struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t heads = 1;     // of Q
  std::int64_t kv_heads = 1;  // of K and V; divides heads: neighbouring query heads share one
  std::int64_t seq_q = 0;     // tokens of Q
  std::int64_t seq_k = 0;     // of K and V: the context
  std::int64_t head_dim = 0;  // a multiple of 16, at most 256
  bool causal = false;        // token i of Q sees the keys up to seq_k - seq_q + i
  DType dtype = DType::f32;   // of all four operands in DDR
  float scale = 1;            // above 0, finite
  std::int64_t kv_block = 0;  // positions of a block of the cache, a multiple of 4; 0: the context is one

  std::int64_t block() const { return kv_block == 0 ? seq_k : kv_block; }
  std::int64_t blocks() const { return (seq_k + block() - 1) / block(); }  // of a KV head
  std::int64_t group() const { return heads / kv_heads; }
  /// Multiply-accumulates of the two products, without those that a causal mask hides.
  double macs() const;
  // Elements.
  std::int64_t q_elements() const { return batch * seq_q * heads * head_dim; }
  std::int64_t kv_elements() const { return batch * kv_heads * blocks() * block() * head_dim; }  // of K^T, and of V
};

struct AttentionChoice {
  AttentionVariant variant = AttentionVariant::mt;
  AttentionSequence sequence = AttentionSequence::best;
  DType scores = DType::f32;  // unfused: of scores and weights in DDR
};

/// Block sizes; 0 is chosen for the shape.
struct AttentionTiles {
  std::int64_t mr = 0;    // rows of Q of one core (a row is a token of one head)
  std::int64_t mc = 0;    // keys of a block of K^T and V in AM; a multiple of 128
  std::int64_t pass = 0;  // mt: blocks of keys whose scores are kept at a time, in AM and GSM
};
/// "mr=64,mc=512" over the defaults. Throws KernelError.
AttentionTiles parse_attention_tiles(const std::string& text);

/// What the plan rests on, and what it takes.
struct AttentionPlan {
  AttentionShape shape;
  AttentionChoice choice;
  AttentionTiles tiles;             // none is 0 any more
  std::int64_t share = 1;           // query heads that read one K and V together
  std::int64_t items = 0;           // (batch, share of a KV head): done one after the other
  std::int64_t weight_columns = 0;  // keys of a chunk of weights in SM
  std::int64_t score_tiles = 0;     // tiles of [mr, 128] scores in AM
  std::int64_t homes = 0;           // of them in GSM, a core
  std::int64_t sm_bytes = 0, am_bytes = 0, gsm_bytes = 0;
  std::int64_t scratch_bytes = 0;  // DDR beyond the operands: scores (unfused), unfinished O (flash)

  std::int64_t rounds(std::int64_t cores) const;  // of cores * mr rows in one item
};

/// A memory that is short of what a plan takes.
struct AttentionLimit {
  std::string_view memory;                 // "SM"
  std::int64_t needed = 0, available = 0;  // bytes
};

/// Throws CapacityError for memory that is short, with the bytes, KernelError for a shape that is none.
AttentionPlan plan_attention(const AttentionShape& shape, const AttentionTiles& tiles, const AttentionChoice& choice,
                             const sim::MachineConfig& machine);

/// Blocks of K^T and V that each lie in a place of their own, of all KV heads together: what a paged cache has.
struct AttentionBlocks {
  std::vector<sim::Pointer> kt;  // of each block [kv_heads, head_dim, block]
  std::vector<sim::Pointer> v;   // of each block [kv_heads, block, head_dim]
};

/// As plan_attention with all tiles given (pass of mt alone), without a message for what does not fit, for searches:
/// the plan, which then may take more than there is, and the first memory that is short.
struct TriedAttention {
  AttentionPlan plan;
  std::optional<AttentionLimit> limit;
};
TriedAttention try_plan_attention(const AttentionShape& shape, const AttentionTiles& tiles,
                                  const AttentionChoice& choice, const sim::MachineConfig& machine);

/// In cluster DDR, row-major. What a linear layer leaves and takes (Q, O), what the cache holds (K^T, V).
struct AttentionOperands {
  sim::Pointer q;               // [batch, seq_q, heads, head_dim]
  sim::Pointer kt;              // [batch, kv_heads, blocks, head_dim, block]
  sim::Pointer v;               // [batch, kv_heads, blocks, block, head_dim]
  sim::Pointer o;               // [batch, seq_q, heads, head_dim], written
  AttentionBlocks blocks = {};  // batch 1: instead of kt and v, when there are any
};

/// The DSP programs, to be launched one after the other on all cores: one, or three for each item (unfused). Of the
/// first `items` items alone when that is above 0.
std::vector<sim::DspProgram> attention_programs(sim::Cluster& cluster, const AttentionPlan& plan,
                                                const AttentionOperands& operands, std::int64_t items = 0);

/// Decode: one token of each request against a cache of its own length, in one launch. An item is a KV head of a
/// request with all query heads that share it; each core has items of its own, and loads their K^T and V itself.
struct AttentionCache {         // of one request, in cluster DDR; blocks of AttentionShape::block() positions
  std::int64_t length = 0;      // positions
  sim::Pointer kt;              // [kv_heads, blocks, head_dim, block]
  sim::Pointer v;               // [kv_heads, blocks, block, head_dim]
  AttentionBlocks blocks = {};  // instead of kt and v, when there are any
};
/// `shape`: batch is the number of requests, seq_q 1, seq_k the longest cache; kv_block must be given where lengths
/// differ. Of the tiles mc alone is anybody's choice. Throws as plan_attention does.
AttentionPlan plan_attention_decode(const AttentionShape& shape, const AttentionTiles& tiles,
                                    const sim::MachineConfig& machine);
/// q and o [requests, heads, head_dim]. Items are dealt to cores by length, the longest first to whoever has least.
sim::DspProgram attention_decode(sim::Cluster& cluster, const AttentionPlan& plan, sim::Pointer q, sim::Pointer o,
                                 const std::vector<AttentionCache>& caches);

/// How often each operand is moved: bytes over the bytes of the matrix of all items, as Table III counts.
struct AttentionTraffic {
  double q = 0, o = 0, k = 0, v = 0;
};
/// Table III's expressions with what does not divide rounded up. Throws KernelError for unfused, which it leaves out.
AttentionTraffic attention_table_iii(const AttentionPlan& plan, std::int64_t cores);

}  // namespace mtsim::kernels
