// SPDX-License-Identifier: Apache-2.0
// Block sizes and memory of the three attentions.
//
//                 mt                               flash                          unfused
//   SM            Q [mr, d], weights 2 x [mr, kc] in all three; kc = 128, 64 or 32 keys
//   AM            2 blocks of K^T or V             1 of K^T, 1 of V               2 of K^T or V
//                 O [mr, d]                        2 x O [mr, d], m and l         O [mr, d]
//                 tiles of scores: as many as fit  those of a block of keys       2 or more, on their way to DDR
//                 what the softmax knows of each row in all three but unfused
//   GSM, a core   weights and what AM cannot hold of the scores of a pass         weights of a block of keys (flash)
//
// In FP16 a block arrives in FP16 and is widened: of the two blocks that mt and unfused have in AM, one becomes two of
// half the size to arrive in; flash lets it arrive where the scores will be. Q is widened in AM and reaches SM through
// GSM.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "kernels/attention/attention_program.h"
#include "kernels/library.h"
#include "kernels/tile_text.h"

namespace mtsim::kernels {

using attention::Sizes;

namespace attention {
namespace {

constexpr std::int64_t whole(std::int64_t bytes) { return round_up(bytes, k_block); }

}  // namespace

Sizes::Sizes(const AttentionPlan& plan) {
  const AttentionShape& shape = plan.shape;
  half = shape.dtype == DType::f16;
  bytes = bytes_of(shape.dtype);
  d = shape.head_dim;
  padded_d = round_up(d, k_vector_bytes / bytes);
  row = 4 * padded_d;
  kt = whole(plan.tiles.mc * d * 4);
  slot = whole(plan.tiles.mc * row);
  wire = whole(plan.tiles.mc * padded_d * bytes);
  tile = round_up(plan.tiles.mr * k_tile_pitch, k_wide_block);
  block_tiles = plan.tiles.mc / k_tile_keys;
  groups = ceil_div(plan.tiles.mr, k_rows_at_once);
  vectors = groups * k_rows_at_once * k_vector_bytes;
  kept = whole(groups * k_kept_bytes);
  o = whole(plan.tiles.mr * row);
  q = round_up(plan.tiles.mr * d * 4, k_wide_block);
  q_wire = round_up(plan.tiles.mr * d * bytes, k_wide_block / 4 * bytes);
  home = plan.homes * tile + (half ? q : 0);
  weights = round_up(plan.tiles.mr * plan.weight_columns * 4, 256);
  token_block = plan.tiles.mr / plan.share;
  score_row = round_up(shape.seq_k, k_key_unit);
  score_bytes = bytes_of(plan.choice.scores);
}

std::vector<KeyStep> key_steps(const AttentionPlan& plan) {
  const AttentionShape& shape = plan.shape;
  std::vector<KeyStep> steps;
  for (std::int64_t block = 0; block < shape.blocks(); ++block) {
    const std::int64_t start = block * shape.block(), end = std::min(shape.seq_k, start + shape.block());
    for (std::int64_t at = start; at < end; at += plan.tiles.mc)
      steps.push_back({block, at - start, std::min(plan.tiles.mc, end - at), at});
  }
  return steps;
}

/// The paper gives each core mr rows, so that the last cores of the last round have none; best spreads the rows.
RowBlock row_block(const AttentionPlan& plan, std::int64_t cores, std::int64_t item, std::int64_t round,
                   std::int64_t core) {
  const std::int64_t all = plan.shape.seq_q, index = round * cores + core, blocks = plan.rounds(cores) * cores;
  const bool paper = plan.choice.sequence == AttentionSequence::paper;
  const auto begin = [&](std::int64_t i) {
    return paper ? std::min(all, i * (plan.tiles.mr / plan.share)) : all * i / blocks;
  };
  return {item, begin(index), begin(index + 1) - begin(index)};
}

std::int64_t visible_keys(const AttentionShape& shape, const RowBlock& block) {
  if (!shape.causal) return shape.seq_k;
  return std::clamp<std::int64_t>(shape.seq_k - shape.seq_q + block.token + block.tokens, 1, shape.seq_k);
}

namespace {

constexpr std::int64_t k_max_tokens = std::int64_t{1} << 21;  // positions are exact in FP32, with a fraction

void require(bool condition, const std::string& message) {
  if (!condition) throw KernelError("attention: " + message);
}

void check_shape(const AttentionShape& s) {
  require(
      s.batch >= 1 && s.heads >= 1 && s.kv_heads >= 1 && s.seq_q >= 1 && s.seq_k >= 1 && s.kv_block >= 0,
      fmt::format("batch {}, heads {}, kv_heads {}, seq {}, context {}, kv_block {}: all at least 1 (kv_block 0: one "
                  "block)",
                  s.batch, s.heads, s.kv_heads, s.seq_q, s.seq_k, s.kv_block));
  require(s.heads % s.kv_heads == 0,
          fmt::format("{} heads cannot share {} kv_heads; kv_heads must divide heads", s.heads, s.kv_heads));
  require(s.head_dim >= 16 && s.head_dim <= 256 && s.head_dim % 16 == 0,
          fmt::format("head_dim {} is no multiple of 16 from 16 to 256", s.head_dim));
  require(s.blocks() == 1 || s.kv_block % k_key_unit == 0,
          fmt::format("kv_block {} is no multiple of {}", s.kv_block, k_key_unit));
  require(s.scale > 0 && std::isfinite(s.scale), fmt::format("scale {} must be above 0 and finite", s.scale));
  require(std::max(s.seq_q, s.seq_k) <= k_max_tokens,
          fmt::format("{} tokens; at most {}", std::max(s.seq_q, s.seq_k), k_max_tokens));
}

/// Query heads of a group that share one K and V and fit in mr rows.
std::int64_t heads_at_once(std::int64_t group, std::int64_t mr) {
  for (std::int64_t share = std::min(group, mr);; --share) {
    if (group % share == 0) return share;
  }
}

/// The first memory that is short.
std::optional<AttentionLimit> shortage(const AttentionPlan& plan, const sim::MachineConfig& machine) {
  for (const AttentionLimit& limit : {AttentionLimit{"SM", plan.sm_bytes, machine.core.sm_bytes},
                                      {"AM", plan.am_bytes, machine.core.am_bytes},
                                      {"GSM", plan.gsm_bytes, machine.cluster.gsm_bytes}}) {
    if (limit.needed > limit.available) return limit;
  }
  return std::nullopt;
}

/// What takes it.
std::string detail(const AttentionPlan& plan, const AttentionLimit& limit, const sim::MachineConfig& machine) {
  const Sizes s(plan);
  const auto [mr, mc, pass] = plan.tiles;
  if (limit.memory == "SM")
    return fmt::format("mr={} rows of Q take {}, two chunks of weights {}", mr, s.q, 2 * s.weights);
  if (limit.memory == "AM") {
    return fmt::format("two blocks of mc={} keys take {}, {} tiles of scores {}", mc,
                       plan.choice.variant == AttentionVariant::flash ? s.kt + s.slot : 2 * s.slot, plan.score_tiles,
                       plan.score_tiles * s.tile);
  }
  return fmt::format("weights of mr={} rows and {} blocks of mc={} keys on {} cores", mr, pass, mc,
                     machine.cluster.cores);
}

/// Memory of tiles that are all chosen.
void measure(AttentionPlan& plan, const sim::MachineConfig& machine) {
  const bool flash = plan.choice.variant == AttentionVariant::flash, mt = plan.choice.variant == AttentionVariant::mt;
  plan.weight_columns = k_tile_keys;
  const auto sm = [&] {
    const Sizes s(plan);
    return round_up(s.q, 256) + 2 * s.weights;
  };
  while (plan.weight_columns > k_lanes && sm() > machine.core.sm_bytes) plan.weight_columns /= 2;
  plan.sm_bytes = sm();

  const bool wires = !mt && !flash && plan.choice.scores == DType::f16;  // tiles of weights arrive in FP16
  plan.homes = mt || flash ? plan.tiles.pass * Sizes(plan).block_tiles : wires ? 2 : 0;
  const Sizes s(plan);
  const std::int64_t softmax = mt || flash ? 3 * s.vectors + k_turn_bytes : 0;
  const std::int64_t q_wire = s.half ? s.q_wire : 0;
  const std::int64_t fixed = (flash ? s.kt + s.slot : 2 * s.slot) + softmax + (flash ? 2 : 1) * (s.o + s.kept) +
                             whole(k_lanes_bytes) + q_wire + (wires ? s.tile : 0);
  const std::int64_t fit = std::max<std::int64_t>(0, machine.core.am_bytes - fixed) / s.tile;
  // All of them, or two to work on and the rest to stay; flash needs all. FP16 blocks of flash arrive in them.
  const std::int64_t all = mt ? plan.homes : s.block_tiles;
  plan.score_tiles = mt      ? std::clamp(fit, std::min<std::int64_t>(all, 2), all)
                     : flash ? all
                             : std::clamp<std::int64_t>(fit, 2, 4);
  if (s.half) plan.score_tiles = std::max(plan.score_tiles, ceil_div(s.q, s.tile));
  if (flash && s.half) plan.score_tiles = std::max(plan.score_tiles, ceil_div(s.wire, s.tile));
  plan.am_bytes = fixed + plan.score_tiles * s.tile;
  plan.gsm_bytes = machine.cluster.cores * s.home;
  if (plan.choice.variant == AttentionVariant::unfused)
    plan.scratch_bytes = plan.shape.seq_q * s.score_row * s.score_bytes;
  else if (flash)
    plan.scratch_bytes = plan.rounds(machine.cluster.cores) * machine.cluster.cores * (s.kept + s.o);
}

/// Heads that go together in mr rows.
void take_rows(AttentionPlan& plan, std::int64_t mr) {
  plan.share = plan.choice.variant == AttentionVariant::unfused ? 1 : heads_at_once(plan.shape.group(), mr);
  plan.items = plan.shape.batch * plan.shape.heads / plan.share;
}

/// The tiles that were not given: the longest blocks of keys of the most rows that fit, up to the usual ones; scores of
/// one block at a time, which stay in AM. The paper keeps as many as AM and GSM hold.
AttentionPlan with_tiles(AttentionPlan plan, const AttentionTiles& given, const sim::MachineConfig& machine) {
  constexpr std::int64_t k_usual_mr = 64, k_usual_mc = 512;
  const std::int64_t longest = std::min(k_usual_mc, round_up(plan.shape.block(), attention::k_tile_keys));
  const bool mt = plan.choice.variant == AttentionVariant::mt;
  std::optional<AttentionPlan> first;
  for (std::int64_t mr = given.mr > 0 ? given.mr : k_usual_mr; mr >= 1; mr = mr > 16 ? mr - 16 : mr / 2) {
    take_rows(plan, mr);
    for (std::int64_t mc = given.mc > 0 ? given.mc : longest; mc >= k_tile_keys; mc -= k_tile_keys) {
      plan.tiles = {mr, mc, 1};
      const auto steps = static_cast<std::int64_t>(key_steps(plan).size());
      if (mt && given.pass > 0) plan.tiles.pass = given.pass;
      measure(plan, machine);
      if (mt && given.pass == 0 && plan.choice.sequence == AttentionSequence::paper) {
        for (AttentionPlan more = plan; more.tiles.pass < steps;) {
          ++more.tiles.pass;
          measure(more, machine);
          if (shortage(more, machine)) break;
          plan = more;
        }
      }
      if (!shortage(plan, machine)) return plan;
      if (!first) first = plan;
      if (given.mc > 0) break;
    }
    if (given.mr > 0) break;
  }
  const AttentionLimit limit = *shortage(*first, machine);
  throw CapacityError({first->sm_bytes, first->am_bytes, first->gsm_bytes},
                      fmt::format("attention {}: needs {} bytes of {}, {} available ({}); use a smaller mr, mc{} or "
                                  "head_dim",
                                  to_string(plan.choice.variant), limit.needed, limit.memory, limit.available,
                                  detail(*first, limit, machine), mt ? ", pass" : ""));
}

/// What holds for any tiles.
void check(const AttentionShape& shape, const AttentionTiles& tiles, const AttentionChoice& choice) {
  check_shape(shape);
  if (tiles.mc % k_tile_keys != 0)
    throw KernelError(fmt::format("attention: mc={} is no multiple of {}", tiles.mc, k_tile_keys));
  if (choice.scores != DType::f32 && choice.variant != AttentionVariant::unfused)
    throw KernelError(fmt::format("attention {}: its scores stay on chip, in f32", to_string(choice.variant)));
  if (tiles.pass > 0 && choice.variant != AttentionVariant::mt)
    throw KernelError(fmt::format("attention {}: pass={} is of mt alone", to_string(choice.variant), tiles.pass));
}

}  // namespace
}  // namespace attention

std::string_view to_string(AttentionVariant variant) {
  switch (variant) {
    case AttentionVariant::mt: return "mt";
    case AttentionVariant::flash: return "flash";
    case AttentionVariant::unfused: return "unfused";
  }
  return "";
}

double AttentionShape::macs() const {
  double keys = static_cast<double>(seq_q) * static_cast<double>(seq_k);  // seen by all tokens
  for (std::int64_t token = 0; causal && token < std::min(seq_q, seq_k); ++token) keys -= static_cast<double>(token);
  // Tokens in front of the first key see none.
  if (causal && seq_q > seq_k) keys -= static_cast<double>(seq_q - seq_k) * static_cast<double>(seq_k);
  return 2.0 * static_cast<double>(batch * heads * head_dim) * keys;
}

std::int64_t AttentionPlan::rounds(std::int64_t cores) const {
  return ceil_div(shape.seq_q, cores * (tiles.mr / share));
}

AttentionTiles parse_attention_tiles(const std::string& text) {
  AttentionTiles tiles;
  const std::array keys{TileKey{"mr", &tiles.mr}, TileKey{"mc", &tiles.mc}, TileKey{"pass", &tiles.pass}};
  parse_tiles(text, keys);
  if (tiles.mc % attention::k_tile_keys != 0)
    throw KernelError(fmt::format("attention: mc={} is no multiple of {}", tiles.mc, attention::k_tile_keys));
  return tiles;
}

AttentionPlan plan_attention(const AttentionShape& shape, const AttentionTiles& tiles, const AttentionChoice& choice,
                             const sim::MachineConfig& machine) {
  attention::check(shape, tiles, choice);
  AttentionPlan plan;
  plan.shape = shape;
  plan.choice = choice;
  plan = attention::with_tiles(plan, tiles, machine);
  if (choice.variant == AttentionVariant::unfused) {
    const StreamPlan softmax = attention::plan_softmax_of_scores(plan, machine);
    plan.am_bytes = std::max(plan.am_bytes, softmax.am_bytes);
  }
  return plan;
}

TriedAttention try_plan_attention(const AttentionShape& shape, const AttentionTiles& tiles,
                                  const AttentionChoice& choice, const sim::MachineConfig& machine) {
  attention::check(shape, tiles, choice);
  TriedAttention tried;
  tried.plan.shape = shape;
  tried.plan.choice = choice;
  attention::take_rows(tried.plan, tiles.mr);
  tried.plan.tiles = {tiles.mr, tiles.mc, std::max<std::int64_t>(tiles.pass, 1)};
  attention::measure(tried.plan, machine);
  tried.limit = attention::shortage(tried.plan, machine);
  return tried;
}

AttentionTraffic attention_table_iii(const AttentionPlan& plan, std::int64_t cores) {
  const auto shares = static_cast<double>(plan.shape.group() / plan.share);  // of a KV head, each reads it
  switch (plan.choice.variant) {
    case AttentionVariant::flash: {
      const auto blocks = static_cast<double>(attention::key_steps(plan).size());
      return {blocks, 2 * blocks, shares, shares};
    }
    case AttentionVariant::mt: {
      const auto rounds = static_cast<double>(plan.rounds(cores)) * shares;
      return {1, 1, rounds, rounds};
    }
    case AttentionVariant::unfused: break;
  }
  throw KernelError("attention: Table III has no row for unfused");
}

}  // namespace mtsim::kernels
