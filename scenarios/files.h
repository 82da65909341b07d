// SPDX-License-Identifier: Apache-2.0
// Whole files in, which isa::FileUse gets to know; every failure is a UsageError that names the path and the reason.
// Files out: sim/config/output_file.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mtsim::scenarios {

std::string read_text(const std::string& path);

/// Bytes of a regular file that can be read.
std::int64_t file_bytes(const std::string& path);
/// The first bytes of a file, as many as `bytes` has room for.
void read_bytes(const std::string& path, std::span<std::byte> bytes);

/// `path` as seen from the folder of the file `from`; absolute paths stay.
std::string relative_to(const std::string& from, const std::string& path);

}  // namespace mtsim::scenarios
