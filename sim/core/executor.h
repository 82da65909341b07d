// SPDX-License-Identifier: Apache-2.0
// The packet executor of one DSP core: plain C++, no SystemC. `mtsim exec`, the SystemC Core, fuzzers and benchmarks
// use it.
//
// The pipeline is exposed (docs/isa.md): a packet issues each cycle, operands are read at issue, a result
// appears `latency` cycles later and until then a read gives the old value. Loads sample and stores commit at issue,
// loads before stores within a packet. SBR has six delay slots. A microkernel never stalls: cycles = packets + idles.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isa/program.h"

namespace mtsim::sim {

enum class CoreMemory : std::uint8_t { sm, am };  // the scalar and the vector side's own memory

/// 16 lanes of 64 bits.
struct alignas(64) VectorRegister {
  std::array<std::uint64_t, isa::k_vector_lanes> lane{};
  bool operator==(const VectorRegister&) const = default;
};

/// Everything a microkernel can see but memory. R63 holds k_return_address when a run starts.
struct RegisterState {
  std::array<std::uint64_t, 64> r{};
  std::array<VectorRegister, 64> vr{};
  std::array<std::uint64_t, 16> ar{};
  std::array<std::uint64_t, 16> orr{};
  std::array<std::uint64_t, 16> svr{};

  /// Sets one register of any file; a vector gets the value in every lane.
  void set(isa::Register reg, std::uint64_t value);
};

inline constexpr std::uint64_t k_return_address = 0xFFFF'FFFF'0000'0000;

/// A program decoded once for one set of latencies; immutable, shared by all cores. Kept alive by whoever runs it.
class DecodedProgram {
 public:
  /// Throws isa::IsaError when the machine's latencies or its lack of an issue slot make the hand schedule wrong
  /// (schedule_check.h).
  DecodedProgram(const isa::Program& program, const isa::Pipeline& pipeline);
  ~DecodedProgram();
  DecodedProgram(const DecodedProgram&) = delete;
  DecodedProgram& operator=(const DecodedProgram&) = delete;

  const isa::Program& program() const;
  const isa::Pipeline& pipeline() const;

  struct Impl;
  const Impl& impl() const { return *m_impl; }

 private:
  std::unique_ptr<Impl> m_impl;
};

enum class RunStatus : std::uint8_t { done, fault, max_cycles };
const char* to_string(RunStatus status);

enum class FaultKind : std::uint8_t {
  none,
  address,
  alignment,
  two_taken_branches,
  illegal_packet,
  branch_target,
  end_of_program,
  runaway,  // the cycle limit; status is max_cycles
};
const char* to_string(FaultKind kind);

/// A simulated program's fault: an outcome, not an exception.
struct Fault {
  FaultKind kind = FaultKind::none;
  int core = 0;
  std::int64_t cycle = 0;  // of the faulting packet's issue, from the start of this run
  int pc = 0;              // packet index
  std::string packet;      // its text
  isa::Place place;
  std::string message;  // what, the value, what to do

  std::string str() const;
};

/// Where a run's loads and stores went: half-open byte range of one memory, lo >= hi when untouched.
struct Extent {
  std::int64_t lo = INT64_MAX;
  std::int64_t hi = INT64_MIN;
  bool empty() const { return lo >= hi; }
};

struct RunResult {
  RunStatus status = RunStatus::done;
  Fault fault;              // of a fault, and of max_cycles (runaway: where it was stopped)
  std::int64_t cycles = 0;  // packets + idles
  std::int64_t packets = 0;
  std::int64_t idles = 0;
  std::int64_t instructions = 0;
  std::array<std::int64_t, isa::k_units> units{};  // issues of each slot
};

struct RunOptions {
  std::string entry;  // label; the first packet if empty
  std::int64_t max_cycles = 1'000'000'000;
  int core = 0;                                        // for messages
  std::vector<std::int64_t>* packet_counts = nullptr;  // if set: issues per packet (resized), for --annotate
};

/// The instruction-set level of the host code; all give the same bits.
enum class HostLevel : std::uint8_t { baseline, avx2, avx512 };
const char* to_string(HostLevel level);
HostLevel best_host_level();  // honours the environment variable MTSIM_HOST_LEVEL=baseline|avx2|avx512
std::vector<HostLevel> supported_host_levels();

/// One core's registers on its two memories. The memories are the caller's and outlive it.
class Executor {
 public:
  Executor(std::span<std::byte> sm, std::span<std::byte> am, HostLevel level = best_host_level());
  ~Executor();
  Executor(Executor&&) noexcept;

  RegisterState& registers();
  const RegisterState& registers() const;

  /// Runs from the entry until the branch to R63 takes effect. Results in flight land before it returns. Does not throw
  /// for anything the program does; throws isa::IsaError for an unknown entry label.
  RunResult run(const DecodedProgram& program, const RunOptions& options = {});

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

/// What the timing depth needs of one microkernel call: everything that does not depend on data.
struct KernelProfile {
  RunResult result;
  struct PointerExtent {  // of one pointer parameter, in bytes relative to the pointer
    Extent read;
    Extent write;
    std::int64_t alignment = 1;  // what the real pointer must be a multiple of
  };
  std::vector<PointerExtent> pointers;  // one per .param, empty for counts
};

/// Runs the program without data on symbolic pointers: cycles, unit counts and the footprint per pointer parameter.
/// `arguments`: one value per .param; pointers are ignored. Status fault when an address derives from no pointer.
/// Precondition: isa::timing_is_static(program).
KernelProfile profile(const DecodedProgram& program, std::span<const std::uint64_t> arguments,
                      const RunOptions& options = {});

}  // namespace mtsim::sim
