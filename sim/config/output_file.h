// SPDX-License-Identifier: Apache-2.0
// Files out. One is written beside the old one and takes its place when it is complete: a full disk, an exception and a
// signal all leave the old one as it was and nothing else.
#pragma once

#include <string>
#include <string_view>

#include "isa/file_use.h"

namespace mtsim::sim {

/// Throws ConfigError unless a file could be written at `path`, isa::FileClash when this run needs what lies there:
/// asked before long work whose result goes there. `writer` as for isa::FileUse.
void require_writable(const std::string& path, const std::string& writer,
                      isa::FileUse::Purpose purpose = isa::FileUse::Purpose::replace);

/// Symbolic links stay and their target is replaced; an old file's mode is kept; devices are written directly.
class OutputFile {
 public:
  /// Throws as require_writable() does.
  OutputFile(std::string path, std::string writer, isa::FileUse::Purpose purpose = isa::FileUse::Purpose::replace);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Does not throw: what goes wrong is said by commit(), so that a run ends and prints its result.
  void write(std::string_view text);
  /// Everything to the disk, not yet to its place: a full disk is noticed here. Throws ConfigError.
  void complete();
  /// Throws ConfigError when something could not be written, isa::FileClash as above.
  void commit();

 private:
  void flush();

  std::string m_path;  // as given
  std::string m_writer;
  isa::FileUse::Purpose m_purpose;
  std::string m_target;     // what it leads to
  std::string m_temporary;  // empty once committed, and for devices
  std::string m_buffer;
  int m_descriptor = -1;
  int m_error = 0;  // errno of the first write that failed
};

/// A whole file at once.
void write_file(const std::string& path, const std::string& writer, std::string_view content,
                isa::FileUse::Purpose purpose = isa::FileUse::Purpose::replace);

/// From here on SIGINT, SIGTERM, SIGHUP and the like remove what is half written before they end the process. Signals
/// that are ignored stay so.
void remove_temporaries_on_signals();

}  // namespace mtsim::sim
