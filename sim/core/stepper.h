// SPDX-License-Identifier: Apache-2.0
// Runs a microkernel packet by packet, forwards and backwards, with everything on view that the executor leaves
// between two packets: results in flight, what landed, what was stored, which reads got an old value. `mtsim debug` and
// the schedule page stand on it.
//
//   Stepper stepper(program, pipeline, sm, am, registers, {});
//   while (!stepper.ended()) show(stepper.step());
//   stepper.go_to(0);
//
// The state it shows is what the packet about to issue sees: results of this cycle have landed, a branch that takes
// effect now is taken. Registers, memory, cycles and faults are those of Executor::run, bit for bit: the same handlers
// run, but every result waits for its cycle, also where the executor knows that nobody could tell.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "isa/program.h"
#include "sim/core/executor.h"

namespace mtsim::sim {

class Stepper {
 public:
  struct Options {
    std::string entry;  // label; the first packet if empty
    std::int64_t max_cycles = 1'000'000'000;
    int core = 0;                    // for messages
    std::int64_t undo_steps = 2048;  // whose changes are kept; farther back goes by running again from a checkpoint
  };

  /// A result between issue and landing. A pair is two of them.
  struct InFlight {
    isa::Register reg;
    VectorRegister value;  // of a scalar: lane 0
    std::int64_t issued = 0;
    std::int64_t lands = 0;  // the first cycle whose packet reads it
    int packet = 0;
    int instruction = 0;
    bool post_modify = false;    // of an address register, by its load or store
    std::uint64_t sequence = 0;  // orders all results of the run by issue
  };
  struct Landing {
    InFlight result;
    VectorRegister old;  // what the register held
  };
  struct Store {  // a run of bytes; a store of lanes apart makes several
    CoreMemory space = CoreMemory::sm;
    std::uint64_t address = 0;
    std::vector<std::byte> old, bytes;
    int instruction = 0;
  };
  /// An instruction read `reg` while a result to it was in flight.
  struct OldRead {
    int instruction = 0;
    isa::Register reg;
    InFlight newer;  // the first of them to land
  };
  struct Branch {
    static constexpr int k_return = -1;
    int target = k_return;  // packet
    std::int64_t at = 0;    // cycle in which the target issues
  };
  /// What one step did.
  struct Change {
    int packet = 0;
    std::int64_t cycle = 0;          // of its issue
    std::int64_t cycles = 0;         // that passed: n for SNOP n unless a branch cut it
    std::vector<OldRead> old_reads;  // in front of its issue
    std::vector<InFlight> issued;
    std::vector<Store> stores;
    std::vector<Landing>
        landed;  // behind its issue, up to that of the next packet; of the last step also what was left
    std::optional<Branch> taken;   // by its SBR
    std::optional<Branch> jumped;  // took effect behind it
  };

  /// Starts in front of the entry's first packet. The memories are the caller's, hold what the run starts with and
  /// outlive it; nobody else may write them. Throws isa::IsaError as DecodedProgram and Program::entry do.
  Stepper(const isa::Program& program, const isa::Pipeline& pipeline, std::span<std::byte> sm, std::span<std::byte> am,
          const RegisterState& registers, const Options& options);
  ~Stepper();
  Stepper(Stepper&&) noexcept;

  const isa::Program& program() const;
  const RegisterState& registers() const;
  VectorRegister value(isa::Register reg) const;  // of a scalar: lane 0
  std::span<const std::byte> memory(CoreMemory space) const;

  std::int64_t cycle() const;                      // in which the next packet issues; of an ended run its cycles
  int packet() const;                              // the next one; where the run ended if it did
  std::int64_t steps() const;                      // from the start
  const std::vector<InFlight>& in_flight() const;  // in the order of issue; an ended run has none
  std::optional<Branch> pending_branch() const;
  bool ended() const;
  /// Precondition: ended().
  RunResult result() const;

  /// Issues the next packet. Precondition: !ended().
  const Change& step();
  /// Undoes one step, bit for bit; false at the start.
  bool step_back();
  /// Forwards or backwards to where `steps` steps are done; stops where the run ends.
  void go_to(std::int64_t steps);

  /// Of the last step; nullptr at the start and where the log ends (undo_steps() is 0).
  const Change* last() const;
  /// Steps whose changes are kept. All steps can be undone; these without running again.
  std::int64_t undo_steps() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> m_impl;
};

}  // namespace mtsim::sim
