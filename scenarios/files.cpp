// SPDX-License-Identifier: Apache-2.0
#include "scenarios/files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "isa/file_use.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace fs = std::filesystem;

namespace {

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
  isa::FileUse::reads(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError(fmt::format("{}: cannot be read: {}; check the path", path, std::strerror(errno)));
  return in;
}

void read_into(const std::string& path, std::ifstream& in, char* data, std::size_t bytes) {
  in.read(data, static_cast<std::streamsize>(bytes));
  if (!in) throw UsageError(fmt::format("{}: cannot be read: it ends before {} bytes", path, bytes));
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

std::string relative_to(const std::string& from, const std::string& path) {
  return (fs::path(from).parent_path() / path).lexically_normal().string();
}

}  // namespace mtsim::scenarios
