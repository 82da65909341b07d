// SPDX-License-Identifier: Apache-2.0
#include "models/packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "models/error.h"
#include "models/packed_file.h"
#include "models/row_blocks.h"

namespace mtsim::models {

namespace {

namespace fs = std::filesystem;

/// Rows of a source that are transposed together: 128 bytes of each row of the result in FP16.

std::uint64_t align(std::uint64_t bytes) { return (bytes + k_page_bytes - 1) / k_page_bytes * k_page_bytes; }

std::uint64_t bytes_of(const MatrixView& view, std::int64_t element_bytes) {
  return static_cast<std::uint64_t>(view.rows * view.row_elements * element_bytes);
}

/// Rows and columns; where the bytes are comes later.
MatrixView view_of(const Checkpoint& checkpoint, const PackedMatrix& matrix) {
  assert(!matrix.parts.empty());
  MatrixView view;
  std::int64_t out = 0, in = 0;
  for (const auto& part : matrix.parts) {
    const Tensor& tensor = checkpoint.tensor(part.role, part.layer);
    // Vectors join end to end, as matrices do along out.
    const bool is_vector = shape_of(part.role, checkpoint.config()).size() == 1;
    out += is_vector ? tensor.columns : tensor.rows;
    assert(in == 0 || in == (is_vector ? 1 : tensor.columns));
    in = is_vector ? 1 : tensor.columns;
  }
  const bool is_vector = shape_of(matrix.parts.front().role, checkpoint.config()).size() == 1;
  const bool lies = matrix.transposed || is_vector;  // a vector is one row
  view.rows = lies ? in : out;
  view.columns = lies ? out : in;
  view.row_elements = matrix.row_elements == 0 ? view.columns : matrix.row_elements;
  assert(view.row_elements >= view.columns);
  return view;
}

bool can_borrow(const Tensor& tensor, const PackedMatrix& matrix, const MatrixView& view, ElementType type) {
  const bool is_row = tensor.rows == 1;
  const auto address = reinterpret_cast<std::uintptr_t>(tensor.bytes.data());
  return matrix.parts.size() == 1 && tensor.type == type && (!matrix.transposed || is_row) &&
         view.row_elements == view.columns && address % static_cast<std::uintptr_t>(row_bytes(type, 1)) == 0;
}

/// All parts into `to` [rows, row_elements], which is zero.
template <class T>
void pack(const Checkpoint& checkpoint, const PackedMatrix& matrix, const MatrixView& view, T* to) {
  std::int64_t done = 0;  // rows of out
  for (const auto& part : matrix.parts) {
    const Tensor& tensor = checkpoint.tensor(part.role, part.layer);
    const bool is_vector = shape_of(part.role, checkpoint.config()).size() == 1;
    if (is_vector) {
      read_rows(tensor, 0, 1, to + done);
      done += tensor.columns;
      continue;
    }
    for_each_row_block<T>(tensor, [&](std::int64_t row, std::int64_t rows, const T* block) {
      for (std::int64_t i = 0; !matrix.transposed && i < rows; ++i)
        std::copy_n(block + i * tensor.columns, tensor.columns, to + (done + row + i) * view.row_elements);
      for (std::int64_t j = 0; matrix.transposed && j < tensor.columns; ++j)
        for (std::int64_t i = 0; i < rows; ++i)
          to[j * view.row_elements + done + row + i] = block[i * tensor.columns + j];
    });
    done += tensor.rows;
  }
}

/// All that decides about the bytes of the cache.
std::string key_of(const Checkpoint& checkpoint, ElementType type, const std::vector<PackedMatrix>& matrices,
                   const std::vector<MatrixView>& views) {
  std::string key = fmt::format("type {}\n", to_string(type));
  for (const MappedFile& file : checkpoint.files())
    key += fmt::format("file {} {} {}\n", file.size(), file.modified_ns(),
                       fs::absolute(file.path()).lexically_normal().string());
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (views[i].borrowed) continue;
    key += fmt::format("matrix {}x{} of {}{}:", views[i].rows, views[i].columns, views[i].row_elements,
                       matrices[i].transposed ? " transposed" : "");
    for (const auto& part : matrices[i].parts) key += fmt::format(" {}.{}", to_string(part.role), part.layer);
    key += '\n';
  }
  return key;
}

/// FNV-1a, for a file name: the key itself is compared.
std::uint64_t hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

/// A checkpoint that changes, or another choice of matrices in the same type, replaces its old file.
std::string path_of(const Checkpoint& checkpoint, ElementType type, const std::vector<PackedMatrix>& matrices) {
  const fs::path folder = model_cache_folder();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw ModelError(fmt::format("{}: cannot make this folder for packed weights: {}; set MTSIM_MODEL_CACHE to another",
                                 folder.string(), error.message()));
  const fs::path source = fs::absolute(checkpoint.path()).lexically_normal();
  const bool is_transposed =
      std::any_of(matrices.begin(), matrices.end(), [](const auto& matrix) { return matrix.transposed; });
  const std::string identity =
      fmt::format("{} {} {} {}", source.string(), to_string(type), is_transposed, matrices.size());
  return (folder / fmt::format("{}-{:016x}.weights", checkpoint.config().name, hash(identity))).string();
}

}  // namespace

