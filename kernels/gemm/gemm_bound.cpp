// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_bound.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels {
namespace {

using gemm::ceil_div;

/// `full` parts of `size` and one of `rest`.
struct Parts {
  std::int64_t size, full, rest;
  Parts(std::int64_t all, std::int64_t part) : size(part), full(all / part), rest(all % part) {}
  std::int64_t count() const { return full + (rest > 0 ? 1 : 0); }

  /// visit(size, how many) for each kind there is.
  template <typename Visit>
  void each(const Visit& visit) const {
    if (full > 0) visit(size, full);
    if (rest > 0) visit(rest, std::int64_t{1});
  }
};

}  // namespace

GemmBounds::GemmBounds(const sim::MachineConfig& machine)
    : m_machine(machine),
      m_transfer_s(static_cast<double>(machine.core.dma_issue_cycles + machine.core.dma_wait_cycles) /
                   (machine.core.clock_ghz * 1e9)) {
  for (const auto& [index, mnemonic] : {std::pair(0, isa::Mnemonic::VFMULAS32), {1, isa::Mnemonic::VFMULAH16}})
    m_multipliers[index] = std::popcount(machine.pipeline.units_of(isa::row(mnemonic)));
}

/// A microkernel of `rows` x `columns`, the jump into it and the loop around it included, for all k of a k-step.
double GemmBounds::tile_cycles(const GemmPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t k) const {
  const auto key = std::tuple(rows, columns, k, plan.tiles.k2, plan.promotes(), plan.dtype);
  const auto [known, is_new] = m_tiles.try_emplace(key);
  if (!is_new) return known->second;
  const bool is_hand = rows == k_gemm_m1 && columns == gemm_n1(plan.dtype);
  const std::int64_t vector = std::int64_t{16} * lanes_per_word(plan.dtype);
  const GemmTile tile{static_cast<int>(rows), static_cast<int>(ceil_div(columns, vector)), plan.dtype, true,
                      plan.promotes()};
  const Parts calls(k, plan.promotes() ? std::min(plan.tiles.k_promote, plan.tiles.k2) : plan.tiles.k2);
  calls.each([&](std::int64_t part, std::int64_t count) {
    const std::int64_t cycles =
        is_hand ? gemm_main_cycles(part, plan.promotes()) : gemm_tile_least_cycles(tile, part, m_machine.pipeline);
    known->second += static_cast<double>(count * (cycles + m_machine.core.call_cycles + m_machine.core.loop_cycles));
  });
  return known->second;
}

/// A core's [rows, columns] of a k-step. What is left beside whole tiles is a tile of that size; of the plan whose
/// tiles are the cutter's to choose its products alone.
double GemmBounds::step_seconds(const GemmPlan& plan, std::int64_t rows, std::int64_t columns, std::int64_t k) const {
  const std::int64_t m1 = plan.tiles.m1, n1 = plan.tiles.n1;
  const Parts strips(rows, m1), blocks(columns, n1);
  double cycles = static_cast<double>(strips.full * blocks.full) * tile_cycles(plan, m1, n1, k);
  if (plan.has_hand_tile()) {
    const double left = static_cast<double>(rows * columns) - static_cast<double>(strips.full * blocks.full * m1 * n1);
    const double products = 16.0 * lanes_per_word(plan.dtype) * m_multipliers[plan.dtype == DType::f16 ? 1 : 0];
    cycles += left * static_cast<double>(k) / products;
  } else {
    if (blocks.rest > 0) cycles += static_cast<double>(strips.full) * tile_cycles(plan, m1, blocks.rest, k);
    if (strips.rest > 0) cycles += static_cast<double>(blocks.full) * tile_cycles(plan, strips.rest, n1, k);
    if (strips.rest > 0 && blocks.rest > 0) cycles += tile_cycles(plan, strips.rest, blocks.rest, k);
  }
  return cycles / (m_machine.core.clock_ghz * 1e9);
}

double GemmBounds::of(const GemmPlan& plan) const {
  return m_machine.cluster.launch_us * 1e-6 +
         (plan.dataflow == GemmDataflow::w_stationary ? of_w_stationary(plan) : of_large_m(plan));
}

