// SPDX-License-Identifier: Apache-2.0
#include "scenarios/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse_write(const std::string& path, int error) {
  throw UsageError(
      fmt::format("{}: cannot be written: {}; check folder, rights and the space left", path, std::strerror(error)));
}

/// The system would cut the path at a zero byte and take another file.
void require_path(const std::string& path) {
  if (path.empty()) throw UsageError("an empty name is no file; name one");
  if (path.find('\0') == std::string::npos) return;
  throw UsageError(fmt::format("{}...: has a zero byte in its name; remove it", path.substr(0, path.find('\0'))));
}

bool is_special(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored) && !fs::is_regular_file(path, ignored);
}

std::ifstream open(const std::string& path) {
  require_path(path);
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw UsageError(fmt::format("{}: is a folder; name a file", path));
  if (is_special(path)) throw UsageError(fmt::format("{}: cannot be read: not a regular file; name a file", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(fmt::format("{}: cannot be read: {}; check the path", path, std::strerror(errno)));
  return in;
}

void read_into(const std::string& path, std::ifstream& in, char* data, std::size_t bytes) {
  in.read(data, static_cast<std::streamsize>(bytes));
  if (!in) throw UsageError(fmt::format("{}: cannot be read: it ends before {} bytes", path, bytes));
}

void write_descriptor(const std::string& path, int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse_write(path, errno);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string folder_of(const std::string& path) {
  return fs::path(path).has_parent_path() ? fs::path(path).parent_path().string() : ".";
}

/// What a symbolic link leads to: the link stays, its target is replaced.
std::string target_of(const std::string& path) {
  std::error_code ignored;
  const fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : fs::path(path);
  return ignored ? path : target.string();
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ifstream in = open(path);
  std::string text(static_cast<std::size_t>(file_bytes(path)), '\0');
  read_into(path, in, text.data(), text.size());
  return text;
}

std::int64_t file_bytes(const std::string& path) {
  open(path);
  std::error_code error;
  const auto bytes = fs::file_size(path, error);
  if (error) throw UsageError(fmt::format("{}: cannot be read: {}", path, error.message()));
  return static_cast<std::int64_t>(bytes);
}

void read_bytes(const std::string& path, std::span<std::byte> bytes) {
  std::ifstream in = open(path);
  read_into(path, in, reinterpret_cast<char*>(bytes.data()), bytes.size());
}

StagedFile::StagedFile(const std::string& path, std::string_view content) : m_path(path) {
  require_path(path);
  m_target = target_of(path);
  const bool special = is_special(m_target);
  struct stat old {};
  const bool exists = !special && ::stat(m_target.c_str(), &old) == 0;
  if (!special) m_temporary = fmt::format("{}.{}.new", m_target, getpid());
  const int flags = O_WRONLY | O_CLOEXEC | (special ? 0 : O_CREAT | O_EXCL);
  const int descriptor = ::open((special ? m_target : m_temporary).c_str(), flags, 0666);
  if (descriptor < 0) refuse_write(path, errno);
  try {
    write_descriptor(path, descriptor, content);
    if (exists && ::fchmod(descriptor, old.st_mode & 07777) != 0) refuse_write(path, errno);
  } catch (const UsageError&) {
    ::close(descriptor);
    if (!special) std::remove(m_temporary.c_str());
    throw;
  }
  if (::close(descriptor) == 0) return;
  const int error = errno;
  if (!special) std::remove(m_temporary.c_str());
  refuse_write(path, error);
}

StagedFile::~StagedFile() {
  if (!m_temporary.empty()) std::remove(m_temporary.c_str());
}

void StagedFile::commit() {
  if (m_temporary.empty()) return;
  if (std::rename(m_temporary.c_str(), m_target.c_str()) != 0) refuse_write(m_path, errno);
  m_temporary.clear();
}

void write_text(const std::string& path, std::string_view text) { StagedFile(path, text).commit(); }

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  write_text(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

void require_writable(const std::string& path) {
  require_path(path);
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("'{}': is no file name; name a file to write", path));
  }
  const std::string target = target_of(path), folder = folder_of(target);
  if (!fs::is_directory(folder, ignored)) {
    throw UsageError(fmt::format("{}: cannot be written: there is no folder '{}'; make it first", path, folder));
  }
  if (fs::exists(target, ignored) && access(target.c_str(), W_OK) != 0) refuse_write(path, errno);
  if (!is_special(target) && access(folder.c_str(), W_OK) != 0) refuse_write(path, errno);
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code error;
  if (is_special(a) || is_special(b)) return false;
  if (fs::equivalent(a, b, error) && !error) return true;
  return fs::weakly_canonical(fs::absolute(a, error), error) == fs::weakly_canonical(fs::absolute(b, error), error) &&
         !error;
}

std::string relative_to(const std::string& from, const std::string& path) {
  return (fs::path(from).parent_path() / path).lexically_normal().string();
}

}  // namespace mtsim::scenarios
