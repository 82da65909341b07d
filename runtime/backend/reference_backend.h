// SPDX-License-Identifier: Apache-2.0
// Plain C++ (models/reference.h): values without time, nothing of the simulator.
#pragma once

#include <map>
#include <memory>

#include "models/checkpoint.h"
#include "models/reference.h"
#include "runtime/backend/backend.h"

namespace mtsim::runtime {

class ReferenceBackend final : public Backend {
 public:
  /// `checkpoint` must outlive this.
  explicit ReferenceBackend(const models::Checkpoint& checkpoint) : m_checkpoint(checkpoint) {}

  const models::LlamaConfig& config() const override { return m_checkpoint.config(); }
  bool has_values() const override { return true; }
  double clock_hz() const override { return 0; }
  bool begin(std::int64_t sequence, std::int64_t most) override;
  void end(std::int64_t sequence) override { m_sequences.erase(sequence); }
  std::int64_t length(std::int64_t sequence) const override { return m_sequences.at(sequence)->position(); }
  IterationResult run(const Iteration& iteration) override;

 private:
  const models::Checkpoint& m_checkpoint;
  std::map<std::int64_t, std::unique_ptr<models::Reference<float>>> m_sequences;
};

}  // namespace mtsim::runtime
