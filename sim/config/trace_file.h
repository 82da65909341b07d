// SPDX-License-Identifier: Apache-2.0
// Trace events in JSON for ui.perfetto.dev or chrome://tracing, to a file while they happen. Times are whole ticks, of
// which the viewer makes nanoseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/config/output_file.h"

namespace mtsim::sim {

class TraceFile {
 public:
  /// `other_data`: members of a JSON object that says what a tick is. The file appears with finish(). Throws
  /// ConfigError when it cannot be written.
  TraceFile(const std::string& path, std::string_view other_data);

  /// Processes are shown in the order of their numbers.
  void name_process(int process, std::string_view name);
  /// `number` is part of the name when it is not negative.
  void name_track(int process, int track, std::string_view name, int number = -1);
  /// `arguments`: members of a JSON object.
  void slice(int process, int track, std::int64_t from, std::int64_t ticks, std::string_view name,
             std::string_view arguments);
  void counter(int process, std::int64_t at, std::string_view name, std::string_view unit, double value);

  /// Throws ConfigError when something could not be written.
  void finish();

  static void append(std::string& out, std::int64_t number);
  static std::string quoted(std::string_view text);

 private:
  void begin_event();

  OutputFile m_file;
  std::string m_buffer;  // of the file
  bool m_first = true;
};

}  // namespace mtsim::sim
