// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace mtsim::models {

/// A model that cannot be used: what is wrong, in which file, at which key or tensor, the value, what to do.
class ModelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mtsim::models
