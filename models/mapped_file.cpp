// SPDX-License-Identifier: Apache-2.0
#include "models/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "models/error.h"

namespace mtsim::models {

MappedFile::MappedFile(std::string path) : m_path(std::move(path)) {
  const auto refuse = [&](const char* reason) {
    throw ModelError(fmt::format("{}: cannot be read: {}; check path and rights", m_path, reason));
  };
  if (m_path.find('\0') != std::string::npos) throw ModelError("a path with a zero byte in it; remove it");
  // Not to wait for the writer of a named pipe.
  const int descriptor = ::open(m_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) refuse(std::strerror(errno));
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    refuse("it is no regular file");
  }
  m_size = static_cast<std::uint64_t>(status.st_size);
  m_modified_ns = static_cast<std::int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  // A file of no bytes cannot be mapped, and needs no memory.
  void* data = m_size == 0 ? nullptr : ::mmap(nullptr, m_size, PROT_READ, MAP_SHARED, descriptor, 0);
  const int error = errno;
  ::close(descriptor);
  if (data == MAP_FAILED) refuse(std::strerror(error));
  m_data = static_cast<const char*>(data);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : m_path(std::move(other.m_path)),
      m_data(std::exchange(other.m_data, nullptr)),
      m_size(std::exchange(other.m_size, 0)),
      m_modified_ns(other.m_modified_ns) {}

void release_pages(std::string_view bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(bytes.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  // Only a hint: what fails to leave stays.
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (m_data != nullptr) ::munmap(const_cast<char*>(m_data), m_size);
}

}  // namespace mtsim::models
