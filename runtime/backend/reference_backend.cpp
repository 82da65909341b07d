// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/reference_backend.h"

#include "runtime/error.h"

namespace mtsim::runtime {

bool ReferenceBackend::begin(std::int64_t sequence, std::int64_t) {
  const bool is_new =
      m_sequences.try_emplace(sequence, std::make_unique<models::Reference<float>>(m_checkpoint)).second;
  if (!is_new) throw RuntimeError("sequence " + std::to_string(sequence) + " has begun already");
  return true;
}

IterationResult ReferenceBackend::run(const Iteration& iteration) {
  IterationResult result;
  for (const SequenceInput& input : iteration.sequences) {
    models::Reference<float>& model = *m_sequences.at(input.sequence);
    for (std::size_t i = 0; i < input.ids.size(); ++i) {
      const std::span<const float> logits = model.forward(input.ids[i]);
      if (!iteration.all_logits && i + 1 < input.ids.size()) continue;
      result.logits.insert(result.logits.end(), logits.begin(), logits.end());
      ++result.logits_rows;
    }
  }
  return result;
}

}  // namespace mtsim::runtime
