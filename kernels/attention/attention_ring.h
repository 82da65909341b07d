// SPDX-License-Identifier: Apache-2.0
// Blocks of K^T and V that pass by: two buffers, the next block comes while one is used. Private to kernels/attention.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/attention/attention_program.h"

namespace mtsim::kernels::attention {

class KeyRing : protected CoreProgram {
 public:
  virtual ~KeyRing() = default;

 protected:
  using CoreProgram::CoreProgram;

  struct Load {
    Matrix matrix = Matrix::k;
    KeyStep step;
    std::int64_t item = 0;
  };
  /// The blocks of each of `items` items from `first` on, in their order. All cores have the same.
  void begin_ring(std::vector<Load> loads, std::int64_t first, std::int64_t items) {
    m_loads = std::move(loads);
    m_first_item = first;
    m_all = items * std::ssize(m_loads);
    allocate_ring();
  }
  void allocate_ring() {
    if (m_sizes.half) {
      m_blocks = {m_dsp.vector_malloc(m_sizes.slot)};
      for (int i = 0; i < 2; ++i) m_wires.push_back(m_dsp.vector_malloc(m_sizes.wire));
    } else {
      for (int i = 0; i < 2; ++i) m_blocks.push_back(m_dsp.vector_malloc(m_sizes.slot));
    }
  }
  void load_first() { load(0); }
  /// The next block, in FP32; with `used` false its values are not needed. It stays until the next call.
  sim::Pointer take(bool used) {
    const std::int64_t i = m_taken++;
    m_dsp.loop_iteration();
    wait(m_channels[i % 2]);
    load(i + 1);
    if (!m_sizes.half) return m_blocks[i % 2];
    if (used) {
      const Load now = *block(i);
      widen(m_wires[i % 2], m_blocks[0],
            now.matrix == Matrix::k ? m_sizes.d * m_kt_pitch : round_up(now.step.keys, k_key_unit) * m_sizes.row);
    }
    return m_blocks[0];
  }

 private:
  /// The i-th block that passes by; none behind the last.
  virtual std::optional<Load> block(std::int64_t i) const {
    if (i >= m_all) return std::nullopt;
    Load load = m_loads[i % std::ssize(m_loads)];
    load.item = m_first_item + i / std::ssize(m_loads);
    return load;
  }
  virtual int fetch(const Load& load, sim::Pointer wire) { return broadcast(load.matrix, load.item, load.step, wire); }
  void load(std::int64_t i) {
    if (const auto next = block(i)) m_channels[i % 2] = fetch(*next, (m_sizes.half ? m_wires : m_blocks)[i % 2]);
  }

  std::vector<Load> m_loads;
  std::int64_t m_first_item = 0, m_all = 0, m_taken = 0;
  std::vector<sim::Pointer> m_blocks, m_wires;  // FP32; FP16 as it arrives
  Channel m_channels[2];
};

}  // namespace mtsim::kernels::attention