double GemmBounds::of_large_m(const GemmPlan& plan) const {
  const GemmShape& shape = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  const double b = static_cast<double>(bytes_of(plan.dtype));
  const double ddr = m_machine.ddr.bandwidth_gb_s * 1e9, gsm = m_machine.cluster.gsm_bandwidth_gb_s * 1e9;
  const double port = m_machine.cluster.port_bandwidth_gb_s * 1e9, start = m_machine.dma.start_us * 1e-6;
  const double rendezvous = m_machine.dma.broadcast_rendezvous_us * 1e-6, factor = m_machine.dma.broadcast_factor;
  const std::int64_t cores = m_machine.cluster.cores;
  const Parts m_blocks(shape.m, tiles.mg), k_blocks(shape.k, tiles.kg), rounds(shape.n, tiles.n2);

  const double row = m_machine.ddr.row_cost_ns * 1e-9;
  double ddr_s = 0, gsm_s = 0;  // all bytes at full bandwidth
  double steps_total = 0;
  /// One k-step of a round: everything but what Y2 adds to its DDR time.
  struct Step {
    std::int64_t count;
    double core, ddr;
  };
  const auto round = [&](std::int64_t m, std::int64_t n,
                         const std::array<std::pair<std::int64_t, std::int64_t>, 2>& steps, double y_bytes, int y_moves,
                         double count) {
    const std::int64_t rows = ceil_div(m, cores);
    const std::int64_t all = steps[0].second + steps[1].second;
    const std::int64_t parts = tiles.y_tiles > 0 ? std::min(tiles.y_tiles, all) : all;
    std::int64_t moving = parts;                 // steps that move Y2, the first ones
    const double row_s = n < shape.n ? row : 0;  // whole rows follow each other
    const double y_all = y_bytes / ddr + static_cast<double>(y_moves * m) * row_s;
    const double y_seconds = y_all / static_cast<double>(parts);
    double seconds = 0;
    for (const auto& [k, how_many] : steps) {
      if (how_many == 0) continue;
      const double computing = step_seconds(plan, rows, n, k);
      const double w = factor * (static_cast<double>(k * n) * b / ddr + static_cast<double>(k) * row_s);
      const double x = static_cast<double>(rows * k) * b;
      double core = computing + rendezvous + 2 * m_transfer_s;  // X2 and W2
      if (tiles.w_buffers == 1) core += start + w;
      if (tiles.x_buffers == 1) core += start + std::max(x * static_cast<double>(std::min(cores, m)) / gsm, x / port);
      const std::int64_t with_y = std::min(moving, how_many);
      moving -= with_y;
      seconds += static_cast<double>(with_y) * std::max(core, w + y_seconds) +
                 static_cast<double>(how_many - with_y) * std::max(core, w);
      const double all_of_them = count * static_cast<double>(how_many);
      ddr_s += all_of_them * w;
      gsm_s += all_of_them * static_cast<double>(m * k) * b / gsm;
    }
    ddr_s += count * y_all;
    steps_total += count * seconds;
  };
  const auto steps_of = [&](std::int64_t k) {
    const Parts steps(k, tiles.k2);
    return std::array<std::pair<std::int64_t, std::int64_t>, 2>{
        {{tiles.k2, steps.full}, {steps.rest, steps.rest > 0 ? 1 : 0}}};
  };
  const auto whole_block = steps_of(tiles.kg), rest_block = steps_of(k_blocks.rest);
  const double y_element = static_cast<double>(bytes_of(plan.between_type()));
  m_blocks.each([&](std::int64_t m, std::int64_t m_count) {
    rounds.each([&](std::int64_t n, std::int64_t n_count) {
      const double y = static_cast<double>(m * n), times = static_cast<double>(m_count * n_count);
      const std::int64_t all = k_blocks.count();
      const auto& last = k_blocks.rest > 0 ? rest_block : whole_block;
      if (all == 1 || plan.y_stays) {  // Y2 leaves once
        if (all > 1) round(m, n, whole_block, 0, 0, times * static_cast<double>(all - 1));
        round(m, n, last, y * b, 1, times);
        return;
      }
      round(m, n, whole_block, y * y_element, 1, times);
      if (all > 2) round(m, n, whole_block, 2 * y * y_element, 2, times * static_cast<double>(all - 2));
      round(m, n, last, y * (y_element + b), 2, times);
    });
  });
  // The last round's Y2 leaves when all steps are over, strip by strip.
  const std::int64_t first_m = std::min(shape.m, tiles.mg), first_n = std::min(shape.n, tiles.n2);
  steps_total -= static_cast<double>(first_m * first_n) * b / ddr + static_cast<double>(first_m) * row;
  // Before the first step its X2 goes DDR -> GSM -> SM and its W2 to AM; the paper's sequence needs all of Xg.
  const std::int64_t first_k = std::min(shape.k, tiles.k2);
  const std::int64_t first_x = plan.variant == GemmVariant::paper ? std::min(shape.k, tiles.kg) : first_k;
  const double fill_bytes =
      b * (static_cast<double>(first_m * first_x) + factor * static_cast<double>(first_k * first_n));
  // X comes in chunks of a k-step, each a row of X a row; whole rows follow each other.
  const auto x_rows_of = [&](std::int64_t rows, std::int64_t steps) {
    return tiles.k2 < shape.k ? static_cast<double>(rows * steps) : 0;
  };
  const double fill_rows =
      x_rows_of(first_m, ceil_div(first_x, tiles.k2)) + (first_n < shape.n ? factor * static_cast<double>(first_k) : 0);
  const std::int64_t all_steps = k_blocks.full * ceil_div(tiles.kg, tiles.k2) + ceil_div(k_blocks.rest, tiles.k2);
  const double x_s = static_cast<double>(shape.m * shape.k) * b / ddr + x_rows_of(shape.m, all_steps) * row;
  const double x_gsm_s = static_cast<double>(shape.m * shape.k) * b / gsm;
  return std::max(
      {rendezvous + 2 * start + fill_bytes / ddr + fill_rows * row + steps_total, ddr_s + x_s, gsm_s + x_gsm_s});
}

