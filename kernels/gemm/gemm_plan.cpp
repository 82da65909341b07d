// SPDX-License-Identifier: Apache-2.0
// Block sizes and dataflow of a GEMM; eqs. (4)-(8) of the paper for the small-M dataflow.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/gemm/gemm_limits.h"
#include "kernels/gemm/gemm_program.h"
#include "kernels/tile_text.h"

namespace mtsim::kernels {
namespace {

using gemm::ceil_div;
using gemm::check;
using gemm::floor_to;
using gemm::Format;
using gemm::plan_large_m;
using gemm::round_up;
using gemm::shrink;
using gemm::term;
using gemm::text;

/// M1 x N1 beside those of the microkernels written by hand are generated.
void check_microkernel(const GemmPlan& plan) {
  if (plan.has_hand_tile() || plan.weights == GemmWeights::out_in) return;
  const auto [m1, n1] = std::pair(plan.tiles.m1, plan.tiles.n1);
  const std::int64_t vector = gemm::k_vector_bytes / bytes_of(plan.dtype);
  if (n1 % vector != 0) {
    throw KernelError(
        fmt::format("{}: n1={} must be a multiple of {}, the columns of a vector", text(plan.shape), n1, vector));
  }
  if (m1 <= k_max_tile_rows && n1 / vector <= k_max_tile_vectors && gemm_tile_fits(gemm::main_tile(plan))) return;
  throw KernelError(
      fmt::format("{}: m1={} n1={} does not fit the registers: at most {} rows, {} vectors of a row and {} "
                  "of both together; use a smaller m1 or n1",
                  text(plan.shape), m1, n1, k_max_tile_rows, k_max_tile_vectors, k_max_tile_sums));
}

// What the small-M dataflow leaves no choice in.
struct RoundTile {
  std::string_view name;
  std::int64_t GemmTiles::*field;
};
constexpr RoundTile k_round_tiles[] = {{"m1", &GemmTiles::m1},
                                       {"n1", &GemmTiles::n1},
                                       {"x_buffers", &GemmTiles::x_buffers},
                                       {"w_buffers", &GemmTiles::w_buffers},
                                       {"y_buffers", &GemmTiles::y_buffers},
                                       {"y_tiles", &GemmTiles::y_tiles}};

/// The one of them that is asked for; nullptr if none is.
const RoundTile* round_tile(const GemmPlan& plan) {
  const GemmTiles none = GemmTiles::of(plan.dtype);
  const auto* asked = std::find_if(std::begin(k_round_tiles), std::end(k_round_tiles),
                                   [&](const RoundTile& t) { return plan.tiles.*t.field != none.*t.field; });
  return asked == std::end(k_round_tiles) ? nullptr : asked;
}

void check_shape_and_k(const GemmPlan& plan) {
  const GemmShape& shape = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype, plan.weights);
  if (shape.m < 1 || shape.n < 1 || shape.k < 1) {
    throw KernelError(fmt::format("{}: every dimension must be at least 1", text(shape)));
  }
  const auto check_k = [&](std::string_view name, std::int64_t value) {
    if (value >= format.k_least && value % format.k_unit == 0) return;
    throw KernelError(
        fmt::format("{}: {}={} must be a multiple of {} and at least {}: the {} microkernel takes {} k at a time",
                    text(shape), name, value, format.k_unit, format.k_least, to_string(format.dtype), format.k_unit));
  };
  check_k("k2", tiles.k2);
  if (plan.promotes()) {
    check_k("k_promote", tiles.k_promote);
    if (tiles.k_promote < 2 * format.k_least)
      throw KernelError(
          fmt::format("{}: k_promote={} must be at least {}", text(shape), tiles.k_promote, 2 * format.k_least));
  }
}

void check_tiles(const GemmPlan& plan) {
  const GemmShape& shape = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  check_microkernel(plan);
  if (tiles.n2 < tiles.n1 || tiles.n2 % tiles.n1 != 0) {
    throw KernelError(fmt::format("{}: n2={} must be a multiple of N1 = {}", text(shape), tiles.n2, tiles.n1));
  }
  const auto check_buffers = [&](std::string_view name, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value >= least && value <= most) return;
    throw KernelError(fmt::format("{}: {}={} must be {} or {}", text(shape), name, value, least, most));
  };
  check_buffers("x_buffers", tiles.x_buffers, 1, 2);
  check_buffers("w_buffers", tiles.w_buffers, 1, 2);
  if (tiles.y_buffers != 0) check_buffers("y_buffers", tiles.y_buffers, 2, 3);
  if (tiles.mg < 1 || tiles.kg < 1) {
    throw KernelError(fmt::format("{}: mg={} and kg={} must be positive", text(shape), tiles.mg, tiles.kg));
  }
}

