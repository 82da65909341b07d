// SPDX-License-Identifier: Apache-2.0
// From the units of a graph to DSP programs: operators of the library, with operands in DDR or, inside a unit, in GSM.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "models/graph.h"
#include "runtime/graph/fusion.h"
#include "runtime/lower/operator_plans.h"
#include "runtime/plan.h"
#include "runtime/weights/device_model.h"
#include "sim/cluster.h"

namespace mtsim::runtime {

/// What the host brings to an iteration.
struct BatchInput {
  std::vector<std::int32_t> ids;          // of each token, sequence after sequence; those with one token come first
  std::vector<std::int64_t> logits_rows;  // tokens whose logits are wanted
  /// Blocks of a sequence's cache in a layer.
  std::function<kernels::AttentionBlocks(std::size_t sequence, int layer)> blocks;
};

/// A sum over a tensor-parallel group. Before the programs of its step run, each part lies in its place: this cluster's
/// own is there, the others' are brought by whoever drives the group.
struct PartialSums {
  std::vector<sim::Pointer> parts;  // by rank in the group, in DDR
  std::int64_t bytes = 0;           // of each
};

/// One operator as it is launched.
struct OperatorStep {
  std::string name;    // "layers.3.attention"
  std::string kernel;  // "gemm small_m + rope"
  int layer = -1;
  double macs = 0;
  std::vector<sim::DspProgram> programs;  // one behind the other
  std::optional<PartialSums> sums;        // what has to be there before
};

struct LoweredIteration {
  std::vector<OperatorStep> steps;
  sim::Pointer stream;  // of a part without embedding: where its input has to lie, [tokens, hidden], in DDR
  sim::Pointer result;  // logits [logits_rows, head rows] or stream [tokens, hidden], in DDR
  std::vector<std::string> host_work;  // tensors the host made for it
  std::int64_t gsm_bytes = 0;          // most that a unit keeps in GSM
};

/// Takes memory of the cluster's DDR behind what is allocated; the caller frees it when the iteration has run
/// (Cluster::release). Throws kernels::KernelError for what the library cannot do, RuntimeError for a graph it has no
/// operators for, sim::SimError when the DDR is full.
LoweredIteration lower(sim::Cluster& cluster, const models::Graph& graph, const Fusion& fusion,
                       const DeviceModel& model, const OperatorPlans& plans, const ExecutionPlan& plan,
                       const BatchShape& batch, const BatchInput& input);

}  // namespace mtsim::runtime
