// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather/gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "kernels/library.h"

namespace mtsim::kernels {

namespace {

constexpr std::size_t k_in_flight = 4;  // transfers of a core: hides their start behind each other's bytes

}  // namespace

sim::DspProgram gather(sim::Cluster&, std::int64_t row_bytes, std::int64_t vocabulary, const GatherOperands& operands) {
  for (std::size_t i = 0; i < operands.ids.size(); ++i) {
    const std::int32_t id = operands.ids[i];
    if (id < 0 || id >= vocabulary)
      throw KernelError(fmt::format("gather: id {} at {} is no row of the table, which has {}", id, i, vocabulary));
  }
  return [=](sim::Dsp& dsp) {
    const auto count = static_cast<std::int64_t>(operands.ids.size());
    const std::int64_t first = count * dsp.thread_id() / dsp.group_size();
    const std::int64_t end = count * (dsp.thread_id() + 1) / dsp.group_size();
    const std::size_t most = std::min<std::size_t>(k_in_flight, static_cast<std::size_t>(dsp.machine().dma.channels));
    std::deque<int> moving;
    const auto wait_for_oldest = [&] {
      dsp.dma_wait(moving.front());
      moving.pop_front();
    };
    for (std::int64_t i = first; i < end; ++i) {
      dsp.loop_iteration();
      if (moving.size() == most) wait_for_oldest();
      const sim::Rows row{1, row_bytes, 0};
      const std::int64_t id = operands.ids[static_cast<std::size_t>(i)];
      moving.push_back(dsp.dma_p2p(operands.table + id * row_bytes, row, operands.y + i * row_bytes, row));
    }
    while (!moving.empty()) wait_for_oldest();
  };
}

}  // namespace mtsim::kernels
