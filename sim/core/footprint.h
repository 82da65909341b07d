// SPDX-License-Identifier: Apache-2.0
// Which bytes a microkernel call reads and writes, exactly, and which of its results depend on which of its inputs.
//
// A read is live when its value can reach a store, a predicate or an address; what a software pipeline loads too much
// is dead. Both are found on the trace of the call, by following every value from the instruction that makes it to
// those that read it. A load of bytes the call has stored itself, through the same pointer, is no read.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/trace.h"

namespace mtsim::sim {

/// `rows` rows of `bytes` bytes, `pitch` bytes from row to row (bytes < pitch where there are several).
struct Block {
  std::int64_t first = 0;
  std::int64_t bytes = 0;
  std::int64_t rows = 1;
  std::int64_t pitch = 0;

  std::int64_t end() const { return first + (rows - 1) * pitch + bytes; }
  std::int64_t total_bytes() const { return rows * bytes; }
  Block shifted(std::int64_t by) const { return {first + by, bytes, rows, pitch}; }
  bool operator==(const Block&) const = default;
};

/// The first byte both hold, or -1.
std::int64_t overlap(const Block& a, const Block& b);

/// Half-open.
struct ByteRange {
  std::int64_t first = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};
/// Disjoint blocks that hold the bytes of `ranges` (any order, may overlap) and no other: neighbours merge, and equal
/// ranges at equal distances are one block.
std::vector<Block> fold(std::vector<ByteRange> ranges);
/// Makes them sorted and disjoint.
void merge(std::vector<ByteRange>& ranges);

/// Bytes relative to one pointer parameter.
struct PointerFootprint {
  std::vector<Block> reads;       // live
  std::vector<Block> dead_reads;  // read, but no live read needs them
  std::vector<Block> writes;
  ByteRange hull;  // of them all
  bool empty() const { return reads.empty() && dead_reads.empty() && writes.empty(); }
};

/// One per .param, empty for counts.
std::vector<PointerFootprint> footprint(const DecodedProgram& program, const CallTrace& call);

/// Follows input that holds no values through the call, lane by lane. `undefined`: per .param the bytes that do,
/// sorted, disjoint and relative to the pointer; returned likewise: the bytes whose stored result depends on them. A
/// load meets an earlier store of the call only where both derive from the same parameter.
std::vector<std::vector<ByteRange>> propagate(const DecodedProgram& program, const CallTrace& call,
                                              std::span<const std::vector<ByteRange>> undefined);

}  // namespace mtsim::sim
