// SPDX-License-Identifier: Apache-2.0
// Whole files in and out; every failure is a UsageError that names the path and the reason.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::scenarios {

std::string read_text(const std::string& path);
std::vector<std::byte> read_bytes(const std::string& path);
void write_text(const std::string& path, std::string_view text);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

/// UsageError unless a file could be created at `path`: asked before long work whose result goes there.
void require_writable(const std::string& path);

/// `path` as seen from the folder of the file `from`; absolute paths stay.
std::string relative_to(const std::string& from, const std::string& path);

}  // namespace mtsim::scenarios
