// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_limits.h"

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {
namespace {

constexpr std::int64_t k_stay_rounds = 2;  // so few rounds leave no time to move Y2 out and in again

}  // namespace

void refuse(const GemmShape& shape, const GemmLimit& limit, const std::string& formula, const std::string& advice) {
  throw GemmLimitError(
      limit, fmt::format("{}: eq. {}: {} needs {} bytes of {}, {} available; {}", text(shape), limit.equation, formula,
                         limit.needed, limit.memory, limit.available, advice));
}

void check_channels(const GemmShape& shape, std::string_view dataflow, int needed, const sim::MachineConfig& machine) {
  if (machine.dma.channels >= needed) return;
  throw KernelError(fmt::format("{}: the {} dataflow needs {} DMA channels a core, the machine has {} (dma.channels)",
                                text(shape), dataflow, needed, machine.dma.channels));
}

std::string shrink(std::string_view tile, std::int64_t largest, std::int64_t smallest, std::string_view otherwise) {
  if (largest >= smallest) return fmt::format("use {}={} or less", tile, largest);
  return fmt::format("no {} fits, shrink {}", tile, otherwise);
}

std::string term(std::int64_t count, std::int64_t bytes, std::string_view sizes) {
  return count == 1 ? fmt::format("{} B * {}", bytes, sizes) : fmt::format("{} * {} B * {}", count, bytes, sizes);
}

void check_kg(const GemmShape& shape, const GemmTiles& tiles) {
  if (tiles.kg % tiles.k2 == 0) return;
  throw KernelError(fmt::format("{}: kg={} must be a multiple of k2={}", text(shape), tiles.kg, tiles.k2));
}

void set_padded_sizes(GemmPlan& plan) {
  const Format format = gemm::format(plan.dtype);
  plan.x_rows = round_up(plan.m2, plan.row_unit());
  plan.sum_rows = plan.x_rows;
  plan.sum_columns = plan.tiles.n2;
  if (plan.sum_type() == plan.dtype) return;
  plan.sum_rows = round_up(plan.sum_rows, format.m1);  // the microkernel that narrows them has one size
  plan.sum_columns = round_up(plan.sum_columns, format.n1);
}

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

void check_x(const GemmPlan& plan, const GemmLimit& one, const GemmLimit& all, std::string_view m2,
             std::string_view rows) {
  const GemmTiles& tiles = plan.tiles;
  const Format format = gemm::format(plan.dtype);
  const std::int64_t most = all.available / (tiles.x_buffers * format.bytes * plan.x_rows);
  const std::string less_k2 = shrink("k2", floor_to(most, format.k_unit), format.k_least, rows);
  const auto sizes = fmt::format("M2 * K2 with {}, K2={}", m2, tiles.k2);
  check(plan.shape, one, term(1, format.bytes, sizes), less_k2);
  check(plan.shape, all, term(tiles.x_buffers, format.bytes, sizes), less_k2);
}

std::string y_formula(const GemmPlan& plan, std::string_view w, std::string_view sizes) {
  const std::int64_t b = bytes_of(plan.dtype), sum_b = bytes_of(plan.sum_type());
  const std::string transfers = plan.y_transfers > 0 ? " + " + term(plan.y_transfers, b, "M2 * N2") : "";
  return fmt::format("{} + {}{} with {}", term(plan.tiles.w_buffers, b, w), term(plan.y_buffers, sum_b, "M2 * N2"),
                     transfers, sizes);
}

}  // namespace mtsim::kernels::gemm
