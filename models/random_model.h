// SPDX-License-Identifier: Apache-2.0
// A made-up Llama of any shape, as a Hugging Face folder: the same seed gives the same bytes on every host.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/tensor.h"

namespace mtsim::models {

/// Special tokens <unk>, <s>, </s>, the 256 bytes and the space, which every made vocabulary has.
inline constexpr std::int64_t k_min_made_vocabulary = 3 + 256 + 1;

struct RandomModel {
  LlamaConfig config;                    // its name is not used
  ElementType type = ElementType::bf16;  // F32, F16 or BF16
  std::uint64_t seed = 1;
  std::uint64_t shard_bytes = 0;  // a new file before it would hold more weights; 0: one file
};

struct WrittenModel {
  std::vector<std::string> files;  // names in the folder
  std::uint64_t weight_bytes = 0;
};

using WriteProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t all_bytes)>;

/// Writes config.json, the safetensors and a tokenizer.model, each weight when it is made. The folder takes its place
/// when it is complete; an exception, from `progress` too, leaves nothing. Throws ModelError for what no model can be,
/// when `folder` exists and `replace` is false or it holds anything but a model, and when something cannot be written.
WrittenModel write_random_model(const std::string& folder, const RandomModel& model, bool replace,
                                const WriteProgress& progress = {});

/// The bytes of its tokenizer.model: characters, then syllables and words of syllables, to `size` pieces.
std::string made_tokenizer(std::int64_t size);

}  // namespace mtsim::models
