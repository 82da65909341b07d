// SPDX-License-Identifier: Apache-2.0
#include "isa/text_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "isa/diagnostic.h"
#include "isa/file_use.h"

namespace mtsim::isa {
namespace {

[[noreturn]] void fail(const std::string& message, const std::string& fix) {
  throw IsaError({{Severity::fatal, {}, message, fix, "unreadable"}});
}

}  // namespace

std::string read_text_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::is_directory(status)) fail("cannot read '" + path + "': it is a folder", "name a file");
  if (fs::is_character_file(status) || fs::is_block_file(status)) {
    fail("cannot read '" + path + "': it is a device", "name a file");
  }
  // One with a name waits for a writer who may never come; those of a shell's <(...) and | have none.
  if (fs::is_fifo(status) && !fs::canonical(path, ignored).empty()) {
    fail("cannot read '" + path + "': it is a named pipe", "name a file");
  }
  FileUse::reads(path);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> block;
  do {
    in.read(block.data(), block.size());
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > k_max_text_bytes) {
      fail("'" + path + "' has more than " + std::to_string(k_max_text_bytes) + " bytes", "is it the right file?");
    }
  } while (in.good());
  // A file that did not open is not at its end.
  if (!in.eof() || in.bad()) {
    fail("cannot read '" + path + "': " + (errno != 0 ? std::strerror(errno) : "input error"), "check the path");
  }
  return text;
}

}  // namespace mtsim::isa
