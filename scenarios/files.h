// SPDX-License-Identifier: Apache-2.0
// Whole files in and out; every failure is a UsageError that names the path and the reason.
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

// All or nothing: until the new file is complete the old one stays as it was.
void write_text(const std::string& path, std::string_view text);
void write_bytes(const std::string& path, std::span<const std::byte> bytes);

/// A file written in full beside `path`, which replaces it at commit() and goes away otherwise.
class StagedFile {
 public:
  StagedFile(const std::string& path, std::string_view content);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;
  void commit();

 private:
  std::string m_path;       // as given
  std::string m_target;     // what it leads to
  std::string m_temporary;  // empty once committed, and for devices, which are written directly
};

/// UsageError unless a file could be written at `path`: asked before long work whose result goes there.
void require_writable(const std::string& path);

/// Whether writing to one would change the other; never so for devices such as /dev/null.
bool same_file(const std::string& a, const std::string& b);

/// `path` as seen from the folder of the file `from`; absolute paths stay.
std::string relative_to(const std::string& from, const std::string& path);

}  // namespace mtsim::scenarios
