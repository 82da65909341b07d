// SPDX-License-Identifier: Apache-2.0
// Block sizes and dataflow of a GEMM: eqs. (4)-(8) of the paper in real bytes, padding included.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "kernels/gemm/gemm_program.h"
#include "kernels/tile_text.h"

namespace mtsim::kernels {
namespace {

using gemm::ceil_div;
using gemm::Format;
using gemm::round_up;

constexpr std::int64_t k_y_buffers = 3;    // coming in, being computed, going out (Fig. 7)
constexpr std::int64_t k_stay_rounds = 2;  // so few rounds leave no time to move Y2 out and in again

std::string text(const GemmShape& shape) { return fmt::format("gemm m={} n={} k={}", shape.m, shape.n, shape.k); }

/// One capacity condition: `needed` bytes of a memory, and which tile to shrink to what when it is broken.
struct Capacity {
  std::string_view equation;  // "(6)"
  std::string formula;        // with the numbers
  std::string_view memory;    // "SM"
  std::int64_t needed = 0;
  std::int64_t available = 0;
  std::string advice;
};

void check(const GemmShape& shape, const Capacity& capacity) {
  if (capacity.needed <= capacity.available) return;
  throw KernelError(fmt::format("{}: eq. {}: {} needs {} bytes of {}, {} available; {}", text(shape), capacity.equation,
                                capacity.formula, capacity.needed, capacity.memory, capacity.available,
                                capacity.advice));
}

/// "use k2=196 or less", or what else to shrink when not even the smallest value fits.
std::string shrink(std::string_view tile, std::int64_t largest, std::int64_t smallest, std::string_view otherwise) {
  if (largest >= smallest) return fmt::format("use {}={} or less", tile, largest);
  return fmt::format("no {} fits, shrink {}", tile, otherwise);
}

std::int64_t floor_to(std::int64_t value, std::int64_t unit) { return value / unit * unit; }

void check_tiles(const GemmPlan& plan) {
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
  if (tiles.n2 < format.n1 || tiles.n2 % format.n1 != 0) {
    throw KernelError(fmt::format("{}: n2={} must be a multiple of N1 = {}", text(shape), tiles.n2, format.n1));
  }
  if (tiles.mg < 1 || tiles.kg < 1) {
    throw KernelError(fmt::format("{}: mg={} and kg={} must be positive", text(shape), tiles.mg, tiles.kg));
  }
}

void check_channels(const GemmShape& shape, std::string_view dataflow, int needed, const sim::MachineConfig& machine) {
  if (machine.dma.channels >= needed) return;
  throw KernelError(fmt::format("{}: the {} dataflow needs {} DMA channels a core, the machine has {} (dma.channels)",
                                text(shape), dataflow, needed, machine.dma.channels));
}

/// "3 * 4 B * M2 * N2", for the formulas of eqs. (5) and (7).
std::string term(std::int64_t count, std::int64_t bytes, std::string_view sizes) {
  return count == 1 ? fmt::format("{} B * {}", bytes, sizes) : fmt::format("{} * {} B * {}", count, bytes, sizes);
}

/// What large_m keeps of Y2 in AM when W2 twice leaves `free` bytes.
void choose_y_buffers(GemmPlan& plan, std::int64_t rounds, std::int64_t sums_tile, std::int64_t free) {
  const bool narrows = plan.sum_type() != plan.dtype;
  plan.y_buffers = k_y_buffers;
  if (narrows && rounds <= k_stay_rounds) {
    plan.y_buffers = k_stay_rounds;
  } else if (narrows && plan.sums == GemmSums::promoted) {
    plan.y_buffers = 1;
    plan.y_transfers = 2;
  }
  if (plan.variant == GemmVariant::best && rounds > plan.y_buffers && rounds * sums_tile <= free) {
    plan.y_buffers = rounds;
    plan.y_transfers = 0;
  }
  const std::int64_t kept = plan.variant == GemmVariant::paper ? k_stay_rounds : plan.y_buffers;
  plan.y_stays = plan.y_transfers == 0 && rounds <= kept;
}

GemmPlan plan_large_m(GemmPlan plan, const sim::MachineConfig& machine) {
  const GemmShape& shape = plan.shape;
  GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  check_channels(shape, "large-M", gemm::LargeMChannels::k_needed, machine);
  const std::int64_t cores = machine.cluster.cores;
  const bool one_k_block = tiles.kg >= shape.k;
  tiles.mg = std::min(tiles.mg, shape.m);
  tiles.k2 = std::min(tiles.k2, format.padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, round_up(shape.n, format.n1));
  if (one_k_block) tiles.kg = round_up(shape.k, tiles.k2);
  if (tiles.kg % tiles.k2 != 0) {
    throw KernelError(fmt::format("{}: kg={} must be a multiple of k2={}", text(shape), tiles.kg, tiles.k2));
  }

  plan.dataflow = GemmDataflow::large_m;
  plan.m2 = ceil_div(tiles.mg, cores);
  const std::int64_t rows = round_up(plan.m2, k_gemm_m1);  // of a core in SM and AM
  const auto m2 = fmt::format("M2={} ({} rows on {} cores, padded to {})", rows, tiles.mg, cores, k_gemm_m1);

  // One X2, one W2 and one Y2 at least, eqs. (4) and (5); then the buffers that overlap transfers with computing, (6)
  // and (7).
  const std::int64_t x2 = b * rows * tiles.k2;
  const std::int64_t w2 = b * tiles.k2 * tiles.n2;
  const std::int64_t sums2 = sum_b * rows * tiles.n2;
  gemm::check_epilogue(plan, tiles.n2, "n2");
  const std::int64_t sm = machine.core.sm_bytes, am = machine.core.am_bytes - plan.epilogue_bytes;
  const std::int64_t rounds = ceil_div(shape.n, tiles.n2);
  choose_y_buffers(plan, rounds, sums2, am - 2 * w2);
  const std::int64_t y_column = rows * (plan.y_buffers * sum_b + plan.y_transfers * b);  // bytes in AM a column of Y
  plan.sm_bytes = plan.x_bytes = 2 * x2;
  plan.am_bytes = 2 * w2 + y_column * tiles.n2;
  plan.gsm_bytes = b * cores * plan.m2 * tiles.kg;
  const std::string less_k2 = shrink("k2", floor_to(sm / (2 * b * rows), format.k_unit), format.k_least, "mg");
  const auto x_sizes = fmt::format("M2 * K2 with {}, K2={}", m2, tiles.k2);
  check(shape, {"(4)", term(1, b, x_sizes), "SM", x2, sm, less_k2});
  check(shape, {"(6)", term(2, b, x_sizes), "SM", plan.sm_bytes, sm, less_k2});
  const std::int64_t am_column = 2 * b * tiles.k2 + y_column;
  const std::string less_n2 = shrink("n2", floor_to(am / am_column, format.n1), format.n1, "k2 or mg");
  const auto w_and_y = fmt::format("{}, K2={}, N2={}", m2, tiles.k2, tiles.n2);
  check(shape, {"(5)", fmt::format("{} + {} with {}", term(1, b, "K2 * N2"), term(1, sum_b, "M2 * N2"), w_and_y), "AM",
                w2 + sums2, am, less_n2});
  // Eq. (7) has a bias row more; this operator has none.
  const std::string transfers = plan.y_transfers > 0 ? " + " + term(plan.y_transfers, b, "M2 * N2") : "";
  check(shape, {"(7)",
                fmt::format("{} + {}{} with {}", term(2, b, "K2 * N2"), term(plan.y_buffers, sum_b, "M2 * N2"),
                            transfers, w_and_y),
                "AM", plan.am_bytes, am, less_n2});
  gemm::place_epilogue(plan, machine.core.am_bytes);
  const std::int64_t gsm = machine.cluster.gsm_bytes;
  check(shape,
        {"(8)",
         fmt::format("{} with Kg={}, Mg={} ({} cores of {} rows)", term(1, b, "Kg * Mg"), tiles.kg, cores * plan.m2,
                     cores, plan.m2),
         "GSM", plan.gsm_bytes, gsm, shrink("kg", floor_to(gsm / (b * cores * plan.m2), tiles.k2), tiles.k2, "mg")});
  if (plan.between_type() != plan.dtype && !plan.y_stays && tiles.kg < shape.k)
    plan.scratch_bytes = sum_b * shape.m * round_up(shape.n, format.n1);
  return plan;
}

GemmPlan plan_small_m(GemmPlan plan, const sim::MachineConfig& machine) {
  const GemmShape& shape = plan.shape;
  GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  check_channels(shape, "small-M", gemm::SmallMChannels::k_needed, machine);
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
    check(shape, {"(4)", term(1, b, x_sizes), "SM", x2, sm, advice});
    check(shape, {"(6)", term(2, b, x_sizes), "SM", 2 * x2, sm, advice});
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
  check(shape, {"(5)", fmt::format("{} + {} with {}", term(1, b, "K2 * N2"), term(1, sum_b, "M2 * N2"), w_and_y), "AM",
                w2 + y2, am, advice});
  check(shape, {"(7)",
                fmt::format("{} + {} (Y2 written once: one buffer) with {}", term(2, b, "K2 * N2"),
                            term(1, sum_b, "M2 * N2"), w_and_y),
                "AM", 2 * w2 + y2, am, advice});
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
  check_channels(shape, "small-M", gemm::SmallMChannels::k_needed, machine);
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
    check(shape, {"(7)",
                  fmt::format("{} + {} + {} with M2={}, K2={}, N2={}, W as [n, k]", term(2, b, "K2 * N2"),
                              term(2, b, "M2 * K2"), term(1, sum_b, "M2 * N2"), shape.m, tiles.k2, tiles.n2),
                  "AM", fixed + plan.x_bytes + round, am, "use a smaller k2, n2 or m"});
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
  if (choice.weights == GemmWeights::out_in) return {.k2 = dtype == DType::f16 ? 1024 : 512, .n2 = 64};
  if (dtype == DType::f16 && choice.sums == GemmSums::f32) {  // three tiles of FP32 sums leave less for W2
    return {.mg = 1440, .kg = 2112, .k2 = 192, .n2 = 512, .k_promote = 96};
  }
  if (dtype == DType::f16) return {.mg = 1440, .kg = 2048, .k2 = 256, .n2 = 512, .k_promote = 128};
  return {};
}

GemmTiles parse_gemm_tiles(const std::string& text, DType dtype, const GemmChoice& choice) {
  GemmTiles tiles = GemmTiles::of(dtype, choice);
  std::vector<TileKey> keys{{"mg", &tiles.mg}, {"kg", &tiles.kg}, {"k2", &tiles.k2}, {"n2", &tiles.n2}};
  const bool promotes = dtype == DType::f16 && choice.sums != GemmSums::f16 && choice.weights == GemmWeights::in_out;
  if (promotes) keys.push_back({"k_promote", &tiles.k_promote});
  parse_tiles(text, keys);
  return tiles;
}

GemmPlan plan_gemm(const GemmShape& shape, DType dtype, const GemmTiles& tiles, const GemmChoice& choice,
                   const sim::MachineConfig& machine) {
  const bool by_rows = choice.weights == GemmWeights::out_in;
  if ((dtype == DType::f32 || by_rows) && choice.sums == GemmSums::f16) {
    throw KernelError(fmt::format("{}: FP16 sums need FP16 operands with W as [k, n]; here all are FP32", text(shape)));
  }
  const GemmSums sums = dtype == DType::f32 || by_rows ? GemmSums::f32 : choice.sums;
  const GemmPlan plan{.shape = shape,
                      .dtype = dtype,
                      .variant = choice.variant,
                      .sums = sums,
                      .weights = choice.weights,
                      .tiles = tiles,
                      .epilogue = choice.epilogue};
  check_tiles(plan);
  if (by_rows) {
    if (choice.dataflow == GemmDataflow::large_m) {
      throw KernelError(fmt::format(
          "{}: the large-M dataflow takes W as [k, n]; transpose it, or use the small-M dataflow", text(shape)));
    }
    if (!std::holds_alternative<std::monostate>(choice.epilogue)) {
      throw KernelError(fmt::format("{}: an epilogue takes W as [k, n]; transpose it", text(shape)));
    }
    return plan_by_rows(plan, machine);
  }
  switch (choice.dataflow) {
    case GemmDataflow::large_m: return plan_large_m(plan, machine);
    case GemmDataflow::small_m: return plan_small_m(plan, machine);
    case GemmDataflow::automatic: break;
  }
  return plan_fastest(plan, machine);
}

}  // namespace mtsim::kernels
