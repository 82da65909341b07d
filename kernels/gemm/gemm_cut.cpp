// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_cut.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "kernels/gemm/gemm_program.h"

namespace mtsim::kernels::gemm {
namespace {

constexpr std::size_t k_main_rows = k_gemm_m1;
constexpr std::int64_t k_unknown = std::numeric_limits<std::int64_t>::max();

std::int64_t columns_of_vector(DType dtype) { return k_vector_bytes / bytes_of(dtype); }

}  // namespace

Cutter::Cutter(const GemmPlan& plan, const sim::MachineConfig& machine)
    : m_paper(plan.variant == GemmVariant::paper),
      m_dtype(plan.dtype),
      m_promotes(plan.promotes()),
      m_jump(machine.core.call_cycles + machine.core.loop_cycles),
      m_pipeline(machine.pipeline) {
  if (!plan.has_hand_tile()) m_main = main_tile(plan);
  const std::int64_t k2 = plan.tiles.k2;
  m_k = m_promotes ? std::min(k2, plan.tiles.k_promote) : k2;
  m_calls = ceil_div(k2, m_k);
}

GemmTile Cutter::tile(int rows, int vectors) const {
  return {.rows = rows, .vectors = vectors, .dtype = m_dtype, .in_order = true, .promotes = m_promotes};
}
std::int64_t Cutter::cycles(const GemmTile& tile) const { return gemm_tile_cycles(tile, m_k, m_pipeline) + m_jump; }

std::int64_t Cutter::step_cycles(std::int64_t rows, std::int64_t columns) const {
  return m_calls * cut(rows, columns).cycles;
}

const Cut& Cutter::cut(std::int64_t rows, std::int64_t columns) const {
  const auto [known, is_new] = m_cuts.try_emplace({rows, columns});
  if (!is_new) return known->second;
  if (m_main) return known->second = of_main_tile(rows, columns);
  known->second = padded(rows, columns);
  const bool whole = rows % k_gemm_m1 == 0 && columns % gemm_n1(m_dtype) == 0;
  if (m_paper || whole) return known->second;
  Cut other = fitted(rows, columns);
  if (other.cycles < known->second.cycles) known->second = std::move(other);
  return known->second;
}

Cut Cutter::padded(std::int64_t rows, std::int64_t columns) const {
  Cut cut;
  for (std::int64_t row = 0; row < rows; row += k_gemm_m1) {
    CutStrip strip{row, std::min(k_gemm_m1, rows - row), {}};
    for (std::int64_t column = 0; column < columns; column += gemm_n1(m_dtype)) strip.blocks.push_back({column, {}});
    cut.cycles += static_cast<std::int64_t>(strip.blocks.size()) * (gemm_main_cycles(m_k, m_promotes) + m_jump);
    cut.strips.push_back(std::move(strip));
  }
  return cut;
}

Cut Cutter::of_main_tile(std::int64_t rows, std::int64_t columns) const {
  const std::int64_t vectors = ceil_div(columns, columns_of_vector(m_dtype));
  Cut cut;
  for (std::int64_t row = 0; row < rows; row += m_main->rows) {
    CutStrip strip{row, std::min<std::int64_t>(m_main->rows, rows - row), {}};
    for (std::int64_t v = 0; v < vectors; v += m_main->vectors) {
      const auto width = static_cast<int>(std::min<std::int64_t>(m_main->vectors, vectors - v));
      strip.blocks.push_back({v * columns_of_vector(m_dtype), tile(static_cast<int>(strip.rows), width)});
      cut.cycles += cycles(*strip.blocks.back().tile);
    }
    cut.strips.push_back(std::move(strip));
  }
  return cut;
}

/// No pads but those of a vector. Strips one by one from the fewest rows on: the best cut of r rows is a strip and the
/// best cut of what it leaves.
Cut Cutter::fitted(std::int64_t rows, std::int64_t columns) const {
  const std::int64_t vectors = ceil_div(columns, columns_of_vector(m_dtype));
  std::vector<Strip> strips(1);  // by rows
  for (int m = 1; m <= std::min<std::int64_t>(rows, k_max_tile_rows); ++m) strips.push_back(best_strip(m, vectors));
  std::vector<std::int64_t> least(static_cast<std::size_t>(rows) + 1, k_unknown);
  std::vector<std::size_t> last(least.size());
  least[0] = 0;
  for (std::size_t r = 1; r < least.size(); ++r) {
    for (std::size_t m = 1; m < strips.size() && m <= r; ++m) {
      const std::int64_t cycles = least[r - m] + strips[m].cycles;
      if (cycles < least[r]) std::tie(least[r], last[r]) = std::tuple(cycles, m);
    }
  }
  std::vector<std::size_t> heights;
  for (std::size_t r = least.size() - 1; r > 0; r -= last[r]) heights.push_back(last[r]);
  // Behind those of M1 rows the short ones, which are done first: what is done can leave.
  std::sort(heights.begin(), heights.end(), [](std::size_t a, std::size_t b) {
    return std::pair(a != k_main_rows, a) < std::pair(b != k_main_rows, b);
  });

  Cut cut{.strips = {}, .cycles = least.back()};
  std::int64_t row = 0;
  for (const std::size_t height : heights) {
    CutStrip strip{row, static_cast<std::int64_t>(height), {}};
    std::int64_t column = 0;
    for (std::size_t b = 0; b < strips[height].vectors.size(); ++b) {
      const int v = strips[height].vectors[b];
      strip.blocks.push_back({column, {}});
      if (b >= strips[height].main_blocks) strip.blocks.back().tile = tile(static_cast<int>(height), v);
      column += v * columns_of_vector(m_dtype);
    }
    row += strip.rows;
    cut.strips.push_back(std::move(strip));
  }
  return cut;
}

Cutter::Strip Cutter::best_strip(int rows, std::int64_t vectors) const {
  const int main_vectors = rows == k_gemm_m1 ? static_cast<int>(gemm_n1(m_dtype) / columns_of_vector(m_dtype)) : 0;
  std::vector<std::int64_t> of_block{k_unknown};  // by vectors
  for (int v = 1; gemm_tile_fits(tile(rows, v)); ++v) of_block.push_back(cycles(tile(rows, v)));
  if (main_vectors > 0) of_block[static_cast<std::size_t>(main_vectors)] = gemm_main_cycles(m_k, m_promotes) + m_jump;
  std::vector<std::int64_t> least(static_cast<std::size_t>(vectors) + 1, k_unknown);
  std::vector<std::size_t> last(least.size());
  least[0] = 0;
  for (std::size_t c = 1; c < least.size(); ++c) {
    for (std::size_t v = 1; v < of_block.size() && v <= c; ++v) {
      const std::int64_t cycles = least[c - v] + of_block[v];
      if (cycles < least[c]) std::tie(least[c], last[c]) = std::tuple(cycles, v);
    }
  }
  Strip strip{.cycles = least.back(), .vectors = {}, .main_blocks = 0};
  for (std::size_t c = least.size() - 1; c > 0; c -= last[c]) strip.vectors.push_back(static_cast<int>(last[c]));
  const auto is_main = [&](int v) { return v == main_vectors; };
  const auto end = std::stable_partition(strip.vectors.begin(), strip.vectors.end(), is_main);
  strip.main_blocks = static_cast<std::size_t>(end - strip.vectors.begin());
  return strip;
}

}  // namespace mtsim::kernels::gemm
