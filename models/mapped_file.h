// SPDX-License-Identifier: Apache-2.0
// A file as memory: its pages are read when they are touched and belong to the system's cache, not to this process.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtsim::models {

class MappedFile {
 public:
  /// Throws ModelError when `path` is no readable regular file.
  explicit MappedFile(std::string path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  const std::string& path() const { return m_path; }
  std::uint64_t size() const { return m_size; }
  /// Its bytes; they live as long as this object.
  std::string_view text() const { return {m_data, m_size}; }
  /// When it was last changed, in ns since 1970.
  std::int64_t modified_ns() const { return m_modified_ns; }

 private:
  std::string m_path;
  const char* m_data = nullptr;
  std::uint64_t m_size = 0;
  std::int64_t m_modified_ns = 0;
};

/// Says that mapped bytes are not needed for now: their pages leave this process; what was written to them stays in the
/// file.
void release_pages(std::string_view bytes);

}  // namespace mtsim::models
