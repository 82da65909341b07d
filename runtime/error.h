// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace mtsim::runtime {

/// An inference that cannot run as asked: what, the numbers, what to do.
class RuntimeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mtsim::runtime