GemmPlan plan_small_m(GemmPlan plan, const sim::MachineConfig& machine) {
  const GemmShape& shape = plan.shape;
  GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  gemm::check_channels(shape, "small-M", gemm::SmallMChannels::k_needed, machine);
  const std::int64_t cores = machine.cluster.cores;
  const std::int64_t share = ceil_div(ceil_div(shape.n, format.n1), cores) * format.n1;  // columns of one core at most
  tiles.mg = shape.m;
  tiles.k2 = std::min(tiles.k2, format.padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, share);

  plan.dataflow = GemmDataflow::small_m;
  plan.variant = GemmVariant::best;
  plan.m2 = shape.m;
  plan.y_buffers = 1;
  plan.y_stays = true;
  const std::int64_t rows = round_up(shape.m, k_gemm_m1);
  gemm::check_epilogue(plan, format.n1, "N1");
  const std::int64_t sm = machine.core.sm_bytes, am = machine.core.am_bytes - plan.epilogue_bytes;
  const auto m2 = fmt::format("M2={} ({} rows padded to {})", rows, shape.m, k_gemm_m1);

  // X in SM: all of K if that fits, else two buffers of as many columns as fit.
  const std::int64_t all_k =
      (ceil_div(shape.k, tiles.k2) - 1) * tiles.k2 + format.padded_k((shape.k - 1) % tiles.k2 + 1);
  const std::int64_t whole_x = b * rows * all_k;
  if (whole_x <= sm) {
    tiles.kg = shape.k;
    plan.sm_bytes = plan.x_bytes = whole_x;
  } else {
    const std::int64_t x2 = b * rows * tiles.k2;
    const std::string advice =
        shrink("k2", floor_to(sm / (2 * b * rows), format.k_unit), format.k_least, "m, or use the large-M dataflow");
    const auto x_sizes = fmt::format("M2 * K2 with {}, K2={}", m2, tiles.k2);
    check(shape, {"(4)", "SM", x2, sm}, term(1, b, x_sizes), advice);
    check(shape, {"(6)", "SM", 2 * x2, sm}, term(2, b, x_sizes), advice);
    tiles.kg = sm / (2 * x2) * tiles.k2;
    plan.sm_bytes = plan.x_bytes = 2 * b * rows * tiles.kg;
  }

  // W2 twice in AM, beside it as much of the core's share of Y as fits, in whole tiles.
  const std::int64_t w2 = b * tiles.k2 * tiles.n2;
  const std::int64_t y_tile = sum_b * rows * format.n1;
  const std::int64_t am_column = 2 * b * tiles.k2 + sum_b * rows;
  const std::string advice = shrink("n2", floor_to(am / am_column, format.n1), format.n1, "k2");
  const auto w_and_y = fmt::format("{}, K2={}, N2={}", m2, tiles.k2, tiles.n2);
  const std::int64_t y2 = y_tile * tiles.n2 / format.n1;
  check(shape, {"(5)", "AM", w2 + y2, am},
        fmt::format("{} + {} with {}", term(1, b, "K2 * N2"), term(1, sum_b, "M2 * N2"), w_and_y), advice);
  check(shape, {"(7)", "AM", 2 * w2 + y2, am},
        fmt::format("{} + {} (Y2 written once: one buffer) with {}", term(2, b, "K2 * N2"), term(1, sum_b, "M2 * N2"),
                    w_and_y),
        advice);
  plan.am_bytes = 2 * w2 + gemm::split_small_m(plan, machine).block_tiles * y_tile;
  gemm::place_epilogue(plan, machine.core.am_bytes);
  return plan;
}

