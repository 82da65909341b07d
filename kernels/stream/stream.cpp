// SPDX-License-Identifier: Apache-2.0
// One core's loop over its tiles i = 0, 1, ...:
//   start   load of tile i + 1, once the store that last used its buffer is done
//   wait    for the load of tile i
//   compute
//   start   store of tile i
//
// Buffers form a ring an operand. Where an output has buffers of its own, two an operand are enough: loads never wait
// for stores. In place, a buffer is loaded, computed and stored before it comes round again, so a third one lets a
// load, a computation and a store go on at once.
#include "kernels/stream/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "kernels/library.h"
#include "kernels/round.h"
#include "kernels/tile_text.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_buffers = 2, k_in_place_buffers = 3;
// Of the widest operand in a tile: long enough that the fixed costs of transfer and call do not show at a core's share
// of the DDR, short enough that the first tile comes soon.
constexpr std::int64_t k_tile_bytes = 16 * 1024;

/// "48" or, below 1, "0.13": two digits, not more than it is.
std::string percent_below(std::int64_t part, std::int64_t whole) {
  const double percent = 100 * static_cast<double>(part) / static_cast<double>(whole);
  if (percent >= 1) return fmt::format("{:.0f}", std::floor(percent));
  const double digit = std::pow(10, std::floor(std::log10(percent)) - 1);
  return fmt::format("{:.2g}", std::floor(percent / digit) * digit);
}

std::int64_t ring(const StreamShape& shape, bool first) {
  return shape.in_place && first ? k_in_place_buffers : k_buffers;
}
std::int64_t buffer_bytes(const StreamOperand& operand, std::int64_t items) {
  return whole_blocks(items * operand.pitch());
}

std::int64_t am_bytes(const StreamShape& shape, std::int64_t tile_items) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < shape.inputs.size(); ++i)
    bytes += ring(shape, i == 0) * buffer_bytes(shape.inputs[i], tile_items);
  for (std::size_t i = shape.in_place ? 1 : 0; i < shape.outputs.size(); ++i)
    bytes += k_buffers * buffer_bytes(shape.outputs[i], tile_items);
  for (const StreamConstant& constant : shape.constants) bytes += constant.padded();
  return bytes + whole_blocks(shape.scratch_bytes) + whole_blocks(tile_items * shape.scratch_item_bytes);
}

/// A tile of this many items: its rows in DDR and in AM. One row where nothing lies between items on either side.
std::pair<sim::Rows, sim::Rows> rows(const StreamOperand& operand, std::int64_t items) {
  const std::int64_t bytes = operand.item_bytes;
  if (operand.pitch() == bytes && operand.stride() == bytes) return {{1, items * bytes, 0}, {1, items * bytes, 0}};
  return {{items, bytes, operand.stride() - bytes}, {items, bytes, operand.pitch() - bytes}};
}

class StreamLoop {
 public:
  StreamLoop(sim::Dsp& dsp, const StreamPlan& plan, const StreamOperands& operands, const StreamKernel& kernel,
             const sim::Kernel& fill)
      : m_dsp(dsp),
        m_shape(plan.shape),
        m_tile_items(plan.tile_items),
        m_operands(operands),
        m_kernel(kernel),
        m_fill(fill) {
    // Whole grains, as even as they go.
    const std::int64_t grains = ceil_div(m_shape.items, m_shape.grain);
    const std::int64_t core = dsp.thread_id(), cores = dsp.group_size();
    m_first = std::min(m_shape.items, grains * core / cores * m_shape.grain);
    m_end = std::min(m_shape.items, grains * (core + 1) / cores * m_shape.grain);
  }

  void run() {
    if (m_first == m_end) return;
    allocate();
    load(0);
    for (std::int64_t i = 0; i < tiles(); ++i) {
      m_dsp.loop_iteration();
      if (i + 1 < tiles()) load(i + 1);
      if (i == 0) load_constants();
      compute(i);
      store(i);
    }
    for (Buffers& output : m_outputs) {
      for (auto& channel : output.channels) wait(channel);
    }
  }

 private:
  /// A ring of buffers and what is under way from or to each.
  struct Buffers {
    std::vector<sim::Pointer> am;
    std::vector<std::optional<int>> channels;
    std::vector<bool> used;
    std::size_t at(std::int64_t tile) const { return static_cast<std::size_t>(tile) % am.size(); }
  };

