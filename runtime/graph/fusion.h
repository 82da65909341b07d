// SPDX-License-Identifier: Apache-2.0
// Density-driven fusion (paper, III-C1): operators become units "[low]-high-[low]" whose intermediate values stay on
// chip. A unit ends where one of the paper's two constraints says so, and it says which.
//
//   closed data dependence  What passes between two operators of a unit does not leave the chip on its way. So a high-
//                           density operator with weights begins a unit: it needs whole rows of its input before its
//                           first result, and its weights would stream again for every block of rows. Those that read
//                           the same activation (Q, K and V; gate and up) are one stage. What has no weights (Q K^T and
//                           weights times V) works on blocks of rows and goes on in its unit.
//   on-chip capacity        What the unit holds at a time and what the operator at work needs fit GSM, AM and SM.
//
// A sum over a tensor-parallel group is a unit of its own. A low-density operator joins the unit that makes its input,
// else the unit that alone reads its result. A unit does not cross from layer to layer, where a pipeline stage may end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/graph.h"

namespace mtsim::runtime {

/// Bytes.
struct OnChip {
  std::int64_t sm = 0, am = 0, gsm = 0;  // SM and AM of one core
};

/// From this density on (models::Graph::density) an operator counts as high: those of the Llama family have at most 5
/// or at least a head's width.
inline constexpr double k_high_density = 8;

/// What fusion has to know of the machine and its kernels.
struct FusionTarget {
  OnChip capacity;
  std::int64_t bytes_per_element = 0;
  /// What the kernel of a node takes while it works.
  std::function<OnChip(const models::Node&)> working_set;
  /// Whether the kernel of `high` applies `low` to its result before that leaves AM.
  std::function<bool(const models::Node& high, const models::Node& low)> has_epilogue;
  /// Whether one kernel has both operators on rows, so that only blocks of what passes between them are there at a
  /// time. Absent: it has any two.
  std::function<bool(const models::Node& maker, const models::Node& reader)> one_kernel = {};
};

struct FusionStop {
  int from = -1, to = -1;  // nodes between which a unit ends
  std::string why;
};

struct FusionUnit {
  std::vector<int> nodes;         // in order of execution
  std::vector<int> on_chip;       // tensors that stay on chip, of which
  std::vector<int> in_gsm;        //   these lie in GSM as a whole; others are there in blocks or in AM
  std::int64_t gsm_bytes = 0;     // for these, and the largest working set
  bool high = false;              // has a high-density operator
  std::vector<FusionStop> stops;  // why its inputs and outputs are not in it
};

struct Fusion {
  std::vector<FusionUnit> units;  // in order of execution
  std::vector<int> unit_of;       // of each node
};

/// Throws models::ModelError for what is no graph (Graph::order).
Fusion fuse(const models::Graph& graph, const FusionTarget& target);
/// Each node a unit of its own.
Fusion no_fusion(const models::Graph& graph);

}  // namespace mtsim::runtime
