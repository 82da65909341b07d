// SPDX-License-Identifier: Apache-2.0
// Microkernel profiles that outlive the process: one small JSON file, shared by all processes of a user.
//
//   {"format": 1, "instructions": "<hash of the instruction table>", "checksum": "<of profiles>",
//    "profiles": {"<program> <latencies>@<packet>:<arguments>": [cycles, packets, idles, instructions,
//                 issues of each slot..., per .param: read from, to, write from, to, alignment]}}
//
// A file of another format or instruction table counts as empty; a damaged one too, with a warning on stderr. Changing
// what an instruction computes or how cycles are counted needs a new k_format.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "isa/program.h"
#include "sim/core/executor.h"

namespace mtsim::sim {

/// Programs, machines and calls with one key have the same profile. `arguments`: one per .param, 0 but for counts.
std::string profile_key(const isa::Program& program, const isa::Pipeline& pipeline, const std::string& entry,
                        std::span<const std::uint64_t> arguments);

class MemoFile {
 public:
  static constexpr int k_format = 1;
  static constexpr std::size_t k_max_profiles = 4096;  // about 1 MB

  /// $MTSIM_MEMO, else mtsim/memo-v1.json in $XDG_CACHE_HOME or ~/.cache. "": none (MTSIM_MEMO is empty or "off", or
  /// there is no home folder).
  static std::string default_path();

  explicit MemoFile(std::string path);
  ~MemoFile() { save(); }
  MemoFile(const MemoFile&) = delete;
  MemoFile& operator=(const MemoFile&) = delete;

  /// nullptr when unknown. Reads the file when first called.
  const KernelProfile* find(const std::string& key);
  void add(const std::string& key, const KernelProfile& profile);

  /// Writes what was added to what the file holds by now; the file is whole at any time. Never throws: a file that
  /// cannot be written is a warning on stderr.
  void save() noexcept;

 private:
  using Profiles = std::map<std::string, KernelProfile>;
  enum class OnDamage : std::uint8_t { warn, be_silent };
  Profiles read(OnDamage on_damage) const;
  void write(const Profiles& profiles) const;
  void require_ours() const;

  std::string m_path;
  bool m_is_read = false;
  Profiles m_known;  // of the file
  Profiles m_added;
};

}  // namespace mtsim::sim
