// SPDX-License-Identifier: Apache-2.0
// A reviewed file of findings that are known and explained:
//
//   suppressions:
//     - kind: overwrite-in-use          # of Finding
//       source: gemm_large_m.cpp:120    # file, file:line or function of one end; * stands for any text
//       buffer: "*am[*"                 # optional: the bytes of that end, as the finding prints them
//       reason: the row is padding that nobody reads
//
// An entry without a reason is refused, and one that meets nothing is reported, so that the file does not outlive what
// it explains.
#pragma once

#include <string>
#include <vector>

#include "isa/diagnostic.h"
#include "sim/accounting.h"
#include "sim/cluster.h"

namespace mtsim::sim {

/// '*' stands for any text, '\*' for itself; everything else for itself.
bool matches_pattern(std::string_view pattern, std::string_view text);

class Suppressions {
 public:
  Suppressions() = default;
  /// Throws ConfigError with every mistake in the file.
  static Suppressions load(const std::string& path);

  /// Moves what an entry meets from result.findings to result.suppressed, with the reason.
  void apply(LaunchResult& result);
  /// "file:line:col: nothing met ...", of the entries that met nothing in any result so far.
  std::vector<std::string> unused() const;

 private:
  struct Entry {
    isa::Place place;
    std::string kind, source, buffer, reason;
    bool used = false;
    bool meets(const Finding& finding) const;
  };
  std::vector<Entry> m_entries;
};

}  // namespace mtsim::sim
