// SPDX-License-Identifier: Apache-2.0
// A file that is written while a run goes on and appears whole or not at all.
#pragma once

#include <fstream>
#include <string>

namespace mtsim::sim {

/// Written beside `path`, which it replaces at commit() and leaves as it was otherwise. Devices are written directly.
class OutputFile {
 public:
  /// Throws ConfigError when it cannot be written.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ofstream& stream() { return m_stream; }
  /// Throws ConfigError when something could not be written.
  void commit();

 private:
  std::string m_path;       // as given
  std::string m_target;     // what it leads to
  std::string m_temporary;  // empty once committed, and for devices
  std::ofstream m_stream;
};

}  // namespace mtsim::sim
