// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/pipeline.h"

#include <algorithm>
#include <utility>

namespace mtsim::runtime {

bool ClusterRange::in_one_device(const ClusterRange& other, std::int64_t clusters_per_device) const {
  const std::int64_t device = first / clusters_per_device;
  return (first + count - 1) / clusters_per_device == device && other.first / clusters_per_device == device &&
         (other.first + other.count - 1) / clusters_per_device == device;
}

Pipeline::Pipeline(EventClock& clock, IterationCost& cost, const Options& options)
    : m_clock(clock), m_cost(cost), m_options(options), m_stages(static_cast<std::size_t>(options.pp)) {}

ClusterRange Pipeline::clusters_of(std::int64_t stage) const {
  return {m_options.clusters.first + stage * m_options.tp, m_options.tp};
}

bool Pipeline::has_room() const {
  return !m_stages.front().busy && m_stages.front().waiting.empty() && m_under_way <= m_options.pp;
}

void Pipeline::enter(Pass pass) {
  ++m_under_way;
  ++m_passes;
  arrive(0, std::make_shared<Pass>(std::move(pass)));
}

void Pipeline::arrive(std::size_t stage, std::shared_ptr<Pass> pass) {
  auto& waiting = m_stages[stage].waiting;
  const auto place = pass->urgent
                         ? std::find_if(waiting.begin(), waiting.end(), [](const auto& p) { return !p->urgent; })
                         : waiting.end();
  waiting.insert(place, std::move(pass));
  work(stage);
}

void Pipeline::work(std::size_t stage) {
  Stage& its = m_stages[stage];
  if (its.busy || its.waiting.empty()) return;
  while (!its.leaving.empty() && its.leaving.front() <= m_clock.now()) its.leaving.pop_front();
  if (std::ssize(its.leaving) >= m_options.caches) {
    m_clock.at(its.leaving.front(), [this, stage] { work(stage); });
    return;
  }
  const std::shared_ptr<Pass> pass = std::move(its.waiting.front());
  its.waiting.pop_front();
  its.busy = true;
  const auto number = static_cast<std::int64_t>(stage);
  const StageTime time = m_cost.stage({m_options.tp, m_options.pp, number}, pass->batch);
  m_busy_s += time.busy_s();
  const double left = pass->begins ? pass->begins(number, time) : 0;
  if (left > 0) its.leaving.push_back(left);
  m_clock.at(m_clock.now() + time.busy_s(), [this, stage, pass] {
    m_stages[stage].busy = false;
    hand_on(stage, pass);
    work(stage);
  });
}

void Pipeline::hand_on(std::size_t stage, const std::shared_ptr<Pass>& pass) {
  if (stage + 1 == m_stages.size()) {
    --m_under_way;
    if (pass->done) pass->done();
    return;
  }
  std::int64_t tokens = 0;
  for (const models::SequenceStep& step : pass->batch) tokens += step.tokens;
  const auto number = static_cast<std::int64_t>(stage);
  const bool near = clusters_of(number).in_one_device(clusters_of(number + 1), m_options.clusters_per_device);
  const double message_s = m_cost.message_s(tokens * m_cost.activation_bytes_per_token(), near);
  m_clock.at(m_clock.now() + message_s, [this, stage, pass] { arrive(stage + 1, pass); });
}

}  // namespace mtsim::runtime
