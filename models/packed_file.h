// SPDX-License-Identifier: Apache-2.0
// A file that is made once under a key and mapped from then on. Private to models/.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "models/mapped_file.h"

namespace mtsim::models {

inline constexpr std::uint64_t k_page_bytes = 4096;

/// Where the content begins: behind the key, on a page of its own.
std::uint64_t packed_content_offset(const std::string& key);

/// The file at `path` with exactly this key and size of content. When it is not there, `fill` gets the zeroed bytes of
/// the content, in memory that is the new file's; it takes its place when it is complete and on the disk. Of several
/// processes one fills, the others wait. Throws ModelError when it cannot be written, and what `fill` throws.
MappedFile open_packed_file(const std::string& path, const std::string& key, std::uint64_t content_bytes,
                            const std::function<void(std::span<char>)>& fill);

}  // namespace mtsim::models
