// SPDX-License-Identifier: Apache-2.0
// GGUF, the format of llama.cpp: metadata and tensors in one file (versions 2 and 3, little-endian).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/config.h"
#include "models/tensor.h"

namespace mtsim::models {

/// The numbers the format gives its types.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

const char* to_string(GgufType type);

struct GgufArray {
  GgufType type = GgufType::u8;
  std::uint64_t count = 0;
  std::string_view bytes;  // of its elements, as they lie in the file
};

using GgufValue = std::variant<std::int64_t, double, bool, std::string_view, GgufArray>;

/// A tensor as the file announces it. Its type may be one nobody here reads.
struct GgufTensor {
  std::string name;
  std::uint32_t type = 0;
  std::vector<std::int64_t> shape;  // [out, in]: the other way round than in the file
  std::uint64_t offset = 0;         // from the file's first byte
};

class GgufFile {
 public:
  /// `bytes` are those of the whole file and stay the caller's. Throws ModelError.
  GgufFile(std::string_view bytes, std::string file);

  const std::string& file() const { return m_file; }
  const std::map<std::string, GgufValue, std::less<>>& metadata() const { return m_metadata; }
  const std::vector<GgufTensor>& tensors() const { return m_tensors; }

  // The value of a key; nothing when it is absent, ModelError when it is of another type.
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<std::string_view> string(std::string_view key) const;
  std::optional<std::vector<std::string_view>> strings(std::string_view key) const;
  std::optional<std::vector<float>> floats(std::string_view key) const;
  std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;

 private:
  const GgufValue* find(std::string_view key) const;
  const GgufArray* array(std::string_view key) const;

  std::string m_file;
  std::map<std::string, GgufValue, std::less<>> m_metadata;
  std::vector<GgufTensor> m_tensors;
};

/// The architecture numbers in the metadata. Throws ModelError for an architecture that is not implemented.
LlamaConfig config_of(const GgufFile& file);

/// The tensors with their types. Throws ModelError for one whose type is not F32, F16, BF16 or Q8_0, or that lies where
/// it cannot; `file_bytes` is the file's size.
std::vector<StoredTensor> stored_tensors(const GgufFile& file, std::uint64_t file_bytes);

}  // namespace mtsim::models
