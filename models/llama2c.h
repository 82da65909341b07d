// SPDX-License-Identifier: Apache-2.0
// The .bin of llama2.c in its legacy layout: seven 32-bit numbers, then all weights in FP32 without names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "models/tensor.h"

namespace mtsim::models {

inline constexpr std::size_t k_llama2c_header_bytes = 28;

/// Where its tensors lie, by the names of a Hugging Face checkpoint. Throws ModelError unless the file's size is
/// exactly that of its header, weights and RoPE tables.
std::vector<StoredTensor> llama2c_tensors(const LlamaConfig& config, std::uint64_t file_bytes, const std::string& file);

}  // namespace mtsim::models
