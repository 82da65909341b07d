// SPDX-License-Identifier: Apache-2.0
// The large-M dataflow's use of the memories: eqs. (4)-(8) of the paper in real bytes, padding included.
#include <algorithm>

#include "kernels/gemm/gemm_limits.h"
#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {
namespace {

constexpr std::int64_t k_y_buffers = 3;    // coming in, being computed, going out (Fig. 7)
constexpr std::int64_t k_stay_rounds = 2;  // so few rounds leave no time to move Y2 out and in again

/// What is kept of Y2 in AM when W2 leaves `free` bytes.
void choose_y_buffers(GemmPlan& plan, std::int64_t rounds, std::int64_t sums_tile, std::int64_t free) {
  const bool narrows = plan.sum_type() != plan.dtype;
  const std::int64_t asked = plan.tiles.y_buffers;
  plan.y_buffers = asked > 0 ? asked : k_y_buffers;
  if (narrows && rounds <= k_stay_rounds) {
    plan.y_buffers = k_stay_rounds;
  } else if (narrows && plan.sums == GemmSums::promoted) {
    plan.y_transfers = plan.y_buffers - 1;
    plan.y_buffers = 1;
  }
  if (asked == 0 && plan.variant == GemmVariant::best && rounds > plan.y_buffers && rounds * sums_tile <= free) {
    plan.y_buffers = rounds;
    plan.y_transfers = 0;
  }
  const std::int64_t kept = plan.variant == GemmVariant::paper ? k_stay_rounds : plan.y_buffers;
  plan.y_stays = plan.y_transfers == 0 && rounds <= kept;
}

std::string m2_text(const GemmPlan& plan, const sim::MachineConfig& machine) {
  return fmt::format("M2={} ({} rows on {} cores, padded to {})", plan.x_rows, plan.tiles.mg, machine.cluster.cores,
                     plan.row_unit());
}

}  // namespace

GemmLimits size_large_m(GemmPlan& plan, const sim::MachineConfig& machine) {
  const GemmShape& shape = plan.shape;
  GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type());
  check_channels(shape, "large-M", LargeMChannels::k_needed, machine);
  const std::int64_t cores = machine.cluster.cores;
  const bool one_k_block = tiles.kg >= shape.k;
  tiles.mg = std::min(tiles.mg, shape.m);
  tiles.k2 = std::min(tiles.k2, format.padded_k(shape.k));
  tiles.n2 = std::min(tiles.n2, round_up(shape.n, tiles.n1));
  if (one_k_block) tiles.kg = round_up(shape.k, tiles.k2);
  if (tiles.kg % tiles.k2 != 0) {
    throw KernelError(fmt::format("{}: kg={} must be a multiple of k2={}", text(shape), tiles.kg, tiles.k2));
  }

  plan.dataflow = GemmDataflow::large_m;
  plan.m2 = ceil_div(tiles.mg, cores);
  plan.x_rows = round_up(plan.m2, plan.row_unit());
  plan.sum_rows = plan.x_rows;
  plan.sum_columns = tiles.n2;
  if (plan.sum_type() != plan.dtype) {  // the microkernel that narrows them has one size
    plan.sum_rows = round_up(plan.sum_rows, format.m1);
    plan.sum_columns = round_up(plan.sum_columns, format.n1);
  }

  // One X2, one W2 and one Y2 at least, eqs. (4) and (5); then the buffers that overlap transfers with computing, (6)
  // and (7).
  const std::int64_t x2 = b * plan.x_rows * tiles.k2;
  const std::int64_t w2 = b * tiles.k2 * tiles.n2;
  const std::int64_t y2 = plan.sum_rows * plan.sum_columns;
  check_epilogue(plan, tiles.n2, "n2");
  const std::int64_t am = machine.core.am_bytes - plan.epilogue_bytes;
  choose_y_buffers(plan, ceil_div(shape.n, tiles.n2), sum_b * y2, am - tiles.w_buffers * w2);
  plan.sm_bytes = plan.x_bytes = tiles.x_buffers * x2;
  plan.am_bytes = tiles.w_buffers * w2 + (plan.y_buffers * sum_b + plan.y_transfers * b) * y2;
  plan.gsm_bytes = b * cores * plan.m2 * tiles.kg;
  const GemmLimits limits{{{"(4)", "SM", x2, machine.core.sm_bytes},
                           {"(6)", "SM", plan.sm_bytes, machine.core.sm_bytes},
                           {"(5)", "AM", w2 + sum_b * y2, am},
                           {"(7)", "AM", plan.am_bytes, am},
                           {"(8)", "GSM", plan.gsm_bytes, machine.cluster.gsm_bytes}}};
  place_epilogue(plan, machine.core.am_bytes);
  if (plan.between_type() != plan.dtype && !plan.y_stays && tiles.kg < shape.k)
    plan.scratch_bytes = sum_b * shape.m * round_up(shape.n, plan.column_unit());
  return limits;
}

GemmPlan plan_large_m(GemmPlan plan, const sim::MachineConfig& machine) {
  const GemmLimits limits = size_large_m(plan, machine);
  if (std::none_of(limits.begin(), limits.end(), [](const GemmLimit& limit) { return limit.is_broken(); })) return plan;
  const GemmShape& shape = plan.shape;
  const GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t b = format.bytes, sum_b = bytes_of(plan.sum_type()), cores = machine.cluster.cores;
  const auto& [one_x, all_x, one_y, all_y, gsm] = limits;

  const std::string less_k2 = shrink(
      "k2", floor_to(all_x.available / (tiles.x_buffers * b * plan.x_rows), format.k_unit), format.k_least, "mg");
  const auto x_sizes = fmt::format("M2 * K2 with {}, K2={}", m2_text(plan, machine), tiles.k2);
  check(shape, one_x, term(1, b, x_sizes), less_k2);
  check(shape, all_x, term(tiles.x_buffers, b, x_sizes), less_k2);
  const std::int64_t y_column = plan.sum_rows * (plan.y_buffers * sum_b + plan.y_transfers * b);
  const std::int64_t am_column = tiles.w_buffers * b * tiles.k2 + y_column;
  const std::string less_n2 = shrink("n2", floor_to(all_y.available / am_column, tiles.n1), tiles.n1, "k2 or mg");
  const auto w_and_y = fmt::format("{}, K2={}, N2={}", m2_text(plan, machine), tiles.k2, tiles.n2);
  check(shape, one_y, fmt::format("{} + {} with {}", term(1, b, "K2 * N2"), term(1, sum_b, "M2 * N2"), w_and_y),
        less_n2);
  // Eq. (7) has a bias row more; this operator has none.
  const std::string transfers = plan.y_transfers > 0 ? " + " + term(plan.y_transfers, b, "M2 * N2") : "";
  check(shape, all_y,
        fmt::format("{} + {}{} with {}", term(tiles.w_buffers, b, "K2 * N2"), term(plan.y_buffers, sum_b, "M2 * N2"),
                    transfers, w_and_y),
        less_n2);
  check(shape, gsm,
        fmt::format("{} with Kg={}, Mg={} ({} cores of {} rows)", term(1, b, "Kg * Mg"), tiles.kg, cores * plan.m2,
                    cores, plan.m2),
        shrink("kg", floor_to(gsm.available / (b * cores * plan.m2), tiles.k2), tiles.k2, "mg"));
  return plan;
}

}  // namespace mtsim::kernels::gemm
