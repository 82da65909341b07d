// SPDX-License-Identifier: Apache-2.0
// The W-stationary dataflow's tiles, and its use of the memories: the conditions of eqs. (4)-(8) with a block of W in
// place of W2 and blocks of X that all cores share.
#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/gemm/gemm_limits.h"
#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {
namespace {

constexpr double k_unfit = 1e18;  // cycles or seconds

std::int64_t vector_of(const GemmPlan& plan) { return k_vector_bytes / bytes_of(plan.dtype); }

/// Columns of one core at most.
std::int64_t column_share(const GemmPlan& plan, const sim::MachineConfig& machine) {
  return ceil_div(ceil_div(plan.shape.n, vector_of(plan)), machine.cluster.cores) * vector_of(plan);
}

std::int64_t rounds_of(const GemmPlan& plan) {
  const GemmTiles& tiles = plan.tiles;
  const std::int64_t tail = plan.shape.m % tiles.mg;
  return plan.shape.m / tiles.mg * ceil_div(tiles.mg, tiles.m2) + ceil_div(tail, tiles.m2);
}

std::int64_t product_k(const GemmPlan& plan) {
  return plan.promotes() ? std::min(plan.tiles.k2, plan.tiles.k_promote) : plan.tiles.k2;
}

/// Cycles a row of X2 and k_call products take in tiles of `m1` rows that cover `vectors` vectors of W.
double cycles_of_row(const GemmPlan& plan, std::int64_t m1, std::int64_t n1, std::int64_t vectors,
                     const sim::MachineConfig& machine) {
  const std::int64_t v = std::max<std::int64_t>(1, n1 / vector_of(plan)), calls = ceil_div(vectors, v);
  const GemmTile tile{static_cast<int>(m1), static_cast<int>(v), plan.dtype, true, plan.promotes()};
  if (m1 > k_max_tile_rows || v > k_max_tile_vectors || !gemm_tile_fits(tile)) return k_unfit;
  const bool by_hand = m1 == k_gemm_m1 && n1 == gemm_n1(plan.dtype);
  const std::int64_t cycles = by_hand ? gemm_main_cycles(product_k(plan), plan.promotes())
                                      : gemm_tile_cycles(tile, product_k(plan), machine.pipeline);
  return static_cast<double>(calls * (cycles + machine.core.call_cycles + machine.core.loop_cycles)) /
         static_cast<double>(std::min(m1, plan.shape.m));
}

/// M1 x N1 that compute `vectors` vectors of W with the fewest cycles a row, where the plan leaves them open.
void choose_microkernel(GemmPlan& plan, std::int64_t vectors, const sim::MachineConfig& machine) {
  GemmTiles& tiles = plan.tiles;
  if (tiles.m1 > 0 && tiles.n1 > 0) return;
  const std::int64_t vector = vector_of(plan);
  double least = std::numeric_limits<double>::infinity();
  const auto [asked_m1, asked_n1] = std::pair(tiles.m1, tiles.n1);
  tiles.m1 = asked_m1 > 0 ? asked_m1 : k_gemm_m1;
  tiles.n1 = asked_n1 > 0 ? asked_n1 : gemm_n1(plan.dtype);
  for (int v = 1; v <= k_max_tile_vectors; ++v) {
    for (int m1 = 1; m1 <= k_max_tile_rows; ++m1) {
      if ((asked_m1 > 0 && m1 != asked_m1) || (asked_n1 > 0 && v * vector != asked_n1)) continue;
      const double cycles = cycles_of_row(plan, m1, v * vector, vectors, machine);
      if (cycles >= least) continue;
      least = cycles;
      tiles.m1 = m1;
      tiles.n1 = v * vector;
    }
  }
}

/// Kg, Mg and M2 where the plan leaves them open, for its N2, M1 x N1 and buffers.
void choose_blocks(GemmPlan& plan, const sim::MachineConfig& machine) {
  GemmTiles& tiles = plan.tiles;
  const GemmShape& shape = plan.shape;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  const std::int64_t k2 = std::min(tiles.k2, format.padded_k(shape.k));
  if (tiles.m2 == 0) {
    const std::int64_t rows = machine.core.sm_bytes / (tiles.x_buffers * b * k2);
    tiles.m2 = std::min(shape.m, std::max(tiles.m1, floor_to(rows, tiles.m1)));
  }
  if (tiles.kg == 0) {  // what Y2 leave of AM, cut into equal blocks
    const bool narrow = sum_b != b;
    const std::int64_t rows = round_up(round_up(tiles.m2, plan.row_unit()), narrow ? format.m1 : 1);
    const std::int64_t columns = narrow ? round_up(tiles.n2, format.n1) : tiles.n2;
    const std::int64_t buffers = tiles.y_buffers > 0 ? tiles.y_buffers : k_y_buffers;
    const bool one_sum = narrow && plan.sums == GemmSums::promoted;
    const std::int64_t y = rows * columns * (one_sum ? sum_b + (buffers - 1) * b : buffers * sum_b);
    const std::int64_t most =
        floor_to(std::max<std::int64_t>(0, machine.core.am_bytes - y) / (tiles.w_buffers * b * tiles.n2), k2);
    const std::int64_t blocks = ceil_div(shape.k, std::max(most, k2));
    tiles.kg = round_up(ceil_div(shape.k, blocks), k2);
  }
  if (tiles.mg == 0) {  // a few rounds: the first block comes in before anything starts
    constexpr std::int64_t k_rounds = 4;
    const std::int64_t most = floor_to(machine.cluster.gsm_bytes / (2 * b * tiles.kg), tiles.m2);
    tiles.mg = std::clamp(tiles.m2 * k_rounds, tiles.m2, std::max(most, tiles.m2));
  }
}

/// Seconds, roughly: computing, DDR and GSM overlap, the cores wait for a block of W that has one buffer.
double estimate(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const auto [m, n, k] = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  const std::int64_t passes = ceil_div(column_share(plan, machine), tiles.n2), k_blocks = ceil_div(k, tiles.kg);
  const double b = bytes_of(plan.dtype), between = bytes_of(plan.between_type());
  const auto x = static_cast<double>(passes * m * k) * b, w = static_cast<double>(k * n) * b;
  const auto y = static_cast<double>(m * n) * (b + 2 * between * static_cast<double>(k_blocks - 1));
  const double ddr = machine.ddr.bandwidth_gb_s * 1e9, gsm = machine.cluster.gsm_bandwidth_gb_s * 1e9;
  const double row = static_cast<double>(ceil_div(k, product_k(plan)) * passes) *
                     cycles_of_row(plan, tiles.m1, tiles.n1, tiles.n2 / vector_of(plan), machine);
  const double computing = static_cast<double>(m) * row / (machine.core.clock_ghz * 1e9);
  const double exposed = tiles.w_buffers > 1 ? w / static_cast<double>(passes * k_blocks) : w;
  return std::max({computing, (x + y + w - exposed) / ddr, x * static_cast<double>(machine.cluster.cores + 1) / gsm}) +
         exposed / ddr;
}

std::string m2_text(const GemmPlan& plan) {
  return fmt::format("M2={} (m2={} padded to {})", plan.x_rows, plan.tiles.m2, plan.row_unit());
}

}  // namespace

