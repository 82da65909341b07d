// SPDX-License-Identifier: Apache-2.0
// Values by backends: one a replica, and one for the buffer where there is one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "runtime/backend/parallel_backend.h"
#include "runtime/serving/executor.h"

namespace mtsim::runtime {

/// Greedy: the largest logit, of equal ones the first.
class BackendExecutor final : public Executor {
 public:
  /// Backends of one model, with values; they outlive this.
  explicit BackendExecutor(std::map<PoolPlace, ParallelBackend*> backends);

  /// All throw RuntimeError for a place without a backend; begin and move when a cache is full, run for a fault.
  void begin(const PoolPlace& place, std::int64_t request, std::int64_t most) override;
  void end(const PoolPlace& place, std::int64_t request) override;
  std::vector<std::int32_t> run(const PoolPlace& place, std::span<const SequenceInput> batch) override;
  void move(std::int64_t request, const PoolPlace& from, const PoolPlace& to) override;
  bool ends(std::int32_t id) const override { return m_eos.contains(id); }

 private:
  ParallelBackend& at(const PoolPlace& place) const;

  std::map<PoolPlace, ParallelBackend*> m_backends;
  std::set<std::int64_t> m_eos;
};

}  // namespace mtsim::runtime
