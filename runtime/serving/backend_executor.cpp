// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/backend_executor.h"

#include <fmt/format.h>

#include <utility>

#include "models/sampler.h"
#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

std::string text_of(const PoolPlace& place) {
  const std::string_view pool = place.pool == PoolKind::prefill  ? "prefill"
                                : place.pool == PoolKind::decode ? "decode"
                                                                 : "buffer";
  return fmt::format("{} replica {}", pool, place.replica);
}

}  // namespace

BackendExecutor::BackendExecutor(std::map<PoolPlace, ParallelBackend*> backends) : m_backends(std::move(backends)) {
  for (const auto& [place, backend] : m_backends) {
    if (!backend->has_values()) throw RuntimeError(fmt::format("{} computes no values", text_of(place)));
    m_eos.insert(backend->config().eos_ids.begin(), backend->config().eos_ids.end());
  }
}

ParallelBackend& BackendExecutor::at(const PoolPlace& place) const {
  const auto it = m_backends.find(place);
  if (it == m_backends.end()) throw RuntimeError(fmt::format("{} has no backend", text_of(place)));
  return *it->second;
}

void BackendExecutor::begin(const PoolPlace& place, std::int64_t request, std::int64_t most) {
  if (!at(place).begin(request, most))
    throw RuntimeError(fmt::format("{} has no room for request {} of {} tokens", text_of(place), request, most));
}

void BackendExecutor::end(const PoolPlace& place, std::int64_t request) { at(place).end(request); }

std::vector<std::int32_t> BackendExecutor::run(const PoolPlace& place, std::span<const SequenceInput> batch) {
  const IterationResult result = at(place).run({{batch.begin(), batch.end()}, false});
  if (result.fault) throw RuntimeError(fmt::format("{}: a kernel faults: {}", text_of(place), result.fault->str()));
  const std::size_t words = result.logits.size() / static_cast<std::size_t>(result.logits_rows);
  models::Sampler greedy{models::SamplerOptions{}};
  std::vector<std::int32_t> ids;
  for (std::size_t row = 0; row < batch.size(); ++row) {
    const std::span logits(result.logits.data() + row * words, words);
    ids.push_back(static_cast<std::int32_t>(greedy.sample(logits)));
  }
  return ids;
}

void BackendExecutor::move(std::int64_t request, const PoolPlace& from, const PoolPlace& to) {
  if (!at(to).take_cache(at(from), request)) {
    throw RuntimeError(fmt::format("{} has no blocks for the {} positions of request {}", text_of(to),
                                   at(from).length(request), request));
  }
  at(from).end(request);
}

}  // namespace mtsim::runtime
