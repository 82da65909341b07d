// SPDX-License-Identifier: Apache-2.0
// Weights in the type and layout a consumer wants: borrowed from the checkpoint where it has them so, else from a cache
// file that is packed once and mapped, so that no weight is in memory twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint.h"

namespace mtsim::models {

/// One matrix of a consumer.
struct PackedMatrix {
  struct Part {
    Role role = Role::embedding;
    std::int64_t layer = 0;
  };
  std::vector<Part> parts;        // one after the other along out: Q, K and V for one product; the same in
  bool transposed = false;        // [in, out] instead of [out, in]
  std::int64_t row_elements = 0;  // from row to row, zeros behind the columns; 0: the columns, no gap
};

struct MatrixView {
  const std::byte* data = nullptr;  // [rows, row_elements], row-major; lives as long as checkpoint and PackedWeights
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_elements = 0;
  bool borrowed = false;  // pages of the checkpoint
};

class PackedWeights {
 public:
  using Progress = std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

  /// `type` is F32 or F16. Packs what cannot be borrowed, unless the cache has it: a file in model_cache_folder(),
  /// known by path, size and time of the checkpoint's files, type and layout. Throws ModelError for a weight that is no
  /// number, and when the cache cannot be written.
  PackedWeights(const Checkpoint& checkpoint, ElementType type, std::vector<PackedMatrix> matrices,
                const Progress& progress = {});

  /// Borrowed weights are looked at the first time: ModelError for one that is no number.
  const MatrixView& matrix(std::size_t index);

  std::size_t size() const { return m_matrices.size(); }
  /// The file, where one was needed.
  const std::optional<MappedFile>& cache() const { return m_cache; }

 private:
  const Checkpoint& m_checkpoint;
  std::vector<PackedMatrix> m_matrices;
  std::vector<MatrixView> m_views;
  std::vector<bool> m_checked;
  std::optional<MappedFile> m_cache;
};

/// $MTSIM_MODEL_CACHE, else mtsim in $XDG_CACHE_HOME, else ~/.cache/mtsim. Throws ModelError when none of them is set.
std::string model_cache_folder();

}  // namespace mtsim::models
