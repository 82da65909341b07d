// SPDX-License-Identifier: Apache-2.0
// Weights as a cluster wants them, made of a checkpoint's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/dtype.h"
#include "models/checkpoint.h"

namespace mtsim::runtime {

/// Where an index of a checkpoint's matrix goes among `size`; what no index goes to is zero.
struct IndexMap {
  static constexpr std::int64_t k_nowhere = -1;  // another cluster has it
  std::int64_t size = 0;
  std::function<std::int64_t(std::int64_t)> at;  // empty: each where it is

  std::int64_t operator()(std::int64_t index) const { return at ? at(index) : index; }
};

/// [out, in] -> [in, out]. Throws models::ModelError for a weight that is no number.
std::vector<std::byte> pack_transposed(const models::Tensor& tensor, kernels::DType dtype, const IndexMap& out,
                                       const IndexMap& in);
/// As it is, in another type. `rows` of size 0: all of them.
std::vector<std::byte> pack(const models::Tensor& tensor, kernels::DType dtype, const IndexMap& rows,
                            const IndexMap& columns);

}  // namespace mtsim::runtime