/// Steps as the slower of computing and what Y2 moves meanwhile; a block of W that has one buffer comes in behind two
/// rounds at most.
double GemmBounds::of_w_stationary(const GemmPlan& plan) const {
  const GemmShape& shape = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  const gemm::WStationarySplit split = gemm::split_w_stationary(plan, m_machine);
  const double b = static_cast<double>(bytes_of(plan.dtype));
  const double between = static_cast<double>(bytes_of(plan.between_type()));
  const double ddr = m_machine.ddr.bandwidth_gb_s * 1e9, gsm = m_machine.cluster.gsm_bandwidth_gb_s * 1e9;
  const double port = m_machine.cluster.port_bandwidth_gb_s * 1e9, start = m_machine.dma.start_us * 1e-6;
  const auto cores = static_cast<double>(m_machine.cluster.cores);
  const Parts passes(split.share, tiles.n2), k_blocks(shape.k, tiles.kg), rounds(shape.m, tiles.m2);

  const double row = m_machine.ddr.row_cost_ns * 1e-9;
  // Of all cores together: their columns, and the pieces of a row they are.
  const auto all_columns = [&](std::int64_t columns) {
    return std::min(static_cast<double>(columns) * cores, static_cast<double>(shape.n));
  };
  const auto pieces = [&](std::int64_t columns) { return all_columns(columns) / static_cast<double>(columns); };
  double gsm_s = 0, y_rows = 0, w_rows = 0;
  double all_rounds = 0;
  const auto round = [&](std::int64_t rows, std::int64_t columns, std::int64_t k, double y_elements, int y_moves,
                         double count) {
    const double moved_rows = y_moves * static_cast<double>(rows) * pieces(columns);
    const double y = static_cast<double>(rows) * all_columns(columns) * y_elements / ddr + moved_rows * row;
    y_rows += count * moved_rows;
    const Parts steps(k, tiles.k2);
    const std::int64_t parts = tiles.y_tiles > 0 ? std::min(tiles.y_tiles, steps.count()) : steps.count();
    std::int64_t moving = parts;  // steps that move Y2, the first ones
    double seconds = 0;
    steps.each([&](std::int64_t part, std::int64_t how_many) {
      const double computing = step_seconds(plan, rows, columns, part);
      const double x = static_cast<double>(rows * part) * b;
      const double core =
          computing + m_transfer_s + (tiles.x_buffers == 1 ? start + std::max(x * cores / gsm, x / port) : 0);
      const std::int64_t with_y = std::min(moving, how_many);
      moving -= with_y;
      seconds += static_cast<double>(with_y) * std::max(core, y / static_cast<double>(parts)) +
                 static_cast<double>(how_many - with_y) * core;
      gsm_s += count * static_cast<double>(how_many) * x * cores / gsm;
    });
    all_rounds += count * seconds;
    return seconds;
  };
  double exposed = 0, first_round = 0;
  passes.each([&](std::int64_t columns, std::int64_t p_count) {
    double longest = 0;
    rounds.each([&](std::int64_t rows, std::int64_t m_count) {
      for (std::int64_t k = 0; k < k_blocks.count(); ++k) {
        const bool last = k + 1 == k_blocks.count(), moves = !plan.y_stays;
        const double y = (moves && k > 0 ? between : 0) + (last ? b : moves ? between : 0);
        const int y_moves = (moves && k > 0 ? 1 : 0) + (last || moves ? 1 : 0);
        const std::int64_t size = k < k_blocks.full ? tiles.kg : k_blocks.rest;
        const double seconds = round(rows, columns, size, y, y_moves, static_cast<double>(m_count * p_count));
        longest = std::max(longest, seconds);
        if (first_round == 0) first_round = seconds;
      }
    });
    const double w =
        static_cast<double>(std::min(tiles.kg, shape.k)) * (all_columns(columns) * b / ddr + pieces(columns) * row);
    w_rows += static_cast<double>(p_count * shape.k) * pieces(columns);
    if (tiles.w_buffers == 1)
      exposed += static_cast<double>(p_count * k_blocks.count() - 1) * std::max(0.0, w - 2 * longest);
  });
  // The last Y2 leaves when all is computed.
  const auto last_rows = static_cast<double>(std::min(tiles.m2, shape.m));
  all_rounds -= std::min(all_rounds, last_rows * (static_cast<double>(shape.n) * b / ddr + pieces(tiles.n2) * row));
  const std::int64_t x_times = split.x_stays ? 1 : split.column_passes;  // X is read
  const double x_bytes = static_cast<double>(shape.m * shape.k * x_times) * b;
  // Blocks of X are rows of Kg; whole rows follow each other.
  const auto x_rows_of = [&](std::int64_t rows) { return tiles.kg < shape.k ? static_cast<double>(rows) : 0; };
  const double x_rows = x_rows_of(shape.m * split.k_blocks * x_times);
  const double w_bytes = static_cast<double>(shape.k * shape.n) * b, y_bytes = static_cast<double>(shape.m * shape.n);
  gsm_s += x_bytes / gsm;
  const double ddr_s =
      (x_bytes + w_bytes + y_bytes * (b + (plan.y_stays ? 0 : 2 * between * static_cast<double>(split.k_blocks - 1)))) /
          ddr +
      (x_rows + y_rows + w_rows) * row;
  const std::int64_t first_rows = std::min(tiles.mg, shape.m);
  const double first =
      static_cast<double>(first_rows * std::min(tiles.kg, shape.k)) * b / ddr + x_rows_of(first_rows) * row;
  const double barriers =
      m_machine.cluster.barrier_us * 1e-6 * static_cast<double>(split.column_passes * split.k_blocks * split.m_blocks);
  // The first round of all does not end before its W is there.
  const double first_w = static_cast<double>(std::min(tiles.kg, shape.k)) * all_columns(tiles.n2) * b / ddr;
  const double behind_first = std::max(all_rounds, first_w + all_rounds - first_round);
  return std::max({2 * start + first + behind_first + exposed + barriers, ddr_s, gsm_s});
}

}  // namespace mtsim::kernels
