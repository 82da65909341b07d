// SPDX-License-Identifier: Apache-2.0
#include "kernels/kv_append/kv_append.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/library.h"
#include "kernels/move/move.h"
#include "kernels/transpose/transpose.h"

namespace mtsim::kernels {
namespace {

/// The tokens of an append that go to one block.
struct Piece {
  std::int64_t first = 0;  // position in the block
  std::int64_t tokens = 0;
  sim::Pointer k, v;  // [tokens, kv_heads * head_dim]
  sim::Pointer kt_block, v_block;
};

std::vector<Piece> pieces(const KvAppendShape& shape, const KvAppend& append) {
  const std::int64_t end = append.first + append.tokens, blocks = (end + shape.block - 1) / shape.block;
  if (append.first < 0 || append.tokens < 1 || std::ssize(append.blocks.kt) < blocks ||
      std::ssize(append.blocks.v) < blocks) {
    throw KernelError(fmt::format("kv_append: {} tokens from position {} on do not fit {} blocks of {} positions",
                                  append.tokens, append.first,
                                  std::min(append.blocks.kt.size(), append.blocks.v.size()), shape.block));
  }
  std::vector<Piece> result;
  for (std::int64_t at = append.first; at < end;) {
    const std::int64_t first = at % shape.block, tokens = std::min(shape.block - first, end - at);
    const auto block = static_cast<std::size_t>(at / shape.block);
    const std::int64_t offset = (at - append.first) * shape.row() * bytes_of(shape.dtype);
    result.push_back(
        {first, tokens, append.k + offset, append.v + offset, append.blocks.kt[block], append.blocks.v[block]});
    at += tokens;
  }
  return result;
}

/// K of one token as a column.
RowsMove column(const KvAppendShape& shape, const Piece& piece) {
  const std::int64_t b = bytes_of(shape.dtype);
  return {piece.k, {1, shape.row() * b, 0}, piece.kt_block + piece.first * b, {shape.row(), b, (shape.block - 1) * b}};
}

/// V head by head, or token by token if that is fewer transfers.
void add_v(const KvAppendShape& shape, const Piece& piece, std::vector<RowsMove>& moves) {
  const std::int64_t head = shape.head_dim * bytes_of(shape.dtype), row = shape.kv_heads * head;
  const sim::Pointer start = piece.v_block + piece.first * head;
  if (piece.tokens < shape.kv_heads) {
    for (std::int64_t token = 0; token < piece.tokens; ++token)
      moves.push_back(
          {piece.v + token * row, {1, row, 0}, start + token * head, {shape.kv_heads, head, (shape.block - 1) * head}});
    return;
  }
  for (std::int64_t h = 0; h < shape.kv_heads; ++h)
    moves.push_back({piece.v + h * head,
                     {piece.tokens, head, row - head},
                     start + h * shape.block * head,
                     {1, piece.tokens * head, 0}});
}

}  // namespace

sim::DspProgram kv_append(sim::Cluster& cluster, const KvAppendShape& shape, const std::vector<KvAppend>& appends) {
  std::vector<RowsMove> moves;
  std::vector<sim::DspProgram> transposes;
  for (const KvAppend& append : appends) {
    for (const Piece& piece : pieces(shape, append)) {
      if (piece.tokens == 1) {
        moves.push_back(column(shape, piece));
      } else {
        const TransposePlan plan =
            plan_transpose({piece.tokens, shape.row(), shape.block}, shape.dtype, {}, cluster.machine());
        transposes.push_back(transpose(cluster, plan, {piece.k, piece.kt_block + piece.first * bytes_of(shape.dtype)}));
      }
      add_v(shape, piece, moves);
    }
  }
  return [transposes = std::move(transposes), move = move_rows(std::move(moves))](sim::Dsp& dsp) {
    for (const sim::DspProgram& transpose : transposes) {
      transpose(dsp);
      dsp.free_all();
    }
    move(dsp);
  };
}

}  // namespace mtsim::kernels
