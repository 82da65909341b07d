// SPDX-License-Identifier: Apache-2.0
// One microkernel call packet by packet, on symbolic pointers: what the footprint of a call is worked out from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/executor.h"

namespace mtsim::sim {

struct CallTrace {
  struct Issue {
    int packet = 0;
    std::int64_t cycle = 0;
  };
  struct Access {             // an executed load or store
    std::uint32_t issue = 0;  // index into issues
    std::uint16_t instruction = 0;
    std::uint16_t pointer = 0;  // the parameter its address derives from
    std::int64_t offset = 0;    // of the address, from that pointer
  };
  KernelProfile profile;
  std::vector<Issue> issues;
  std::vector<Access> accesses;  // in the order of execution
};

/// As profile(), and keeps every issue and access. Same precondition.
CallTrace trace(const DecodedProgram& program, std::span<const std::uint64_t> arguments,
                const RunOptions& options = {});

}  // namespace mtsim::sim
