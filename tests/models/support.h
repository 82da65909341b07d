// SPDX-License-Identifier: Apache-2.0
// What the tests of models share: folders, what is thrown, checkpoints to damage, GGUF files made here.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/checkpoint.h"
#include "models/error.h"
#include "models/random_model.h"
#include "tests/support/temporary_folder.h"

namespace mtsim::models::test {

using Json = nlohmann::ordered_json;

/// What ModelError says; "" when nothing is thrown.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const ModelError& error) {
    return error.what();
  }
  return "";
}

using Folder = mtsim::test::TemporaryFolder;

std::string read_file(const std::string& path);

/// 2 layers, GQA 4 over 2, 259 tokens and more: small enough to compute in no time.
RandomModel small_model();

/// small_model() in `folder`/model; the path.
std::string make_small_model(const Folder& folder, const std::function<void(RandomModel&)>& change = {});

/// A safetensors file taken apart, changed and put together again, its offsets as `change` left them.
void change_safetensors(const std::string& path, const std::function<void(Json& header, std::string& data)>& change);

/// config.json, changed.
void change_config(const std::string& folder, const std::function<void(Json&)>& change);

/// One row of a checkpoint as FP32.
std::vector<float> row(const Tensor& tensor, std::int64_t index);

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// GGUF text for text, by the format's description.
class GgufBuilder {
 public:
  struct Tensor {
    std::string name;
    std::vector<std::uint64_t> shape;  // in the file's order: [in, out]
    std::uint32_t type = 0;
    std::string bytes;
    std::optional<std::uint64_t> offset;  // where it lies, unless behind the one before
  };

  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::vector<std::pair<std::string, std::string>> metadata;  // key, type and value
  std::vector<Tensor> tensors;

  void integer(const std::string& key, std::uint32_t value);
  void number(const std::string& key, float value);
  void text(const std::string& key, std::string_view value);
  void texts(const std::string& key, const std::vector<std::string>& values);
  void numbers(const std::string& key, const std::vector<float>& values);
  void integers(const std::string& key, const std::vector<std::int32_t>& values);
  /// The key must be there.
  void remove(const std::string& key);
  Tensor& tensor(const std::string& name);

  std::string build() const;
};

/// A checkpoint as GGUF of the llama architecture: FP32, the rows of Q and K permuted for interleaved RoPE as llama.cpp
/// does.
GgufBuilder gguf_of(const Checkpoint& checkpoint);

}  // namespace mtsim::models::test
