// SPDX-License-Identifier: Apache-2.0
#include "isa/file_use.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace mtsim::isa {
namespace {

FileUse* s_run = nullptr;

std::string canonical(const std::string& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  const auto real = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute.string() : real.string();
}

bool is_special(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 && !S_ISREG(file.st_mode);
}

bool same_inode(const std::string& a, const std::string& b) {
  struct stat one {
  }, other{};
  return ::stat(a.c_str(), &one) == 0 && ::stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

[[noreturn]] void refuse(const std::string& writer, const std::string& path, const std::string& what) {
  throw FileClash(fmt::format("{} {}: would overwrite {}; name another file", writer, path, what));
}

std::string input_text(const std::string& path) { return fmt::format("'{}', which this run reads", path); }

}  // namespace

bool same_file(const std::string& a, const std::string& b) {
  if (is_special(a) || is_special(b)) return false;
  return same_inode(a, b) || canonical(a) == canonical(b);
}

FileUse::FileUse() { s_run = this; }
FileUse::~FileUse() { s_run = nullptr; }

void FileUse::reads(const std::string& path) {
  if (s_run == nullptr || is_special(path)) return;
  const std::string real = canonical(path);
  const auto same = [&](const File& file) { return file.canonical == real || same_inode(file.canonical, real); };
  auto& inputs = s_run->m_inputs;
  // Known from here on, even when nobody minds the exception.
  if (std::none_of(inputs.begin(), inputs.end(), same)) inputs.push_back({path, real, "", Purpose::update});
  for (const File& output : s_run->m_outputs) {
    if (output.purpose == Purpose::replace && same(output)) refuse(output.writer, output.path, input_text(path));
  }
}

void FileUse::writes(const std::string& path, const std::string& writer, Purpose purpose) {
  if (s_run == nullptr || is_special(path)) return;
  const std::string real = canonical(path);
  const auto same = [&](const File& file) { return file.canonical == real || same_inode(file.canonical, real); };
  if (purpose == Purpose::replace) {
    for (const File& input : s_run->m_inputs) {
      if (same(input)) refuse(writer, path, input_text(input.path));
    }
  }
  bool is_known = false;
  for (const File& output : s_run->m_outputs) {
    if (!same(output)) continue;
    if (output.writer != writer) refuse(writer, path, fmt::format("what {} writes", output.writer));
    is_known = true;
  }
  if (!is_known) s_run->m_outputs.push_back({path, real, writer, purpose});
}

}  // namespace mtsim::isa
