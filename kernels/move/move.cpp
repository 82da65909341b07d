// SPDX-License-Identifier: Apache-2.0
#include "kernels/move/move.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

namespace mtsim::kernels {

namespace {

constexpr std::size_t k_in_flight = 4;  // transfers of a core: hides their start behind each other's bytes

}  // namespace

sim::DspProgram move_rows(std::vector<RowsMove> moves) {
  const auto all = std::make_shared<const std::vector<RowsMove>>(std::move(moves));
  return [all](sim::Dsp& dsp) {
    const std::size_t core = static_cast<std::size_t>(dsp.thread_id()),
                      cores = static_cast<std::size_t>(dsp.group_size());
    const std::size_t first = all->size() * core / cores, end = all->size() * (core + 1) / cores;
    const std::size_t most = std::min<std::size_t>(k_in_flight, static_cast<std::size_t>(dsp.machine().dma.channels));
    std::deque<int> moving;
    const auto wait_for_oldest = [&] {
      dsp.dma_wait(moving.front());
      moving.pop_front();
    };
    for (std::size_t i = first; i < end; ++i) {
      dsp.loop_iteration();
      if (moving.size() == most) wait_for_oldest();
      const RowsMove& move = (*all)[i];
      moving.push_back(dsp.dma_p2p(move.from, move.from_rows, move.to, move.to_rows));
    }
    while (!moving.empty()) wait_for_oldest();
  };
}

}  // namespace mtsim::kernels
