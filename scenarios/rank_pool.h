// SPDX-License-Identifier: Apache-2.0
// Worker processes of all ranks of an mpirun as one pool. Rank 0 leads: it alone knows what is asked for and why; the
// others hand its requests to their processes. Without mpirun it is the pool of this process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/worker_pool.h"

namespace mtsim::runtime {
class Ranks;
}

namespace mtsim::scenarios {

class RankPool {
 public:
  /// `processes` of this rank. `about` has to be the same text on all ranks, UsageError on rank 0 if it is not.
  RankPool(std::size_t processes, std::function<std::string(const std::string&)> work, const std::string& about);
  /// On rank 0: ends the other ranks' serve().
  ~RankPool();
  RankPool(const RankPool&) = delete;
  RankPool& operator=(const RankPool&) = delete;

  /// On another rank than 0, instead of a pool: rank 0's constructor throws UsageError with `why`.
  static void refuse(const std::string& why);

  bool leads() const;
  /// Of all ranks; known to rank 0.
  std::size_t processes() const;

  /// On rank 0: all requests, several at a time; `on_answer(index, answer)` here, in the order they come. The first
  /// error of `work` is thrown as it was: UsageError, or ProgramFailed, also for a process that died.
  void run(const std::vector<std::string>& requests,
           const std::function<void(std::size_t, const std::string&)>& on_answer);
  /// On the others: answers rank 0 until it needs no more.
  void serve();

 private:
  struct Helper {
    std::size_t processes = 0, busy = 0;
  };
  void meet(const std::string& about);
  void end_helpers() noexcept;

  WorkerPool m_pool;
  std::unique_ptr<runtime::Ranks> m_ranks;  // behind the pool: processes start before MPI
  std::vector<Helper> m_helpers;            // on rank 0, by rank; its own has none
};

}  // namespace mtsim::scenarios
