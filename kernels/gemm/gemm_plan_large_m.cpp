// SPDX-License-Identifier: Apache-2.0
// The large-M dataflow's use of the memories: eqs. (4)-(8) of the paper in real bytes, padding included.
#include <algorithm>

#include "kernels/gemm/gemm_limits.h"
#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {
namespace {

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
  check_kg(shape, tiles);

  plan.dataflow = GemmDataflow::large_m;
  plan.m2 = ceil_div(tiles.mg, cores);
  set_padded_sizes(plan);

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
  const std::int64_t b = bytes_of(plan.dtype), sum_b = bytes_of(plan.sum_type()), cores = machine.cluster.cores;
  const auto& [one_x, all_x, one_y, all_y, gsm] = limits;

  const std::string m2 = m2_text(plan, machine);
  check_x(plan, one_x, all_x, m2, "mg");
  const std::int64_t y_column = plan.sum_rows * (plan.y_buffers * sum_b + plan.y_transfers * b);
  const std::int64_t am_column = tiles.w_buffers * b * tiles.k2 + y_column;
  const std::string less_n2 = shrink("n2", floor_to(all_y.available / am_column, tiles.n1), tiles.n1, "k2 or mg");
  const auto w_and_y = fmt::format("{}, K2={}, N2={}", m2, tiles.k2, tiles.n2);
  check(shape, one_y, fmt::format("{} + {} with {}", term(1, b, "K2 * N2"), term(1, sum_b, "M2 * N2"), w_and_y),
        less_n2);
  check(shape, all_y, y_formula(plan, "K2 * N2", w_and_y), less_n2);
  check(shape, gsm,
        fmt::format("{} with Kg={}, Mg={} ({} cores of {} rows)", term(1, b, "Kg * Mg"), tiles.kg, cores * plan.m2,
                    cores, plan.m2),
        shrink("kg", floor_to(gsm.available / (b * cores * plan.m2), tiles.k2), tiles.k2, "mg"));
  return plan;
}

}  // namespace mtsim::kernels::gemm
