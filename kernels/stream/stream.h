// SPDX-License-Identifier: Apache-2.0
// The DSP program that operators of low density share: items (elements or rows) are split over the cores and streamed
// DDR -> AM, through a microkernel, AM -> DDR in tiles, with the transfers of the next and the last tile under way.
// An operator says what an item takes in each of its operands and which microkernel works on a tile.
//
//   plan = plan_stream({.op = "add", .items = n, .grain = 256, .inputs = {{"a", 4}, {"b", 4}}, .outputs = {{"y", 4}},
//                       .in_place = true}, {}, machine);
//   program = stream(cluster, plan, {{a, b}, {y}}, [kernel](sim::Dsp& dsp, const StreamTile& tile) {
//     dsp.call(kernel, {tile.inputs[0], tile.inputs[1], whole_blocks(4 * tile.items)});
//   });
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

/// Buffers in AM are padded to whole blocks of this many bytes: two pairs of vectors.
inline constexpr std::int64_t k_stream_block = 512;

/// How the items of one operand lie in DDR and in AM. Elements: item_bytes of an element, no pitch. Rows: the bytes of
/// a row, and in AM the pitch its microkernel wants.
struct StreamOperand {
  std::string_view name;  // for messages
  std::int64_t item_bytes = 0;
  std::int64_t am_pitch = 0;   // from item to item in AM; 0: item_bytes. Others: a multiple of 128
  std::int64_t ddr_pitch = 0;  // from item to item in DDR; 0: item_bytes
  /// 64 bits that fill what an input's tile has behind its items and, with a pitch, behind each of them, whenever the
  /// microkernel sees it. A microkernel that reduces a row takes its neutral element.
  std::uint64_t pad = 0;

  std::int64_t pitch() const { return am_pitch == 0 ? item_bytes : am_pitch; }
  std::int64_t stride() const { return ddr_pitch == 0 ? item_bytes : ddr_pitch; }
};

/// Loaded into AM once a core, e.g. the weights of a norm; padded with `pad` to a whole block or to `am_bytes`.
struct StreamConstant {
  std::string_view name;
  std::int64_t bytes = 0;
  std::uint64_t pad = 0;
  std::int64_t am_bytes = 0;  // 0: as few as there must be

  std::int64_t padded() const;
};

struct StreamShape {
  std::string_view op;  // for messages
  std::int64_t items = 0;
  std::int64_t grain = 1;  // cores and tiles take multiples of this many items, but for the last
  std::vector<StreamOperand> inputs;
  std::vector<StreamOperand> outputs;
  std::vector<StreamConstant> constants;
  /// outputs[0] is written over inputs[0] in AM: same item_bytes and pitch. Where the pitch leaves pads, the
  /// microkernel must leave them as they are.
  bool in_place = false;
  /// AM for a microkernel to work in, aligned to a block: so much a core, zero at first, and so much an item of a tile.
  std::int64_t scratch_bytes = 0, scratch_item_bytes = 0;
};

struct StreamPlan {
  StreamShape shape;
  std::int64_t tile_items = 0;  // of a full tile
  std::int64_t am_bytes = 0;    // buffers and constants
  int channels = 0;             // DMA channels in use at once

  /// Bytes the operator has to move between DDR and the cores.
  double ideal_bytes() const;
};

/// Chooses the tile, or takes `tile_items` (rounded up to the grain) when above 0. Throws KernelError when not even one
/// grain fits AM (bytes needed and available), or when the machine has too few DMA channels.
StreamPlan plan_stream(const StreamShape& shape, std::int64_t tile_items, const sim::MachineConfig& machine);

/// The tile of a user, "elements=4096" for `key` "elements"; 0, the default, when there is none. Throws KernelError.
std::int64_t parse_stream_tile(const std::string& text, std::string_view key);

/// What a microkernel works on.
struct StreamTile {
  std::int64_t first = 0;  // item
  std::int64_t items = 0;
  std::vector<sim::Pointer> inputs, outputs;  // in AM
  std::vector<sim::Pointer> constants;        // in AM
  sim::Pointer scratch, scratch_items;        // in AM
};
using StreamKernel = std::function<void(sim::Dsp&, const StreamTile&)>;

/// Where the operands are in DDR, in the order of the shape.
struct StreamOperands {
  std::vector<sim::Pointer> inputs, outputs, constants;
};

/// The DSP program; launch it on any number of cores of `cluster`. `kernel` is called once a tile.
sim::DspProgram stream(sim::Cluster& cluster, const StreamPlan& plan, const StreamOperands& operands,
                       const StreamKernel& kernel);

/// `bytes` up to a whole block, for the count of a microkernel that takes whole blocks.
constexpr std::int64_t whole_blocks(std::int64_t bytes) {
  return (bytes + k_stream_block - 1) / k_stream_block * k_stream_block;
}

}  // namespace mtsim::kernels
