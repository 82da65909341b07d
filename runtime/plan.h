// SPDX-License-Identifier: Apache-2.0
// How an iteration runs: over how many clusters, and on each of them what the ablation steps of Table VII choose
// between, as data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/dtype.h"

namespace mtsim::runtime {

enum class OperatorLibrary : std::uint8_t {
  naive,     // scalar code as a compiler makes it (kernels/naive)
  microcode  // vector microkernels, transfers under way while they compute
};
enum class Launches : std::uint8_t {
  per_operator,  // eq. (11): each operator, and of unfused attention each step of each head, is a launch
  per_graph      // the unified kernel of III-C3: one for the whole graph
};

struct ExecutionPlan {
  std::string name;
  OperatorLibrary operators = OperatorLibrary::microcode;
  bool fusion = true;
  kernels::AttentionVariant attention = kernels::AttentionVariant::mt;
  Launches launches = Launches::per_graph;

  /// a0: naive operators. a1: the operator library. a2: fusion, MT attention and the unified kernel as well. Throws
  /// RuntimeError with the names there are.
  static ExecutionPlan named(std::string_view name);
  static std::vector<std::string_view> names();
};

/// How many clusters compute an iteration together.
struct Parallelism {
  std::int64_t tp = 1, pp = 1;  // tensor-parallel share of each pipeline stage, stages

  std::int64_t clusters() const { return tp * pp; }
  std::string str() const;  // "tp=2,pp=2"
};

struct InferencePlan {
  ExecutionPlan execution = ExecutionPlan::named("a2");
  Parallelism parallelism;

  /// Words between commas, each at most once: a name of ExecutionPlan, tp=N, pp=N. "a2,tp=2,pp=2". Throws RuntimeError
  /// with the word.
  static InferencePlan parse(std::string_view text);
};

}  // namespace mtsim::runtime
