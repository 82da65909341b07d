// SPDX-License-Identifier: Apache-2.0
// The two ways a command ends badly. Only main turns them into exit codes.
#pragma once

#include <stdexcept>
#include <string>

namespace mtsim::scenarios {

/// Wrong usage or input (exit 2): what, where, the value, what to do.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The simulated program could not finish, e.g. a deadlock (exit 1).
class ProgramFailed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace mtsim::scenarios
