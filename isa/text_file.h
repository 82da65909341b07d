// SPDX-License-Identifier: Apache-2.0
// Text files in, with a limit: /dev/zero and a disk image are no kernels.
#pragma once

#include <cstddef>
#include <string>

namespace mtsim::isa {

inline constexpr std::size_t k_max_text_bytes = std::size_t{16} << 20;

/// The bytes of a file or pipe, which FileUse gets to know. Throws IsaError (code "unreadable") when it cannot be read,
/// is a folder, a device or a named pipe, or has more than k_max_text_bytes.
std::string read_text_file(const std::string& path);

}  // namespace mtsim::isa