std::string model_cache_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const auto folder = variable("MTSIM_MODEL_CACHE"); !folder.empty()) return folder;
  if (const auto folder = variable("XDG_CACHE_HOME"); !folder.empty()) return (fs::path(folder) / "mtsim").string();
  if (const auto folder = variable("HOME"); !folder.empty()) return (fs::path(folder) / ".cache" / "mtsim").string();
  throw ModelError("there is no folder for packed weights: set MTSIM_MODEL_CACHE to one");
}

PackedWeights::PackedWeights(const Checkpoint& checkpoint, ElementType type, std::vector<PackedMatrix> matrices,
                             const Progress& progress)
    : m_checkpoint(checkpoint), m_matrices(std::move(matrices)), m_checked(m_matrices.size(), true) {
  assert(type == ElementType::f32 || type == ElementType::f16);
  const std::int64_t element_bytes = row_bytes(type, 1);
  std::vector<std::uint64_t> offsets(m_matrices.size());
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < m_matrices.size(); ++i) {
    const auto& matrix = m_matrices[i];
    MatrixView view = view_of(checkpoint, matrix);
    const Tensor& tensor = checkpoint.tensor(matrix.parts.front().role, matrix.parts.front().layer);
    view.borrowed = can_borrow(tensor, matrix, view, type);
    if (view.borrowed) {
      view.data = reinterpret_cast<const std::byte*>(tensor.bytes.data());
      m_checked[i] = false;
    } else {
      offsets[i] = bytes;
      bytes += align(bytes_of(view, element_bytes));
    }
    m_views.push_back(view);
  }
  if (bytes == 0) return;
  const std::string key = key_of(checkpoint, type, m_matrices, m_views);
  m_cache.emplace(open_packed_file(path_of(checkpoint, type, m_matrices), key, bytes, [&](std::span<char> content) {
    for (std::size_t i = 0; i < m_matrices.size(); ++i) {
      if (m_views[i].borrowed) continue;
      if (progress) progress(offsets[i], bytes);
      char* to = content.data() + offsets[i];  // on a page, so that it is aligned
      if (type == ElementType::f32)
        pack(checkpoint, m_matrices[i], m_views[i], reinterpret_cast<float*>(to));
      else
        pack(checkpoint, m_matrices[i], m_views[i], reinterpret_cast<std::uint16_t*>(to));
      // So that checkpoint and cache are never both in this process's memory.
      release_pages({to, bytes_of(m_views[i], element_bytes)});
      for (const auto& part : m_matrices[i].parts) release_pages(checkpoint.tensor(part.role, part.layer).bytes);
    }
    if (progress) progress(bytes, bytes);
  }));
  const char* content = m_cache->text().data() + packed_content_offset(key);
  for (std::size_t i = 0; i < m_views.size(); ++i)
    if (!m_views[i].borrowed) m_views[i].data = reinterpret_cast<const std::byte*>(content + offsets[i]);
}

const MatrixView& PackedWeights::matrix(std::size_t index) {
  if (!m_checked[index]) {
    const auto& part = m_matrices[index].parts.front();
    m_checkpoint.tensor(part.role, part.layer).check_values();
    m_checked[index] = true;
  }
  return m_views[index];
}

}  // namespace mtsim::models
