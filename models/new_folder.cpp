// SPDX-License-Identifier: Apache-2.0
#include "models/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "models/error.h"

namespace mtsim::models {

namespace fs = std::filesystem;

namespace {

/// What processes left that ended without a word.
void remove_stale(const fs::path& path) {
  const std::string prefix = path.filename().string() + ".";
  std::error_code error;
  for (fs::directory_iterator entry(path.parent_path(), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || entry->path().extension() != ".tmp") continue;
    int owner = 0;
    const char* last = name.data() + name.size() - 4;
    const auto [stop, fault] = std::from_chars(name.data() + prefix.size(), last, owner);
    const bool is_gone = fault == std::errc() && stop == last && owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH;
    std::error_code ignored;
    if (is_gone) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

NewFolder::NewFolder(std::string path, bool replace, bool (*may_replace)(const std::string& name))
    : m_replace(replace) {
  std::error_code error;
  fs::path full = fs::absolute(path, error).lexically_normal();
  if (!full.has_filename()) full = full.parent_path();  // "dir/"
  m_path = full.string();
  if (fs::exists(fs::symlink_status(full, error))) {
    if (!replace) throw ModelError(fmt::format("{}: exists; choose another folder or replace it with --force", path));
    if (fs::is_symlink(full, error) || !fs::is_directory(full, error))
      throw ModelError(fmt::format("{}: is no folder; remove it first", path));
    for (const auto& entry : fs::directory_iterator(full)) {
      const std::string name = entry.path().filename().string();
      if (!entry.is_regular_file() || !may_replace(name))
        throw ModelError(fmt::format(
            "{}: holds '{}', which is no part of a model; remove it yourself or choose another folder", path, name));
    }
  }
  if (!fs::is_directory(full.parent_path(), error))
    throw ModelError(fmt::format("{}: there is no folder '{}'; make it first", path, full.parent_path().string()));
  remove_stale(full);
  m_temporary = fmt::format("{}.{}.tmp", m_path, ::getpid());
  fs::remove_all(m_temporary, error);  // of an earlier process of this number
  if (!fs::create_directory(m_temporary, error))
    throw ModelError(
        fmt::format("{}: cannot be written: {}; check folder, rights and the space left", path, error.message()));
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!m_temporary.empty()) fs::remove_all(m_temporary, ignored);
}

void NewFolder::commit() {
  const auto refuse = [&] {
    throw ModelError(fmt::format("{}: cannot be written: {}; check folder and rights", m_path, std::strerror(errno)));
  };
  std::error_code ignored;
  if (m_replace && fs::exists(m_path, ignored)) {
    // Exchanged in one step; the old one is under the temporary name then and goes with it.
    if (::renameat2(AT_FDCWD, m_temporary.c_str(), AT_FDCWD, m_path.c_str(), RENAME_EXCHANGE) != 0) refuse();
    return;
  }
  if (::renameat2(AT_FDCWD, m_temporary.c_str(), AT_FDCWD, m_path.c_str(), RENAME_NOREPLACE) != 0) refuse();
  m_temporary.clear();
}

StreamedFile::StreamedFile(std::string path) : m_path(std::move(path)) {
  m_descriptor = ::open(m_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (m_descriptor < 0) refuse(errno);
}

StreamedFile::~StreamedFile() {
  if (m_descriptor >= 0) ::close(m_descriptor);
}

void StreamedFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(m_descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void StreamedFile::close() {
  if (::close(std::exchange(m_descriptor, -1)) != 0) refuse(errno);
}

void StreamedFile::refuse(int error) const {
  throw ModelError(
      fmt::format("{}: cannot be written: {}; check rights and the space left", m_path, std::strerror(error)));
}

}  // namespace mtsim::models