/// X, W2 twice and Y2 share the AM.
GemmPlan plan_by_rows(GemmPlan plan, const sim::MachineConfig& machine) {
  const GemmShape& shape = plan.shape;
  GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype, plan.weights);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  gemm::check_channels(shape, "small-M", gemm::SmallMChannels::k_needed, machine);
  const std::int64_t share = ceil_div(ceil_div(shape.n, format.n1), machine.cluster.cores);  // tiles of a core at most
  tiles.mg = plan.m2 = shape.m;
  tiles.k2 = std::min(tiles.k2, format.padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, share * format.n1);
  plan.dataflow = GemmDataflow::small_m;
  plan.variant = GemmVariant::best;
  plan.y_buffers = 1;
  plan.y_stays = true;

  // What W2 leaves is for all of X and at least one round of Y2, or for two blocks of X and Y2, half of it each.
  const std::int64_t w2 = b * tiles.k2 * tiles.n2, y_tile = sum_b * shape.m * format.n1;
  const std::int64_t am = machine.core.am_bytes, fixed = 2 * w2 + gemm::k_dot_scratch_bytes;
  const std::int64_t round = tiles.n2 / format.n1 * y_tile;
  const std::int64_t whole_x = b * shape.m * round_up(shape.k, format.k_unit);
  if (whole_x + round <= am - fixed) {
    tiles.kg = shape.k;
    plan.x_bytes = whole_x;
  } else {
    const std::int64_t x2 = b * shape.m * tiles.k2;
    const std::int64_t y = std::max(round, std::min(share * y_tile, (am - fixed) / 2));
    tiles.kg = std::max<std::int64_t>(1, (am - fixed - y) / (2 * x2)) * tiles.k2;
    plan.x_bytes = 2 * b * shape.m * tiles.kg;
    check(shape, {"(7)", "AM", fixed + plan.x_bytes + round, am},
          fmt::format("{} + {} + {} with M2={}, K2={}, N2={}, W as [n, k]", term(2, b, "K2 * N2"),
                      term(2, b, "M2 * K2"), term(1, sum_b, "M2 * N2"), shape.m, tiles.k2, tiles.n2),
          "use a smaller k2, n2 or m");
  }
  plan.am_bytes = fixed + plan.x_bytes + gemm::split_small_m(plan, machine).block_tiles * y_tile;
  return plan;
}

// Which dataflow is faster, roughly: computing and DDR traffic overlap, the rendezvous of broadcasts does not. Large M
// broadcasts W step by step and spreads rows over the cores; small M broadcasts X, where that does not fit SM block by
// block, and spreads columns.
/// Of one core's calls for [rows, columns] of Y and all of K, N2 columns at a time.
double seconds_of_calls(std::int64_t rows, std::int64_t columns, const gemm::Cutter& cutter, const GemmPlan& plan,
                        const sim::MachineConfig& machine) {
  const std::int64_t n2 = plan.tiles.n2, rest = columns % n2;
  const std::int64_t cycles = (columns >= n2 ? columns / n2 * cutter.step_cycles(rows, n2) : 0) +
                              (rest > 0 ? cutter.step_cycles(rows, rest) : 0);
  return static_cast<double>(ceil_div(plan.shape.k, plan.tiles.k2) * cycles) / (machine.core.clock_ghz * 1e9);
}
double seconds_of_bytes(double elements, const GemmPlan& plan, const sim::MachineConfig& machine) {
  return elements * static_cast<double>(bytes_of(plan.dtype)) / (machine.ddr.bandwidth_gb_s * 1e9);
}
double seconds_of_broadcasts(std::int64_t count, const sim::MachineConfig& machine) {
  return static_cast<double>(count) * machine.dma.broadcast_rendezvous_us * 1e-6;
}

double estimate_large_m(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const auto [m, n, k] = plan.shape;
  const gemm::Cutter cutter(plan, machine);
  const auto seconds = [&](std::int64_t rows) {
    return seconds_of_calls(ceil_div(rows, machine.cluster.cores), n, cutter, plan, machine);
  };
  const std::int64_t mg = std::min(plan.tiles.mg, m);
  const std::int64_t full = m / mg, tail = m % mg, blocks = full + (tail > 0 ? 1 : 0);
  const double computing = static_cast<double>(full) * seconds(mg) + (tail > 0 ? seconds(tail) : 0);
  const auto w = static_cast<double>(blocks * n * k), x_and_y = static_cast<double>(m * (n + k));
  return std::max(computing, seconds_of_bytes(w * machine.dma.broadcast_factor + x_and_y, plan, machine)) +
         seconds_of_broadcasts(blocks * ceil_div(n, plan.tiles.n2) * ceil_div(k, plan.tiles.k2), machine);
}