  std::int64_t tiles() const { return ceil_div(m_end - m_first, m_tile_items); }
  std::int64_t first(std::int64_t tile) const { return m_first + tile * m_tile_items; }
  std::int64_t items(std::int64_t tile) const { return std::min(m_tile_items, m_end - first(tile)); }

  Buffers make(const StreamOperand& operand, std::int64_t count) {
    Buffers buffers;
    for (std::int64_t i = 0; i < count; ++i)
      buffers.am.push_back(m_dsp.vector_malloc(buffer_bytes(operand, m_tile_items)));
    buffers.channels.resize(buffers.am.size());
    buffers.used.resize(buffers.am.size());
    return buffers;
  }
  void allocate() {
    for (std::size_t i = 0; i < m_shape.inputs.size(); ++i)
      m_inputs.push_back(make(m_shape.inputs[i], ring(m_shape, i == 0)));
    for (std::size_t i = 0; i < m_shape.outputs.size(); ++i) {
      if (i == 0 && m_shape.in_place) {
        Buffers shared = m_inputs[0];  // the same places, transfers of their own
        m_outputs.push_back(std::move(shared));
      } else {
        m_outputs.push_back(make(m_shape.outputs[i], k_buffers));
      }
    }
    // Whole blocks, as all there is: each starts at one.
    if (m_shape.scratch_bytes > 0) {
      m_scratch = m_dsp.vector_malloc(whole_blocks(m_shape.scratch_bytes));
      fill(m_scratch, whole_blocks(m_shape.scratch_bytes), 0);
    }
    if (m_shape.scratch_item_bytes > 0)
      m_scratch_items = m_dsp.vector_malloc(whole_blocks(m_tile_items * m_shape.scratch_item_bytes));
  }

  void wait(std::optional<int>& channel) {
    if (channel) m_dsp.dma_wait(*std::exchange(channel, std::nullopt));
  }

  void fill(sim::Pointer am, std::int64_t bytes, std::uint64_t value) { m_dsp.call(m_fill, {am, bytes, value}); }

  /// What no transfer will write of the tile but the microkernel reads: all pads of a buffer with a pitch, the first
  /// time; the rest of the last block where items lie one behind the other.
  void pad(const StreamOperand& operand, Buffers& buffers, std::int64_t tile) {
    const std::size_t at = buffers.at(tile);
    const std::int64_t bytes = items(tile) * operand.item_bytes;
    if (operand.pitch() > operand.item_bytes) {
      if (!buffers.used[at]) fill(buffers.am[at], buffer_bytes(operand, m_tile_items), operand.pad);
      buffers.used[at] = true;
    } else if (bytes % k_stream_block != 0) {
      fill(buffers.am[at] + bytes / k_stream_block * k_stream_block, k_stream_block, operand.pad);
    }
  }

  void load(std::int64_t tile) {
    if (m_shape.in_place) wait(m_outputs[0].channels[m_outputs[0].at(tile)]);
    for (std::size_t i = 0; i < m_shape.inputs.size(); ++i) {
      const StreamOperand& operand = m_shape.inputs[i];
      Buffers& buffers = m_inputs[i];
      pad(operand, buffers, tile);
      const auto [ddr, am] = rows(operand, items(tile));
      buffers.channels[buffers.at(tile)] =
          m_dsp.dma_p2p(m_operands.inputs[i] + first(tile) * operand.stride(), ddr, buffers.am[buffers.at(tile)], am);
    }
  }

  /// Behind the first loads: nothing needs them earlier.
  void load_constants() {
    std::vector<int> channels;
    for (std::size_t i = 0; i < m_shape.constants.size(); ++i) {
      const StreamConstant& constant = m_shape.constants[i];
      const sim::Pointer am = m_dsp.vector_malloc(constant.padded());
      if (const std::int64_t whole = constant.bytes / k_stream_block * k_stream_block; whole < constant.padded())
        fill(am + whole, constant.padded() - whole, constant.pad);
      m_constants.push_back(am);
      const sim::Rows row{1, constant.bytes, 0};
      channels.push_back(m_dsp.dma_p2p(m_operands.constants[i], row, am, row));
    }
    for (const int channel : channels) m_dsp.dma_wait(channel);
  }

  void compute(std::int64_t tile) {
    StreamTile now{first(tile), items(tile), {}, {}, m_constants, m_scratch, m_scratch_items};
    for (Buffers& input : m_inputs) {
      wait(input.channels[input.at(tile)]);
      now.inputs.push_back(input.am[input.at(tile)]);
    }
    for (Buffers& output : m_outputs) {
      wait(output.channels[output.at(tile)]);  // in place: done before the load
      now.outputs.push_back(output.am[output.at(tile)]);
    }
    m_kernel(m_dsp, now);
  }

