// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace mtsim::sim {

/// A DSP program or host that asked for something impossible: what, where (core, cycle), the value, what to do.
class SimError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mtsim::sim
