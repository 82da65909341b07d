// SPDX-License-Identifier: Apache-2.0
// safetensors, the format of Hugging Face checkpoints: the length of a JSON header, the header, the tensors.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/tensor.h"

namespace mtsim::models {

/// The tensors of a file, by their place. Throws ModelError for a header that is cut short, no JSON or not in the
/// format, and, naming the tensor, for a size that is not that of shape and type, for bytes outside the file, shared by
/// two or belonging to none.
std::vector<StoredTensor> safetensors_tensors(std::string_view bytes, const std::string& file);

/// Of a model.safetensors.index.json: for each tensor the file of this folder that has it. Throws ModelError.
std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& file);

}  // namespace mtsim::models
