// SPDX-License-Identifier: Apache-2.0
// The values of an all-reduce by direct exchange: each cluster of a group gets the part of every other one, and adds
// them up itself in the order of the group (the add kernel). What it takes on the machine: sim::LinkModel.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "runtime/comm/transport.h"

namespace mtsim::runtime {

/// `part(i)`: of the i-th of the group. `put(i, from, bytes)`: to the i-th, of the `from`-th. Both are asked for
/// clusters that this process owns.
void exchange_parts(Transport& transport, std::span<const int> group, const std::function<Bytes(std::size_t)>& part,
                    const std::function<void(std::size_t, std::size_t, const Bytes&)>& put);

}  // namespace mtsim::runtime
