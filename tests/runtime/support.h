// SPDX-License-Identifier: Apache-2.0
// What the tests of the runtime share: the process's cluster, folders, third-party data, what is thrown.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint.h"
#include "models/random_model.h"
#include "runtime/backend/cluster_backend.h"
#include "runtime/error.h"
#include "sim/cluster.h"
#include "tests/support/temporary_folder.h"

namespace mtsim::runtime::test {

const sim::MachineConfig& machine();
/// Clusters of the process, their memories empty; at most k_clusters.
inline constexpr std::size_t k_clusters = 4;
std::vector<sim::Cluster*> fresh_clusters(std::size_t count, const sim::ClusterOptions& options);
/// The first of them.
sim::Cluster& fresh(const sim::ClusterOptions& options);

/// What RuntimeError says; "" when nothing is thrown.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

using Folder = mtsim::test::TemporaryFolder;

/// 2 layers of width 128, GQA 4 over 2 of heads of 32, no padding anywhere.
models::RandomModel small_model();
/// Written to `folder` and opened.
models::Checkpoint make_model(const Folder& folder, const models::RandomModel& model);

/// Logits of every token of `ids`, given in parts of `chunk` tokens.
std::vector<float> logits_of(Backend& backend, std::span<const std::int64_t> ids, std::int64_t chunk);

/// What roundings may put logits off by, if they are random. A rounding is off by u / sqrt(3) in deviation, u = 2^-24
/// in FP32 and 2^-11 in FP16; the partial sums of n terms of random signs grow as the root of their number, so that a
/// sum is off by sqrt(n / 6) u relative to its length. A layer has ten such steps in a row (two norms, Q K V, RoPE,
/// scores, softmax, values, O, gate and up with SiLU, down), norm and head two more. In FP16 four of the ten, and the
/// head, are products whose sums are in FP16 as long as k_promote says; the others are in FP32 and rounded once. Four
/// deviations, relative to the length of the head's row times that of its vector, of which the largest logit comes
/// near.
double rounding_bound(const models::LlamaConfig& config, kernels::DType dtype, std::span<const float> logits);
/// The largest |a|.
double largest(std::span<const float> a);
/// The largest |a - b|.
double largest_difference(std::span<const float> a, std::span<const float> b);

}  // namespace mtsim::runtime::test
