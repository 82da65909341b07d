// SPDX-License-Identifier: Apache-2.0
// Block sizes and dataflow of a GEMM: eqs. (4)-(8) of the paper in real bytes, padding included.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "isa/diagnostic.h"
#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels {
namespace {

using gemm::ceil_div;
using gemm::k_f32_bytes;
using gemm::padded_k;
using gemm::round_up;

constexpr std::int64_t k_y_buffers = 3;  // coming in, being computed, going out (Fig. 7)

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

std::int64_t even_floor(std::int64_t value) { return value / 2 * 2; }

void check_tiles(const GemmShape& shape, const GemmTiles& tiles) {
  if (shape.m < 1 || shape.n < 1 || shape.k < 1) {
    throw KernelError(fmt::format("{}: every dimension must be at least 1", text(shape)));
  }
  if (tiles.k2 < 4 || tiles.k2 % 2 != 0) {
    throw KernelError(
        fmt::format("{}: k2={} must be even and at least 4: the microkernel takes pairs of k", text(shape), tiles.k2));
  }
  if (tiles.n2 < k_gemm_n1 || tiles.n2 % k_gemm_n1 != 0) {
    throw KernelError(fmt::format("{}: n2={} must be a multiple of N1 = {}", text(shape), tiles.n2, k_gemm_n1));
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

GemmPlan plan_large_m(const GemmShape& shape, GemmTiles tiles, const sim::MachineConfig& machine, GemmVariant variant) {
  check_channels(shape, "large-M", gemm::LargeMChannels::k_needed, machine);
  const std::int64_t cores = machine.cluster.cores;
  const bool one_k_block = tiles.kg >= shape.k;
  tiles.mg = std::min(tiles.mg, shape.m);
  tiles.k2 = std::min(tiles.k2, padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, round_up(shape.n, k_gemm_n1));
  if (one_k_block) tiles.kg = round_up(shape.k, tiles.k2);
  if (tiles.kg % tiles.k2 != 0) {
    throw KernelError(fmt::format("{}: kg={} must be a multiple of k2={}", text(shape), tiles.kg, tiles.k2));
  }

  GemmPlan plan{shape, GemmDataflow::large_m, variant, tiles};
  plan.m2 = ceil_div(tiles.mg, cores);
  const std::int64_t rows = round_up(plan.m2, k_gemm_m1);  // of a core in SM and AM
  const auto m2 = fmt::format("M2={} ({} rows on {} cores, padded to {})", rows, tiles.mg, cores, k_gemm_m1);

  // One X2, one W2 and one Y2 at least, eqs. (4) and (5); then the buffers that overlap transfers with computing, (6)
  // and (7).
  const std::int64_t x2 = k_f32_bytes * rows * tiles.k2;
  const std::int64_t w2 = k_f32_bytes * tiles.k2 * tiles.n2;
  const std::int64_t y2 = k_f32_bytes * rows * tiles.n2;
  const std::int64_t sm = machine.core.sm_bytes, am = machine.core.am_bytes;
  plan.sm_bytes = 2 * x2;
  plan.am_bytes = 2 * w2 + k_y_buffers * y2;
  plan.gsm_bytes = k_f32_bytes * cores * plan.m2 * tiles.kg;
  const std::string less_k2 = shrink("k2", even_floor(sm / (2 * k_f32_bytes * rows)), 4, "mg");
  check(shape, {"(4)", fmt::format("4 B * M2 * K2 with {}, K2={}", m2, tiles.k2), "SM", x2, sm, less_k2});
  check(shape,
        {"(6)", fmt::format("2 * 4 B * M2 * K2 with {}, K2={}", m2, tiles.k2), "SM", plan.sm_bytes, sm, less_k2});
  const std::int64_t am_column = k_f32_bytes * (2 * tiles.k2 + 3 * rows);
  const std::string less_n2 = shrink("n2", am / am_column / k_gemm_n1 * k_gemm_n1, k_gemm_n1, "k2 or mg");
  const auto w_and_y = fmt::format("{}, K2={}, N2={}", m2, tiles.k2, tiles.n2);
  check(shape, {"(5)", fmt::format("4 B * K2 * N2 + 4 B * M2 * N2 with {}", w_and_y), "AM", w2 + y2, am, less_n2});
  // Eq. (7) has 4 B * N more for a bias row; this operator has none.
  check(shape, {"(7)", fmt::format("2 * 4 B * K2 * N2 + 3 * 4 B * M2 * N2 with {}", w_and_y), "AM", plan.am_bytes, am,
                less_n2});
  plan.y_buffers = k_y_buffers;
  if (const std::int64_t rounds = ceil_div(shape.n, tiles.n2);
      variant == GemmVariant::best && 2 * w2 + rounds * y2 <= am && rounds > k_y_buffers) {
    plan.y_buffers = rounds;
    plan.am_bytes = 2 * w2 + rounds * y2;
  }
  const std::int64_t gsm = machine.cluster.gsm_bytes;
  check(shape, {"(8)",
                fmt::format("4 B * Kg * Mg with Kg={}, Mg={} ({} cores of {} rows)", tiles.kg, cores * plan.m2, cores,
                            plan.m2),
                "GSM", plan.gsm_bytes, gsm,
                shrink("kg", gsm / (k_f32_bytes * cores * plan.m2) / tiles.k2 * tiles.k2, tiles.k2, "mg")});
  return plan;
}

GemmPlan plan_small_m(const GemmShape& shape, GemmTiles tiles, const sim::MachineConfig& machine) {
  check_channels(shape, "small-M", gemm::SmallMChannels::k_needed, machine);
  const std::int64_t cores = machine.cluster.cores;
  const std::int64_t share = ceil_div(ceil_div(shape.n, k_gemm_n1), cores) * k_gemm_n1;  // columns of one core at most
  tiles.mg = shape.m;
  tiles.k2 = std::min(tiles.k2, padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, share);

  GemmPlan plan{shape, GemmDataflow::small_m, GemmVariant::best, tiles};
  plan.m2 = shape.m;
  plan.y_buffers = 1;
  const std::int64_t rows = round_up(shape.m, k_gemm_m1);
  const std::int64_t sm = machine.core.sm_bytes, am = machine.core.am_bytes;
  const auto m2 = fmt::format("M2={} ({} rows padded to {})", rows, shape.m, k_gemm_m1);

  // X in SM: all of K if that fits, else two buffers of as many columns as fit.
  const std::int64_t all_k = (ceil_div(shape.k, tiles.k2) - 1) * tiles.k2 + padded_k((shape.k - 1) % tiles.k2 + 1);
  const std::int64_t whole_x = k_f32_bytes * rows * all_k;
  if (whole_x <= sm) {
    plan.tiles.kg = shape.k;
    plan.sm_bytes = whole_x;
  } else {
    const std::int64_t x2 = k_f32_bytes * rows * tiles.k2;
    const std::string advice =
        shrink("k2", even_floor(sm / (2 * k_f32_bytes * rows)), 4, "m, or use the large-M dataflow");
    check(shape, {"(4)", fmt::format("4 B * M2 * K2 with {}, K2={}", m2, tiles.k2), "SM", x2, sm, advice});
    check(shape, {"(6)", fmt::format("2 * 4 B * M2 * K2 with {}, K2={}", m2, tiles.k2), "SM", 2 * x2, sm, advice});
    plan.tiles.kg = sm / (2 * x2) * tiles.k2;
    plan.sm_bytes = 2 * k_f32_bytes * rows * plan.tiles.kg;
  }

  // W2 twice in AM, beside it as much of the core's share of Y as fits, in whole tiles.
  const std::int64_t w2 = k_f32_bytes * tiles.k2 * tiles.n2;
  const std::int64_t y_tile = k_f32_bytes * rows * k_gemm_n1;
  const std::int64_t am_column = k_f32_bytes * (2 * tiles.k2 + rows);
  const std::string advice = shrink("n2", am / am_column / k_gemm_n1 * k_gemm_n1, k_gemm_n1, "k2");
  const auto w_and_y = fmt::format("{}, K2={}, N2={}", m2, tiles.k2, tiles.n2);
  const std::int64_t y2 = y_tile * tiles.n2 / k_gemm_n1;
  check(shape, {"(5)", fmt::format("4 B * K2 * N2 + 4 B * M2 * N2 with {}", w_and_y), "AM", w2 + y2, am, advice});
  check(shape, {"(7)", fmt::format("2 * 4 B * K2 * N2 + 4 B * M2 * N2 (Y2 written once: one buffer) with {}", w_and_y),
                "AM", 2 * w2 + y2, am, advice});
  plan.am_bytes = 2 * w2 + gemm::split_small_m(plan, machine).block_tiles * y_tile;
  return plan;
}

/// Padded microkernel calls of the busiest core in one k-step of all of Y. Both dataflows read each byte of W equally
/// often per block of rows and their k-steps are alike, so the calls decide: small M pads columns to 24 x 128, large M
/// rows to 24 x 6.
std::int64_t calls_large_m(const GemmShape& shape, const GemmTiles& tiles, std::int64_t cores) {
  const auto strips = [&](std::int64_t rows) { return ceil_div(ceil_div(rows, cores), k_gemm_m1); };
  const std::int64_t full = shape.m / tiles.mg, tail = shape.m % tiles.mg;
  return (full * strips(tiles.mg) + (tail > 0 ? strips(tail) : 0)) * ceil_div(shape.n, k_gemm_n1);
}
std::int64_t calls_small_m(const GemmShape& shape, std::int64_t cores) {
  return ceil_div(shape.m, k_gemm_m1) * ceil_div(ceil_div(shape.n, k_gemm_n1), cores);
}

bool small_m_fits(const GemmShape& shape, const GemmTiles& tiles, const sim::MachineConfig& machine) {
  try {
    plan_small_m(shape, tiles, machine);
    return true;
  } catch (const KernelError&) {
    return false;
  }
}

}  // namespace

namespace gemm {

SmallMSplit split_small_m(const GemmPlan& plan, const sim::MachineConfig& machine) {
  const GemmTiles& tiles = plan.tiles;
  const std::int64_t rows = round_up(plan.shape.m, k_gemm_m1);
  SmallMSplit split;
  split.tiles = ceil_div(plan.shape.n, k_gemm_n1);
  const std::int64_t share = ceil_div(split.tiles, machine.cluster.cores);
  const std::int64_t free = machine.core.am_bytes - 2 * k_f32_bytes * tiles.k2 * tiles.n2;
  split.block_tiles = std::min(share, free / (k_f32_bytes * rows * k_gemm_n1));
  split.column_blocks = ceil_div(share, split.block_tiles);
  split.x_blocks = ceil_div(plan.shape.k, tiles.kg);
  split.x_buffers = split.x_blocks == 1 ? 1 : 2;
  split.x_pitch = plan.sm_bytes / split.x_buffers / rows;
  return split;
}

}  // namespace gemm

GemmTiles parse_gemm_tiles(const std::string& text) {
  GemmTiles tiles;
  struct Key {
    std::string_view name;
    std::int64_t* value;
  };
  const std::array keys{Key{"mg", &tiles.mg}, Key{"kg", &tiles.kg}, Key{"k2", &tiles.k2}, Key{"n2", &tiles.n2}};
  static constexpr std::array<std::string_view, 4> k_names{"mg", "kg", "k2", "n2"};
  std::array<bool, keys.size()> given{};
  std::string_view rest = text;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::string_view name = item.substr(0, item.find('='));
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const Key& k) { return k.name == name; });
    if (key == keys.end()) {
      throw KernelError(fmt::format("tile '{}': unknown key '{}'; known: mg, kg, k2, n2{}", text, name,
                                    isa::did_you_mean(name, k_names)));
    }
    if (std::exchange(given[static_cast<std::size_t>(key - keys.begin())], true))
      throw KernelError(fmt::format("tile '{}': {} is given twice; keep one", text, name));
    const std::string_view digits = item.substr(std::min(item.size(), name.size() + 1));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 1 || value > INT32_MAX) {
      throw KernelError(fmt::format("tile '{}': {}='{}' must be a positive number, e.g. {}={}", text, name, digits,
                                    name, *key->value));
    }
    *key->value = value;
  }
  return tiles;
}

GemmPlan plan_gemm_f32(const GemmShape& shape, const GemmTiles& tiles, GemmDataflow dataflow,
                       const sim::MachineConfig& machine, GemmVariant variant) {
  check_tiles(shape, tiles);
  if (dataflow == GemmDataflow::automatic) {
    const std::int64_t cores = machine.cluster.cores;
    const bool small =
        calls_small_m(shape, cores) < calls_large_m(shape, tiles, cores) && small_m_fits(shape, tiles, machine);
    dataflow = small ? GemmDataflow::small_m : GemmDataflow::large_m;
  }
  return dataflow == GemmDataflow::small_m ? plan_small_m(shape, tiles, machine)
                                           : plan_large_m(shape, tiles, machine, variant);
}

}  // namespace mtsim::kernels
