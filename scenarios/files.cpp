// SPDX-License-Identifier: Apache-2.0
#include "scenarios/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace fs = std::filesystem;

namespace {

template <class Container>
Container read_whole(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) throw UsageError(fmt::format("{}: is a folder; name a file", path));
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) throw UsageError(fmt::format("{}: cannot be read: {}; check the path", path, std::strerror(errno)));
  const auto size = in.tellg();
  if (size < 0) throw UsageError(fmt::format("{}: cannot be read: not a regular file", path));
  Container content(static_cast<std::size_t>(size), {});
  in.seekg(0);
  in.read(reinterpret_cast<char*>(content.data()), size);
  if (!in) throw UsageError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return content;
}

void write_whole(const std::string& path, const char* data, std::size_t bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) out.write(data, static_cast<std::streamsize>(bytes));
  if (out) out.close();
  if (!out)
    throw UsageError(fmt::format("{}: cannot be written: {}; check folder and rights", path, std::strerror(errno)));
}

}  // namespace

std::string read_text(const std::string& path) { return read_whole<std::string>(path); }

std::vector<std::byte> read_bytes(const std::string& path) { return read_whole<std::vector<std::byte>>(path); }

void write_text(const std::string& path, std::string_view text) { write_whole(path, text.data(), text.size()); }

void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  write_whole(path, reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void require_writable(const std::string& path) {
  std::error_code ignored;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : fs::path(".");
  if (path.empty() || fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("'{}': is no file name; name a file to write", path));
  }
  if (!fs::is_directory(folder, ignored)) {
    throw UsageError(
        fmt::format("{}: cannot be written: there is no folder '{}'; make it first", path, folder.string()));
  }
  const bool exists = fs::exists(path, ignored);
  if (access(exists ? path.c_str() : folder.c_str(), W_OK) != 0) {
    throw UsageError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  }
}

std::string relative_to(const std::string& from, const std::string& path) {
  return (fs::path(from).parent_path() / path).lexically_normal().string();
}

}  // namespace mtsim::scenarios
