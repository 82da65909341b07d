// SPDX-License-Identifier: Apache-2.0
// The one seam between serving and machine: an iteration goes in, values and time come out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config.h"
#include "sim/accounting.h"
#include "sim/core/executor.h"

namespace mtsim::runtime {

/// New tokens of one sequence in an iteration.
struct SequenceInput {
  std::int64_t sequence = 0;      // that has begun
  std::vector<std::int32_t> ids;  // tokens behind those it has
};

struct Iteration {
  std::vector<SequenceInput> sequences;
  bool all_logits = false;  // of each token, else of the last one of each sequence
};

/// What one operator took.
struct OperatorTime {
  std::string name;    // "layers.3.attention"
  std::string kernel;  // "gemm small_m + rope"
  int layer = -1;
  double macs = 0;
  std::int64_t launches = 0;    // its own; 0 in a launch of many operators
  std::int64_t cycles = 0;      // launch cost not included
  sim::CycleAccount account{};  // of all cores
  std::int64_t ddr_bytes = 0;   // read and written
  std::int64_t gsm_bytes = 0;
  std::int64_t packets = 0;
};

struct IterationResult {
  std::vector<float> logits;  // [rows, vocab], in the order of the input; empty where no values are computed
  std::int64_t logits_rows = 0;
  std::int64_t cycles = 0;         // of the cluster; 0 where there is none
  std::int64_t launch_cycles = 0;  // of them creating and launching thread groups
  std::int64_t comm_cycles = 0;    // of them between clusters: all-reduces, activations, logits
  std::int64_t launches = 0;
  std::vector<OperatorTime> operators;        // their cycles, launch_cycles and comm_cycles sum to cycles
  std::vector<sim::Finding> findings, notes;  // of the DMA hazard monitor
  std::optional<sim::Fault> fault;            // a kernel faulted: no logits, and what ran behind it is missing
  std::vector<std::string> host_work;         // tensors that the host made, "causal mask"
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const models::LlamaConfig& config() const = 0;
  virtual bool has_values() const = 0;
  /// Cycles of IterationResult are so many a second; 0 without a clock.
  virtual double clock_hz() const = 0;

  /// Room for a sequence of at most `most` tokens. False when there is none now.
  virtual bool begin(std::int64_t sequence, std::int64_t most) = 0;
  virtual void end(std::int64_t sequence) = 0;
  /// Tokens it has taken.
  virtual std::int64_t length(std::int64_t sequence) const = 0;

  /// Throws RuntimeError for tokens that do not fit the sequence or the vocabulary. A fault of a kernel is a result.
  virtual IterationResult run(const Iteration& iteration) = 0;
};

}  // namespace mtsim::runtime
