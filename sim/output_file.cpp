// SPDX-License-Identifier: Apache-2.0
#include "sim/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "sim/config/yaml.h"

namespace mtsim::sim {

namespace fs = std::filesystem;

OutputFile::OutputFile(std::string path) : m_path(std::move(path)), m_target(m_path) {
  std::error_code error;
  if (const fs::path real = fs::canonical(m_path, error); !error) m_target = real;  // a link stays one
  const fs::file_status status = fs::status(m_target, error);
  const bool is_device = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
  // What exists and may not be written is not replaced either.
  const bool writable = !fs::exists(status) || ::access(m_target.c_str(), W_OK) == 0;
  if (!is_device) m_temporary = fmt::format("{}.{}.tmp", m_target, ::getpid());
  if (writable && !fs::is_directory(status)) m_stream.open(is_device ? m_target : m_temporary, std::ios::binary);
  if (!m_stream.is_open()) throw ConfigError(fmt::format("{}: cannot be written", m_path));
}

OutputFile::~OutputFile() {
  if (m_temporary.empty()) return;
  m_stream.close();
  std::error_code error;
  fs::remove(m_temporary, error);
}

void OutputFile::commit() {
  m_stream.close();
  std::error_code error;
  if (m_stream && !m_temporary.empty()) {
    fs::rename(m_temporary, m_target, error);
    if (!error) m_temporary.clear();
  }
  if (!m_stream || error) throw ConfigError(fmt::format("{}: could not be written in full; is the disk full?", m_path));
}

}  // namespace mtsim::sim