GemmPlan with_w_stationary_tiles(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const GemmTiles& asked = plan.tiles;
  const std::int64_t vector = vector_of(plan), share = column_share(plan, machine);
  std::optional<GemmPlan> best;
  double least = 0;
  const auto consider = [&](GemmPlan now) {
    choose_blocks(now, machine);
    GemmPlan sized = now;
    sized.tiles.kg = round_up(now.tiles.kg, now.tiles.k2);  // one that is asked for may be refused later
    const GemmLimits limits = size_w_stationary(sized, machine);
    const bool fits = std::none_of(limits.begin(), limits.end(), [](const GemmLimit& l) { return l.is_broken(); });
    const double seconds = fits ? estimate(now, machine) : k_unfit;
    if (best && seconds >= least) return;
    least = seconds;
    best = now;
  };
  // More passes read X more often and leave room for more of K. N2 comes in whole N1, so that few counts differ.
  std::int64_t before = 0;  // columns of the last count
  for (std::int64_t passes = 1; passes <= share / vector; ++passes) {
    const std::int64_t columns = asked.n2 > 0 ? std::min(asked.n2, share) : round_up(ceil_div(share, passes), vector);
    if (columns == before) continue;
    before = columns;
    GemmPlan now = plan;
    choose_microkernel(now, ceil_div(columns, vector), machine);
    if (asked.n2 == 0) now.tiles.n2 = round_up(columns, now.tiles.n1);
    for (std::int64_t w_buffers = 1; w_buffers <= 2; ++w_buffers) {
      now.tiles.w_buffers = asked.w_buffers > 0 ? asked.w_buffers : w_buffers;
      consider(now);
    }
    if (asked.n2 > 0 || (best->tiles.kg >= plan.shape.k && least < k_unfit)) break;
  }
  return *best;
}

