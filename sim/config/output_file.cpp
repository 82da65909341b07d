// SPDX-License-Identifier: Apache-2.0
#include "sim/config/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "sim/config/scalar.h"
#include "sim/config/yaml.h"

namespace mtsim::sim {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_buffer_bytes = 1 << 16;

[[noreturn]] void refuse(const std::string& path, const std::string& reason, const std::string& remedy) {
  throw ConfigError(fmt::format("{}: cannot be written: {}; {}", path, reason, remedy));
}

[[noreturn]] void refuse(const std::string& path, int error) {
  if (error == ENXIO) refuse(path, "nobody reads this pipe", "start its reader first, or name a file");
  refuse(path, std::strerror(error), "check folder, rights and the space left");
}

bool is_special(const std::string& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status);
}

/// What a symbolic link leads to: the link stays, its target is replaced.
std::string target_of(const std::string& path) {
  std::error_code ignored;
  const fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : fs::path(path);
  return ignored ? path : target.string();
}

std::string folder_of(const std::string& path) {
  return fs::path(path).has_parent_path() ? fs::path(path).parent_path().string() : ".";
}

// --- what a signal handler may touch: the temporary files of this process, at fixed places

struct Temporary {
  volatile std::sig_atomic_t owner = 0;  // its process; a child has its parent's entries
  char path[PATH_MAX];
};
std::array<Temporary, 64> s_temporaries;

Temporary* find_temporary(pid_t owner, const std::string& path) {
  for (Temporary& entry : s_temporaries) {
    if (entry.owner == owner && path == entry.path) return &entry;
  }
  return nullptr;
}

/// When there is no room a signal leaves the file to the next run.
void remember(const std::string& path) {
  const pid_t self = ::getpid();
  for (Temporary& entry : s_temporaries) {
    if (entry.owner == self || path.size() >= sizeof entry.path) continue;
    std::memcpy(entry.path, path.c_str(), path.size() + 1);
    std::atomic_signal_fence(std::memory_order_release);
    entry.owner = self;
    return;
  }
}

void forget(const std::string& path) {
  if (Temporary* entry = find_temporary(::getpid(), path)) entry->owner = 0;
}

extern "C" void remove_and_die(int signal) {
  const pid_t self = ::getpid();
  for (const Temporary& entry : s_temporaries) {
    if (entry.owner == self) ::unlink(entry.path);
  }
  ::raise(signal);  // the default action, which SA_RESETHAND restored, once this handler returns
}

/// Those of processes that ended without a word (kill -9, a crash of the host). Their lock is free; a process of
/// another container, whose number means nothing here, still has it.
void remove_stale(const std::string& target) {
  const std::string prefix = fs::path(target).filename().string() + ".";
  constexpr std::string_view k_suffix = ".tmp";
  std::error_code error;
  for (fs::directory_iterator entry(folder_of(target), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(k_suffix) || name.size() <= prefix.size() + k_suffix.size())
      continue;
    const auto owner = scan_integer(name.substr(prefix.size(), name.size() - prefix.size() - k_suffix.size())).value;
    if (!owner || *owner < 1 || *owner > INT_MAX) continue;
    const bool is_own = *owner == ::getpid();  // or of an earlier process of this number
    if (!is_own && (::kill(static_cast<pid_t>(*owner), 0) == 0 || errno != ESRCH)) continue;
    const int descriptor = ::open(entry->path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry->path().c_str());
    ::close(descriptor);
  }
}

}  // namespace

void require_writable(const std::string& path, const std::string& writer, isa::FileUse::Purpose purpose) {
  // The system would cut the path at a zero byte and take another file.
  if (const auto zero = path.find('\0'); zero != std::string::npos)
    throw ConfigError(fmt::format("{}...: has a zero byte in its name; remove it", path.substr(0, zero)));
  std::error_code ignored;
  if (path.empty() || fs::is_directory(path, ignored))
    throw ConfigError(fmt::format("{} '{}': is no file name; name a file to write", writer, path));
  if (path == "-") {
    throw ConfigError(
        fmt::format("{} -: does not go to stdout; name a file to write (./- for one of this name)", writer));
  }
  const std::string target = target_of(path), folder = folder_of(target);
  if (!fs::is_directory(folder, ignored)) refuse(path, fmt::format("there is no folder '{}'", folder), "make it first");
  // What exists and may not be written is not replaced either.
  if (fs::exists(target, ignored) && ::access(target.c_str(), W_OK) != 0) refuse(path, errno);
  if (!is_special(target) && ::access(folder.c_str(), W_OK) != 0) refuse(path, errno);
  isa::FileUse::writes(path, writer, purpose);
}

OutputFile::OutputFile(std::string path, std::string writer, isa::FileUse::Purpose purpose)
    : m_path(std::move(path)), m_writer(std::move(writer)), m_purpose(purpose) {
  require_writable(m_path, m_writer, m_purpose);
  m_target = target_of(m_path);
  if (is_special(m_target)) {
    // Opening a pipe that nobody reads would wait for ever.
    m_descriptor = ::open(m_target.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (m_descriptor < 0) refuse(m_path, errno);
    ::fcntl(m_descriptor, F_SETFL, ::fcntl(m_descriptor, F_GETFL) & ~O_NONBLOCK);
    return;
  }
  remove_stale(m_target);
  m_temporary = fmt::format("{}.{}.tmp", m_target, ::getpid());
  remember(m_temporary);
  m_descriptor = ::open(m_temporary.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, 0666);
  if (m_descriptor < 0) {
    const int error = errno;
    forget(m_temporary);
    refuse(m_path, error);
  }
  ::flock(m_descriptor, LOCK_EX | LOCK_NB);  // remove_stale() asks; where there are no locks it goes by the process
  struct stat old {};
  if (::stat(m_target.c_str(), &old) == 0 && ::fchmod(m_descriptor, old.st_mode & 07777) != 0) m_error = errno;
}

OutputFile::~OutputFile() {
  if (m_descriptor >= 0) ::close(m_descriptor);
  if (m_temporary.empty()) return;
  std::remove(m_temporary.c_str());
  forget(m_temporary);
}

void OutputFile::write(std::string_view text) {
  m_buffer += text;
  if (m_buffer.size() >= k_buffer_bytes) flush();
}

void OutputFile::flush() {
  std::string_view rest = m_buffer;
  while (!rest.empty() && m_error == 0) {
    const ssize_t written = ::write(m_descriptor, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      m_error = errno;
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  m_buffer.clear();
}

void OutputFile::complete() {
  if (m_descriptor < 0) return;
  flush();
  if (::close(std::exchange(m_descriptor, -1)) != 0 && m_error == 0) m_error = errno;
  if (m_error != 0) refuse(m_path, m_error);
}

void OutputFile::commit() {
  complete();
  if (m_temporary.empty()) return;
  isa::FileUse::writes(m_path, m_writer, m_purpose);  // what was read since counts too
  if (std::rename(m_temporary.c_str(), m_target.c_str()) != 0) refuse(m_path, errno);
  forget(m_temporary);
  m_temporary.clear();
}

void write_file(const std::string& path, const std::string& writer, std::string_view content,
                isa::FileUse::Purpose purpose) {
  OutputFile file(path, writer, purpose);
  file.write(content);
  file.commit();
}

void remove_temporaries_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ, SIGXCPU}) {
    struct sigaction old {};
    if (::sigaction(signal, nullptr, &old) != 0 || old.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = remove_and_die;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    ::sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace mtsim::sim
