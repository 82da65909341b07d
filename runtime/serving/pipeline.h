// SPDX-License-Identifier: Apache-2.0
// A replica of a pool: stages that micro-batches pass one behind the other. A stage works on one at a time and hands
// its activations to the next one over its link while it works on.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/serving/clock.h"
#include "runtime/serving/iteration_cost.h"
#include "runtime/serving/serving_plan.h"

namespace mtsim::runtime {

/// Clusters in a row; those of a device are neighbours.
struct ClusterRange {
  std::int64_t first = 0, count = 1;
  /// All of both are in one device.
  bool in_one_device(const ClusterRange& other, std::int64_t clusters_per_device) const;
};

/// A micro-batch on its way through the stages.
struct Pass {
  bool urgent = false;  // goes before those that are not and wait at the same stage
  std::vector<std::int64_t> requests;
  std::vector<models::SequenceStep> batch;
  /// Told when a stage begins; the time at which the cache it makes has left its cluster, 0 when it stays.
  std::function<double(std::int64_t stage, const StageTime& time)> begins;
  std::function<void()> done;  // when the last stage is
};

class Pipeline {
 public:
  struct Options {
    std::int64_t tp = 1, pp = 1;
    ClusterRange clusters;
    std::int64_t clusters_per_device = 4;
    std::int64_t caches = 1;  // that a stage has room for, of those it makes and that leave
  };
  Pipeline(EventClock& clock, IterationCost& cost, const Options& options);

  void enter(Pass pass);
  /// The first stage has nothing to do, and not more micro-batches are under way than keep the others busy.
  bool has_room() const;
  std::int64_t under_way() const { return m_under_way; }  // passes
  ClusterRange clusters_of(std::int64_t stage) const;

  double busy_s() const { return m_busy_s; }  // of all stages
  std::int64_t passes() const { return m_passes; }
  const Options& options() const { return m_options; }

 private:
  struct Stage {
    std::deque<std::shared_ptr<Pass>> waiting;
    std::deque<double> leaving;  // when the caches it made have left
    bool busy = false;
  };
  void arrive(std::size_t stage, std::shared_ptr<Pass> pass);
  void work(std::size_t stage);
  void hand_on(std::size_t stage, const std::shared_ptr<Pass>& pass);

  EventClock& m_clock;
  IterationCost& m_cost;
  Options m_options;
  std::vector<Stage> m_stages;
  std::int64_t m_under_way = 0, m_passes = 0;
  double m_busy_s = 0;
};

}  // namespace mtsim::runtime
