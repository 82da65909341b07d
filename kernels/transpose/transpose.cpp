// SPDX-License-Identifier: Apache-2.0
// Tiles of X are dealt out to the cores in turn. A core loads the next one and stores the last one while it transposes:
// two buffers each way.
#include "kernels/transpose/transpose.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "kernels/library.h"
#include "kernels/round.h"
#include "kernels/tile_text.h"

namespace mtsim::kernels {
namespace {

// Rows of a transfer of 512 B each way, FP16 256 B.
constexpr std::int64_t k_largest_tile = 128;
constexpr std::int64_t k_buffers = 2;

std::int64_t tiles_of(const TransposeShape& shape, const TransposeTiles& tiles) {
  return ceil_div(shape.rows, tiles.rows) * ceil_div(shape.columns, tiles.columns);
}

std::int64_t am_bytes_of(const TransposeTiles& tiles, DType dtype) {
  return 2 * k_buffers * tiles.rows * tiles.columns * bytes_of(dtype) + transpose_scratch_bytes(dtype);
}

/// The largest that fit AM and leave a tile for each core, shorter transfers being slower.
TransposeTiles choose(const TransposeShape& shape, DType dtype, const sim::MachineConfig& machine) {
  const std::int64_t unit = transpose_unit(dtype);
  TransposeTiles tiles{std::min(k_largest_tile, round_up(shape.rows, unit)),
                       std::min(k_largest_tile, round_up(shape.columns, unit))};
  const auto too_large = [&] {
    return tiles_of(shape, tiles) < machine.cluster.cores || am_bytes_of(tiles, dtype) > machine.core.am_bytes;
  };
  while (too_large() && std::max(tiles.rows, tiles.columns) > unit) {
    std::int64_t& larger = tiles.rows > tiles.columns ? tiles.rows : tiles.columns;
    larger = round_up(larger / 2, unit);
  }
  return tiles;
}

class TransposeLoop {
 public:
  TransposeLoop(sim::Dsp& dsp, const TransposePlan& plan, const TransposeOperands& operands, const sim::Kernel& kernel,
                const sim::Kernel& fill)
      : m_dsp(dsp), m_plan(plan), m_operands(operands), m_kernel(kernel), m_fill(fill) {}

  void run() {
    const std::int64_t cores = m_dsp.group_size(), tiles = tiles_of(m_plan.shape, m_plan.tiles);
    const std::int64_t first = m_dsp.thread_id();
    if (first >= tiles) return;
    for (auto* buffers : {&m_in, &m_out}) {
      for (Buffer& buffer : *buffers) buffer.am = m_dsp.vector_malloc(tile_bytes());
    }
    m_scratch = m_dsp.vector_malloc(transpose_scratch_bytes(m_plan.dtype));
    load(at(first), m_in[0]);
    for (std::int64_t tile = first, i = 0; tile < tiles; tile += cores, ++i) {
      m_dsp.loop_iteration();
      if (tile + cores < tiles) load(at(tile + cores), m_in[(i + 1) % k_buffers]);
      Buffer &in = m_in[i % k_buffers], &out = m_out[i % k_buffers];
      wait(in);
      wait(out);
      compute(at(tile), in.am, out.am);
      store(at(tile), out);
    }
    for (Buffer& buffer : m_out) wait(buffer);
  }

 private:
  struct Buffer {
    sim::Pointer am;
    std::optional<int> channel;  // of a transfer under way
    bool filled = false;
  };
  struct Tile {
    std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  };

  Tile at(std::int64_t number) const {
    const std::int64_t rows = m_plan.shape.rows, columns = m_plan.shape.columns;
    const std::int64_t across = ceil_div(columns, m_plan.tiles.columns);
    const std::int64_t row = number / across * m_plan.tiles.rows, column = number % across * m_plan.tiles.columns;
    return {row, column, std::min(m_plan.tiles.rows, rows - row), std::min(m_plan.tiles.columns, columns - column)};
  }
  std::int64_t bytes() const { return bytes_of(m_plan.dtype); }
  std::int64_t tile_bytes() const { return m_plan.tiles.rows * m_plan.tiles.columns * bytes(); }
  static sim::Rows rows_of(std::int64_t count, std::int64_t bytes, std::int64_t pitch) {
    return {count, bytes, pitch - bytes};
  }
  void wait(Buffer& buffer) {
    if (buffer.channel) m_dsp.dma_wait(*std::exchange(buffer.channel, std::nullopt));
  }