double estimate_small_m(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const auto [m, n, k] = plan.shape;
  const gemm::SmallMSplit split = gemm::split_small_m(plan, machine);
  const gemm::Cutter cutter(plan, machine);
  const std::int64_t columns = ceil_div(split.tiles, machine.cluster.cores) * gemm_n1(plan.dtype);  // of a core
  const std::int64_t passes = split.x_buffers == 1 ? 1 : split.column_blocks;
  return std::max(seconds_of_calls(m, std::min(columns, n), cutter, plan, machine),
                  seconds_of_bytes(static_cast<double>(n * k + m * (n + k)), plan, machine)) +
         seconds_of_broadcasts(passes * split.x_blocks, machine);
}

std::optional<GemmPlan> plan_small_m_if_it_fits(GemmPlan plan, const sim::MachineConfig& machine) {
  const Format format = gemm::format(plan.dtype);
  const std::int64_t row = 2 * format.bytes * round_up(plan.shape.m, k_gemm_m1);  // X2 twice, a column
  plan.tiles.k2 = std::min(plan.tiles.k2, floor_to(machine.core.sm_bytes / row, format.k_unit));
  if (plan.tiles.k2 < format.k_least) return std::nullopt;
  try {
    return plan_small_m(plan, machine);
  } catch (const KernelError&) {
    return std::nullopt;
  }
}

GemmPlan plan_checked_w_stationary(const GemmPlan& plan, const sim::MachineConfig& machine) {
  if (plan.variant == GemmVariant::paper)
    throw KernelError(
        fmt::format("{}: the paper has no W-stationary sequence; use its best variant", text(plan.shape)));
  if (!std::holds_alternative<std::monostate>(plan.epilogue)) {
    throw KernelError(fmt::format("{}: the W-stationary dataflow has no epilogue; use the large-M or small-M dataflow",
                                  text(plan.shape)));
  }
  const GemmPlan complete = gemm::with_w_stationary_tiles(plan, machine);
  check_tiles(complete);
  return gemm::plan_w_stationary(complete, machine);
}

GemmPlan plan_fastest(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const std::optional<GemmPlan> small = plan_small_m_if_it_fits(plan, machine);
  if (small && estimate_small_m(*small, machine) < estimate_large_m(plan, machine)) return *small;
  return plan_large_m(plan, machine);
}

}  // namespace

namespace gemm {

SmallMSplit split_small_m(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype, plan.weights);
  const std::int64_t rows = round_up(plan.shape.m, format.m1);
  SmallMSplit split;
  split.tiles = ceil_div(plan.shape.n, format.n1);
  const std::int64_t share = ceil_div(split.tiles, machine.cluster.cores);
  const bool by_rows = plan.weights == GemmWeights::out_in;
  const std::int64_t free = machine.core.am_bytes - plan.epilogue_bytes - 2 * format.bytes * tiles.k2 * tiles.n2 -
                            (by_rows ? plan.x_bytes + gemm::k_dot_scratch_bytes : 0);
  split.block_tiles = std::min(share, free / (bytes_of(plan.sum_type()) * rows * format.n1));
  split.column_blocks = ceil_div(share, split.block_tiles);
  split.x_blocks = ceil_div(plan.shape.k, tiles.kg);
  split.x_buffers = split.x_blocks == 1 ? 1 : 2;
  split.x_pitch = plan.x_bytes / split.x_buffers / rows;
  return split;
}

}  // namespace gemm

GemmTiles GemmTiles::of(DType dtype, const GemmChoice& choice) {
  if (choice.weights == GemmWeights::out_in)
    return {.k2 = dtype == DType::f16 ? 1024 : 512, .n2 = 64, .m1 = 1, .n1 = 64};
  if (choice.dataflow == GemmDataflow::w_stationary)
    return {.mg = 0, .kg = 0, .n2 = 0, .k_promote = dtype == DType::f16 ? 128 : 0, .m1 = 0, .n1 = 0, .w_buffers = 0};
  if (dtype == DType::f32) return {};
  GemmTiles tiles{.mg = 1440, .kg = 2048, .k2 = 256, .n2 = 512, .k_promote = 128, .n1 = gemm_n1(dtype)};
  if (choice.sums == GemmSums::f32) {  // three tiles of FP32 sums leave less for W2
    tiles.kg = 2112;
    tiles.k2 = 192;
    tiles.k_promote = 96;
  }
  return tiles;
}

