// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "runtime/backend/reference_backend.h"
#include "tests/runtime/support.h"

using namespace mtsim;
using namespace mtsim::runtime;
using namespace mtsim::runtime::test;

TEST_CASE("a small model on a cluster has the logits of the reference") {
  const Folder folder;
  const models::Checkpoint checkpoint = make_model(folder, small_model());
  ReferenceBackend reference(checkpoint);
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < 40; ++i) ids.push_back((7 * i + 3) % 300);
  const std::vector<float> expected = logits_of(reference, ids, 40);
  ClusterBackendOptions options;
  options.dtype = kernels::DType::f32;
  options.longest = 96;
  ClusterBackend backend(fresh({}), checkpoint.config(), &checkpoint, options);
  CHECK(largest_difference(logits_of(backend, ids, 40), expected) < 1e-4);
}
