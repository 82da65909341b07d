// SPDX-License-Identifier: Apache-2.0
#include "models/packed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <system_error>

#include "models/error.h"

namespace mtsim::models {

namespace {

constexpr std::string_view k_magic = "mtsim packed weights 1\n";

std::string header_of(const std::string& key) { return fmt::format("{}{}\n{}", k_magic, key.size(), key); }

/// The file when it is there and what is wanted; an old one is no error.
std::optional<MappedFile> find(const std::string& path, const std::string& key, std::uint64_t content_bytes) {
  if (::access(path.c_str(), R_OK) != 0) return std::nullopt;
  MappedFile file(path);
  const bool fits =
      file.text().starts_with(header_of(key)) && file.size() == packed_content_offset(key) + content_bytes;
  return fits ? std::optional(std::move(file)) : std::nullopt;
}

/// The file while it is made. Whoever holds its lock makes it.
class Unfinished {
 public:
  explicit Unfinished(std::string path) : m_path(std::move(path)), m_temporary(m_path + ".tmp") {
    for (;;) {
      m_descriptor = ::open(m_temporary.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
      if (m_descriptor < 0) refuse(errno);
      while (::flock(m_descriptor, LOCK_EX) != 0)
        if (errno != EINTR) refuse(errno);
      // While we waited, the one before us may have finished and moved it away.
      struct stat ours {
      }, there{};
      if (::fstat(m_descriptor, &ours) == 0 && ::stat(m_temporary.c_str(), &there) == 0 && ours.st_ino == there.st_ino)
        return;
      ::close(m_descriptor);
    }
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    if (m_data != nullptr) ::munmap(m_data, m_size);
    if (!m_done) ::unlink(m_temporary.c_str());
    if (m_descriptor >= 0) ::close(m_descriptor);
  }

  std::span<char> map(std::uint64_t size) {
    // Space is taken first: a disk that fills up while mapped memory is written ends the process.
    if (::ftruncate(m_descriptor, 0) != 0) refuse(errno);
    if (const int error = ::posix_fallocate(m_descriptor, 0, static_cast<off_t>(size)); error != 0) refuse(error);
    void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, m_descriptor, 0);
    if (data == MAP_FAILED) refuse(errno);
    m_data = static_cast<char*>(data);
    m_size = size;
    return {m_data, size};
  }

  void finish() {
    if (::msync(m_data, m_size, MS_SYNC) != 0 || ::fsync(m_descriptor) != 0) refuse(errno);
    if (std::rename(m_temporary.c_str(), m_path.c_str()) != 0) refuse(errno);
    m_done = true;
  }

 private:
  [[noreturn]] void refuse(int error) const {
    throw ModelError(
        fmt::format("{}: the packed weights cannot be written: {}; check rights and space, or set MTSIM_MODEL_CACHE "
                    "to another folder",
                    m_path, std::strerror(error)));
  }

  std::string m_path, m_temporary;
  int m_descriptor = -1;
  char* m_data = nullptr;
  std::uint64_t m_size = 0;
  bool m_done = false;
};

}  // namespace

std::uint64_t packed_content_offset(const std::string& key) {
  return (header_of(key).size() + k_page_bytes - 1) / k_page_bytes * k_page_bytes;
}

MappedFile open_packed_file(const std::string& path, const std::string& key, std::uint64_t content_bytes,
                            const std::function<void(std::span<char>)>& fill) {
  if (auto file = find(path, key, content_bytes)) return std::move(*file);
  Unfinished unfinished(path);
  if (auto file = find(path, key, content_bytes)) return std::move(*file);  // another process made it meanwhile
  const std::string header = header_of(key);
  const auto bytes = unfinished.map(packed_content_offset(key) + content_bytes);
  std::memcpy(bytes.data(), header.data(), header.size());
  fill(bytes.subspan(packed_content_offset(key)));
  unfinished.finish();
  return MappedFile(path);
}

}  // namespace mtsim::models
