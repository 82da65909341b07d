// SPDX-License-Identifier: Apache-2.0
// Kernels of a cluster: each program is decoded once per set of latencies, and a microkernel's cycles, unit counts and
// footprint are worked out once per set of counts (timing depth), or taken from an earlier process (MemoFile).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "isa/program.h"
#include "sim/accounting.h"
#include "sim/core/executor.h"
#include "sim/core/footprint.h"
#include "sim/dsp.h"
#include "sim/memo_file.h"

namespace mtsim::sim {

/// Which bytes the calls of one kernel with the same counts touch.
class CallFootprint {
 public:
  CallFootprint(const DecodedProgram& decoded, std::string at_entry, std::vector<std::uint64_t> counts,
                const CallTrace& trace);

  const DecodedProgram* program;
  std::string entry;
  std::vector<std::uint64_t> arguments;    // 0 but for counts
  std::vector<PointerFootprint> pointers;  // one per .param
  std::vector<std::size_t> touched;        // of pointers: those that are not empty
  std::size_t number = 0;                  // in the order in which the memo worked them out

  /// propagate(), worked out once per input.
  using Ranges = std::vector<std::vector<ByteRange>>;
  const Ranges& undefined_results(const Ranges& undefined) const;

 private:
  mutable std::map<std::vector<std::int64_t>, Ranges> m_results;
};

/// What is known of one kernel (program and entry).
struct KernelRecord {
  const DecodedProgram* program = nullptr;
  std::string entry;
  std::int64_t calls = 0;  // in this launch
  /// Why its timing or footprint depends on data; "" when they do not. Absent until asked for.
  std::optional<std::string> not_static;

  struct Profiled {
    std::vector<std::uint64_t> arguments;  // 0 but for counts
    KernelProfile profile;
    const CallFootprint* footprint = nullptr;  // once it was asked for
  };
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<Profiled>>> profiles;  // by hash of the arguments
  Profiled* last_profiled = nullptr;                                                   // most calls repeat the counts
  Profiled* present = nullptr;  // of the call whose profile was asked for last; absent when that is not kept
  std::map<std::vector<std::uint64_t>, std::unique_ptr<CallFootprint>> footprints;  // by arguments
  const CallFootprint* last_footprint = nullptr;
};

class KernelMemo {
 public:
  /// Profiles are kept in `file` (""; nowhere); it is written when the memo goes and something new was learnt.
  explicit KernelMemo(const isa::Pipeline& pipeline, std::string file = MemoFile::default_path())
      : m_pipeline(pipeline), m_file(std::move(file)) {}

  /// Programs decoded for other latencies stay alive but can no longer be called.
  void set_latencies(const isa::Pipeline& pipeline);

  /// Decodes; the same program and latencies give the same object. Throws isa::IsaError (hand schedule wrong for this
  /// machine, unknown entry).
  Kernel load(const isa::Program& program, const std::string& entry);

  /// Throws SimError for a kernel that is empty or was loaded for other latencies. The reference stays valid until
  /// set_latencies.
  KernelRecord& record(const Kernel& kernel);

  void forget_calls();  // a launch starts
  std::vector<KernelCalls> calls() const;

  /// Profile for `arguments`: one per .param, 0 but for counts, since nothing else can change cycles or footprint.
  /// Throws SimError when the kernel's timing or footprint depends on data. With `use_memo` false it is worked out
  /// anew. The reference is valid until the next call.
  const KernelProfile& profile(KernelRecord& record, std::span<const std::uint64_t> arguments, std::int64_t max_cycles,
                               bool use_memo);

  /// As profile(), in either depth; never from a file. nullptr with the reason when it depends on data or the call is
  /// too long to be followed. Valid until set_latencies.
  const CallFootprint* footprint(KernelRecord& record, std::span<const std::uint64_t> arguments, std::string& why);

 private:
  const std::string& not_static(KernelRecord& record);
  const CallFootprint* find_footprint(KernelRecord& record, std::span<const std::uint64_t> arguments, std::string& why);

  isa::Pipeline m_pipeline;
  std::map<std::string, std::unique_ptr<DecodedProgram>> m_programs;
  std::unordered_map<const isa::Program*, const DecodedProgram*> m_kept;  // of m_programs, for m_pipeline
  std::vector<std::unique_ptr<KernelRecord>> m_records;
  KernelRecord* m_last = nullptr;  // cores mostly call the kernel another core just called
  KernelProfile m_fresh;
  std::size_t m_footprints = 0;  // worked out so far
  MemoFile m_file;
};

}  // namespace mtsim::sim