GemmTiles parse_gemm_tiles(const std::string& text, DType dtype, const GemmChoice& choice) {
  GemmTiles tiles = GemmTiles::of(dtype, choice);
  std::vector<TileKey> keys{{"mg", &tiles.mg}, {"kg", &tiles.kg}, {"k2", &tiles.k2}, {"n2", &tiles.n2}};
  if (choice.weights == GemmWeights::in_out) {
    for (const auto& [name, field] : k_round_tiles) keys.push_back({name, &(tiles.*field)});
    keys.push_back({"m2", &tiles.m2});
  }
  const bool promotes = dtype == DType::f16 && choice.sums != GemmSums::f16 && choice.weights == GemmWeights::in_out;
  keys.push_back({"k_promote", promotes ? &tiles.k_promote : nullptr,
                  "is about FP16 products that are summed in FP16 and added in FP32, and these are not"});
  parse_tiles(text, keys);
  return tiles;
}

namespace {

/// What is asked for, its tiles checked as far as no memory matters.
GemmPlan asked_plan(const GemmShape& shape, DType dtype, const GemmTiles& tiles, const GemmChoice& choice) {
  const bool by_rows = choice.weights == GemmWeights::out_in;
  if ((dtype == DType::f32 || by_rows) && choice.sums == GemmSums::f16) {
    throw KernelError(fmt::format("{}: FP16 sums need FP16 operands with W as [k, n]; here all are FP32", text(shape)));
  }
  const GemmPlan plan{.shape = shape,
                      .dtype = dtype,
                      .variant = choice.variant,
                      .sums = dtype == DType::f32 || by_rows ? GemmSums::f32 : choice.sums,
                      .weights = choice.weights,
                      .tiles = tiles,
                      .epilogue = choice.epilogue};
  check_shape_and_k(plan);
  if (choice.dataflow != GemmDataflow::w_stationary || by_rows)
    check_tiles(plan);  // else those it leaves open are chosen
  return plan;
}

}  // namespace

std::variant<GemmPlan, GemmLimit> try_plan_gemm(const GemmShape& shape, DType dtype, const GemmTiles& tiles,
                                                const GemmChoice& choice, const sim::MachineConfig& machine) {
  GemmPlan plan = asked_plan(shape, dtype, tiles, choice);
  const bool is_large_m = choice.dataflow == GemmDataflow::large_m;
  if (!is_large_m) check_tiles(plan);
  for (const GemmLimit& limit :
       is_large_m ? gemm::size_large_m(plan, machine) : gemm::size_w_stationary(plan, machine)) {
    if (limit.is_broken()) return limit;
  }
  return plan;
}

GemmPlan plan_gemm(const GemmShape& shape, DType dtype, const GemmTiles& tiles, const GemmChoice& choice,
                   const sim::MachineConfig& machine) {
  const GemmPlan plan = asked_plan(shape, dtype, tiles, choice);
  const bool by_rows = plan.weights == GemmWeights::out_in;
  if (by_rows) {
    if (choice.dataflow != GemmDataflow::automatic && choice.dataflow != GemmDataflow::small_m) {
      throw KernelError(fmt::format("{}: the {} dataflow takes W as [k, n]; transpose it, or use the small-M dataflow",
                                    text(shape),
                                    choice.dataflow == GemmDataflow::large_m ? "large-M" : "W-stationary"));
    }
    if (!std::holds_alternative<std::monostate>(choice.epilogue)) {
      throw KernelError(fmt::format("{}: an epilogue takes W as [k, n]; transpose it", text(shape)));
    }
    return plan_by_rows(plan, machine);
  }
  if (choice.dataflow == GemmDataflow::w_stationary) return plan_checked_w_stationary(plan, machine);
  if (tiles.m2 != 0) {
    throw KernelError(
        fmt::format("{}: m2={} belongs to the W-stationary dataflow; leave it out, or ask for w_stationary",
                    text(shape), tiles.m2));
  }
  if (choice.dataflow == GemmDataflow::large_m) return plan_large_m(plan, machine);
  const RoundTile* tile = round_tile(plan);
  if (choice.dataflow == GemmDataflow::automatic)
    return tile == nullptr ? plan_fastest(plan, machine) : plan_large_m(plan, machine);
  if (tile != nullptr) {
    throw KernelError(fmt::format("{}: {}={} belongs to the large-M dataflow; leave it out, or ask for large_m",
                                  text(shape), tile->name, plan.tiles.*tile->field));
  }
  return plan_small_m(plan, machine);
}

}  // namespace mtsim::kernels
