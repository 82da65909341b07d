// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_limits.h"

namespace mtsim::kernels::gemm {

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

}  // namespace mtsim::kernels::gemm