  void store(std::int64_t tile) {
    for (std::size_t i = 0; i < m_shape.outputs.size(); ++i) {
      const StreamOperand& operand = m_shape.outputs[i];
      Buffers& buffers = m_outputs[i];
      const auto [ddr, am] = rows(operand, items(tile));
      buffers.channels[buffers.at(tile)] =
          m_dsp.dma_p2p(buffers.am[buffers.at(tile)], am, m_operands.outputs[i] + first(tile) * operand.stride(), ddr);
    }
  }

  sim::Dsp& m_dsp;
  const StreamShape& m_shape;
  const std::int64_t m_tile_items;
  const StreamOperands& m_operands;
  const StreamKernel& m_kernel;
  const sim::Kernel& m_fill;
  std::int64_t m_first = 0, m_end = 0;  // this core's items
  std::vector<Buffers> m_inputs, m_outputs;
  std::vector<sim::Pointer> m_constants;
  sim::Pointer m_scratch, m_scratch_items;
};

}  // namespace

std::int64_t StreamConstant::padded() const { return whole_blocks(std::max(bytes, am_bytes)); }

double StreamPlan::ideal_bytes() const {
  std::int64_t item = 0, once = 0;
  for (const StreamOperand& input : shape.inputs) item += input.item_bytes;
  for (const StreamOperand& output : shape.outputs) item += output.item_bytes;
  for (const StreamConstant& constant : shape.constants) once += constant.bytes;
  return static_cast<double>(item) * static_cast<double>(shape.items) + static_cast<double>(once);
}

StreamPlan plan_stream(const StreamShape& shape, std::int64_t tile_items, const sim::MachineConfig& machine) {
  StreamPlan plan{.shape = shape};
  const std::int64_t share = round_up(ceil_div(shape.items, machine.cluster.cores), shape.grain);
  if (tile_items > 0) {
    plan.tile_items = std::min(share, round_up(tile_items, shape.grain));
  } else {
    std::int64_t widest = 1;
    for (const auto* list : {&shape.inputs, &shape.outputs}) {
      for (const StreamOperand& operand : *list) widest = std::max(widest, operand.pitch());
    }
    // As many tiles as the target asks for, all about as long.
    const std::int64_t most = std::max(k_tile_bytes / widest / shape.grain * shape.grain, shape.grain);
    plan.tile_items = round_up(ceil_div(share, ceil_div(share, most)), shape.grain);
  }
  plan.am_bytes = am_bytes(shape, plan.tile_items);
  if (plan.am_bytes > machine.core.am_bytes) {
    const std::int64_t least = am_bytes(shape, shape.grain);
    throw KernelError(fmt::format("{}: buffers for tiles of {} items need {} bytes of AM, {} available; {}", shape.op,
                                  plan.tile_items, plan.am_bytes, machine.core.am_bytes,
                                  least <= machine.core.am_bytes
                                      ? "use a smaller tile"
                                      : fmt::format("an item is too long: cut it to {} % of its length",
                                                    percent_below(machine.core.am_bytes, least))));
  }
  for (std::size_t i = 0; i < shape.inputs.size(); ++i) plan.channels += static_cast<int>(ring(shape, i == 0));
  for (std::size_t i = shape.in_place ? 1 : 0; i < shape.outputs.size(); ++i) plan.channels += k_buffers;
  plan.channels = std::max(plan.channels, static_cast<int>(shape.inputs.size() * 2 + shape.constants.size()));
  if (plan.channels > machine.dma.channels) {
    throw KernelError(fmt::format("{} needs {} DMA channels, the machine has {} (dma.channels)", shape.op,
                                  plan.channels, machine.dma.channels));
  }
  return plan;
}

std::int64_t parse_stream_tile(const std::string& text, std::string_view key) {
  std::int64_t items = 0;
  const std::array keys{TileKey{key, &items}};
  parse_tiles(text, keys);
  return items;
}

sim::DspProgram stream(sim::Cluster& cluster, const StreamPlan& plan, const StreamOperands& operands,
                       const StreamKernel& kernel) {
  const sim::Kernel fill = cluster.load(program("fill_am", cluster.machine().pipeline));
  return [=](sim::Dsp& dsp) { StreamLoop(dsp, plan, operands, kernel, fill).run(); };
}

}  // namespace mtsim::kernels