WStationarySplit split_w_stationary(const GemmPlan& plan, const sim::MachineConfig& machine) {
  WStationarySplit split;
  split.vectors = ceil_div(plan.shape.n, vector_of(plan));
  split.share = column_share(plan, machine);
  split.column_passes = ceil_div(split.share, plan.tiles.n2);
  split.k_blocks = ceil_div(plan.shape.k, plan.tiles.kg);
  split.m_blocks = ceil_div(plan.shape.m, plan.tiles.mg);
  split.rounds = rounds_of(plan);
  split.gsm_blocks = std::min<std::int64_t>(2, split.k_blocks * split.m_blocks);
  split.x_stays = split.k_blocks * split.m_blocks <= split.gsm_blocks;
  return split;
}

GemmLimits size_w_stationary(GemmPlan& plan, const sim::MachineConfig& machine) {
  const GemmShape& shape = plan.shape;
  GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  check_channels(shape, "W-stationary", WStationaryChannels::k_needed, machine);
  tiles.mg = std::min(tiles.mg, shape.m);
  tiles.m2 = std::min(tiles.m2, tiles.mg);
  tiles.k2 = std::min(tiles.k2, format.padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, round_up(column_share(plan, machine), tiles.n1));
  if (tiles.kg >= shape.k) tiles.kg = round_up(shape.k, tiles.k2);
  check_kg(shape, tiles);

  plan.dataflow = GemmDataflow::w_stationary;
  plan.m2 = tiles.m2;
  set_padded_sizes(plan);
  const WStationarySplit split = split_w_stationary(plan, machine);
  if (split.column_passes * split.k_blocks == 1) tiles.w_buffers = 1;  // all of it is there from the start

  const std::int64_t x2 = b * plan.x_rows * tiles.k2;
  const std::int64_t w = b * tiles.kg * tiles.n2;
  const std::int64_t y2 = plan.sum_rows * plan.sum_columns;
  choose_y_buffers(plan, split.rounds, sum_b * y2, machine.core.am_bytes - tiles.w_buffers * w);
  plan.sm_bytes = plan.x_bytes = tiles.x_buffers * x2;
  plan.am_bytes = tiles.w_buffers * w + (plan.y_buffers * sum_b + plan.y_transfers * b) * y2;
  plan.gsm_bytes = split.gsm_blocks * b * tiles.mg * tiles.kg;
  if (plan.between_type() != plan.dtype && !plan.y_stays && split.k_blocks > 1)
    plan.scratch_bytes = sum_b * shape.m * round_up(shape.n, vector_of(plan));
  return {{{"(4)", "SM", x2, machine.core.sm_bytes},
           {"(6)", "SM", plan.sm_bytes, machine.core.sm_bytes},
           {"(5)", "AM", w + sum_b * y2, machine.core.am_bytes},
           {"(7)", "AM", plan.am_bytes, machine.core.am_bytes},
           {"(8)", "GSM", plan.gsm_bytes, machine.cluster.gsm_bytes}}};
}

GemmPlan plan_w_stationary(GemmPlan plan, const sim::MachineConfig& machine) {
  const GemmLimits limits = size_w_stationary(plan, machine);
  const GemmShape& shape = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  const std::int64_t b = bytes_of(plan.dtype), sum_b = bytes_of(plan.sum_type());
  const auto& [one_x, all_x, one_y, all_y, gsm] = limits;

  const std::string m2 = m2_text(plan);
  check_x(plan, one_x, all_x, m2, "m2");
  const std::int64_t y_bytes = all_y.needed - tiles.w_buffers * b * tiles.kg * tiles.n2;
  const std::string less_kg = shrink(
      "kg", floor_to((all_y.available - y_bytes) / (tiles.w_buffers * b * tiles.n2), tiles.k2), tiles.k2, "n2 or m2");
  const auto w_and_y = fmt::format("{}, Kg={}, N2={}", m2, tiles.kg, tiles.n2);
  check(shape, one_y, fmt::format("{} + {} with {}", term(1, b, "Kg * N2"), term(1, sum_b, "M2 * N2"), w_and_y),
        less_kg);
  check(shape, all_y, y_formula(plan, "Kg * N2", w_and_y), less_kg);
  const std::int64_t blocks = split_w_stationary(plan, machine).gsm_blocks;
  check(shape, gsm, fmt::format("{} with Kg={}, Mg={}", term(blocks, b, "Kg * Mg"), tiles.kg, tiles.mg),
        shrink("mg", gsm.available / (blocks * b * tiles.kg), 1, "kg"));
  return plan;
}

}  // namespace mtsim::kernels::gemm
