// SPDX-License-Identifier: Apache-2.0
// Values beside time: the same iterations, caches and moves that serving decides on, computed. Only ids come back.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/backend/backend.h"

namespace mtsim::runtime {

enum class PoolKind : std::uint8_t { prefill, buffer, decode };

/// A replica of a pool; the buffer is one.
struct PoolPlace {
  PoolKind pool = PoolKind::decode;
  std::int64_t replica = 0;
  auto operator<=>(const PoolPlace&) const = default;
};

/// Sequences are requests, by id. Whatever an implementation throws ends the run.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Room in the caches of `place` for a sequence of at most `most` tokens, which has none yet. Before an iteration
  /// with it there, and before move() to there.
  virtual void begin(const PoolPlace& place, std::int64_t request, std::int64_t most) = 0;
  virtual void end(const PoolPlace& place, std::int64_t request) = 0;
  /// One iteration through all stages; the next id of each sequence.
  virtual std::vector<std::int32_t> run(const PoolPlace& place, std::span<const SequenceInput> batch) = 0;
  /// K and V of all its tokens; `from` has forgotten it afterwards.
  virtual void move(std::int64_t request, const PoolPlace& from, const PoolPlace& to) = 0;
  /// A text ends with it.
  virtual bool ends(std::int32_t id) const = 0;
};

}  // namespace mtsim::runtime
