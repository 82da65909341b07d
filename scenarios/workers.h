// SPDX-License-Identifier: Apache-2.0
// Independent work in child processes: a process elaborates one machine, so other machines need others, and each fills
// a host core.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace mtsim::scenarios {

/// Cores this process may use, of a host it shares with as many others like it; at least 1.
std::size_t usable_cores(int sharing = 1);

/// Calls work(0) .. work(count - 1), each in a process of its own, as many at a time as there are usable cores, and
/// gives what they returned. `on_done` is called here after each. When some fail, the first one's error is thrown:
/// UsageError for wrong input, ProgramFailed for the rest and for a process that died.
std::vector<std::string> in_workers(std::size_t count, const std::function<std::string(std::size_t)>& work,
                                    const std::function<void()>& on_done = {});

}  // namespace mtsim::scenarios