  void load(const Tile& tile, Buffer& buffer) {
    // The microkernel reads whole panels and blocks: of a tile at the edge more than a transfer brings.
    const bool edge = tile.rows < m_plan.tiles.rows || tile.columns < m_plan.tiles.columns;
    if (edge && !std::exchange(buffer.filled, true)) m_dsp.call(m_fill, {buffer.am, tile_bytes(), 0});
    const std::int64_t columns = m_plan.shape.columns, width = tile.columns * bytes();
    buffer.channel = m_dsp.dma_p2p(m_operands.x + (tile.row * columns + tile.column) * bytes(),
                                   rows_of(tile.rows, width, columns * bytes()), buffer.am,
                                   rows_of(tile.rows, width, m_plan.tiles.columns * bytes()));
  }
  void compute(const Tile& tile, sim::Pointer in, sim::Pointer out) {
    const std::int64_t unit = transpose_unit(m_plan.dtype);
    const std::int64_t in_pitch = m_plan.tiles.columns * bytes(), out_pitch = m_plan.tiles.rows * bytes();
    for (std::int64_t row = 0; row < tile.rows; row += unit) {
      m_dsp.loop_iteration();
      m_dsp.call(m_kernel, {in + row * in_pitch, out + row * bytes(), m_scratch, ceil_div(tile.columns, unit), in_pitch,
                            out_pitch});
    }
  }
  void store(const Tile& tile, Buffer& buffer) {
    const std::int64_t pitch = m_plan.shape.y_row(), width = tile.rows * bytes();
    buffer.channel = m_dsp.dma_p2p(buffer.am, rows_of(tile.columns, width, m_plan.tiles.rows * bytes()),
                                   m_operands.y + (tile.column * pitch + tile.row) * bytes(),
                                   rows_of(tile.columns, width, pitch * bytes()));
  }

  sim::Dsp& m_dsp;
  const TransposePlan& m_plan;
  const TransposeOperands& m_operands;
  const sim::Kernel& m_kernel;
  const sim::Kernel& m_fill;
  std::array<Buffer, k_buffers> m_in, m_out;
  sim::Pointer m_scratch;
};

}  // namespace

TransposeTiles parse_transpose_tiles(const std::string& text, DType dtype) {
  TransposeTiles tiles;
  const std::int64_t unit = transpose_unit(dtype);
  tiles = {unit, unit};
  const std::array keys{TileKey{"rows", &tiles.rows}, TileKey{"columns", &tiles.columns}};
  if (text.empty()) return {};
  parse_tiles(text, keys);
  for (const TileKey& key : keys) {
    if (*key.value % unit != 0) {
      throw KernelError(
          fmt::format("tile '{}': {}={} must be a multiple of {}: the microkernel works on vectors of 128 B", text,
                      key.name, *key.value, unit));
    }
  }
  return tiles;
}

TransposePlan plan_transpose(const TransposeShape& shape, DType dtype, const TransposeTiles& tiles,
                             const sim::MachineConfig& machine) {
  if (shape.rows < 1 || shape.columns < 1) {
    throw KernelError(fmt::format("transpose: {} x {}; both must be at least 1", shape.rows, shape.columns));
  }
  if (shape.y_row() < shape.rows) {
    throw KernelError(fmt::format("transpose: rows of Y are {} elements apart and have {}", shape.y_row(), shape.rows));
  }
  TransposePlan plan{shape, dtype, tiles, 0};
  const TransposeTiles chosen = choose(shape, dtype, machine);
  if (plan.tiles.rows == 0) plan.tiles.rows = chosen.rows;
  if (plan.tiles.columns == 0) plan.tiles.columns = chosen.columns;
  plan.am_bytes = am_bytes_of(plan.tiles, dtype);
  if (plan.am_bytes > machine.core.am_bytes) {
    throw KernelError(fmt::format("transpose: tiles of {} x {} need {} bytes of AM, {} available; use smaller ones",
                                  plan.tiles.rows, plan.tiles.columns, plan.am_bytes, machine.core.am_bytes));
  }
  return plan;
}

sim::DspProgram transpose(sim::Cluster& cluster, const TransposePlan& plan, const TransposeOperands& operands) {
  const isa::Pipeline& pipeline = cluster.machine().pipeline;
  const sim::Kernel kernel = cluster.load(program("transpose", pipeline, {{"FP16", plan.dtype == DType::f16}}));
  const sim::Kernel fill = cluster.load(program("fill_am", pipeline));
  return [=](sim::Dsp& dsp) { TransposeLoop(dsp, plan, operands, kernel, fill).run(); };
}

}  // namespace mtsim::kernels
