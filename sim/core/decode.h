// SPDX-License-Identifier: Apache-2.0
// Inside of the executor: micro-operations, the execution context, and the loops that run them, one per host level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/core/executor.h"
#include "sim/core/trace.h"

namespace mtsim::sim {

// One instruction, decoded. Registers are byte offsets into Context, so that a handler finds an operand with one
// addition.
struct MicroOp {
  std::uint16_t code = 0;  // which label of the loop
  std::uint16_t a = 0, b = 0, c = 0, d = 0;
  std::uint8_t latency = 1;
  std::uint8_t memory = 0;      // CoreMemory index of a load or store
  std::int32_t scale = 0;       // bytes per unit of the OR register; 0 when the index is immediate
  std::uint16_t inner = 0;      // code of the predicated operation
  std::uint16_t predicate = 0;  // offset of its R register
  bool negated = false;
  std::uint8_t alignment = 1;     // bytes; power of two
  std::uint16_t instruction = 0;  // index in the packet, for messages
  std::int64_t immediate = 0;     // value, byte displacement or branch target
};

// Codes: per mnemonic four variants, then the micro-operations that are no instruction of their own.
inline constexpr int k_variants = 4;  // bit 0: result is written early, bit 1: first operand is immediate
inline constexpr int k_mnemonic_count = static_cast<int>(isa::Mnemonic::SNOP) + 1;
enum SpecialCode : std::uint16_t {
  k_post_modify = k_mnemonic_count * k_variants,  // + 1: written early
  k_predicated = k_post_modify + 2,
  k_illegal,
  k_end_of_packet,  // immediate: packet index; scale: cycles of the packet
  k_end_of_program,
  k_code_count,
};
constexpr std::uint16_t code_of(isa::Mnemonic mnemonic, bool early, bool immediate) {
  return static_cast<std::uint16_t>(static_cast<int>(mnemonic) * k_variants + (early ? 1 : 0) + (immediate ? 2 : 0));
}

// A result in flight.
struct VectorWrite {
  VectorRegister value;
  std::uint16_t destination = 0;
};
struct ScalarWrite {
  std::uint64_t value = 0;
  std::uint16_t destination = 0;
};

// Results that land in one cycle, oldest issue first, so that the younger of two to one register stays.
struct LandingSlot {
  std::uint32_t vectors = 0;
  std::uint32_t scalars = 0;
  VectorWrite* vector = nullptr;
  ScalarWrite* scalar = nullptr;
};

inline constexpr int k_ring_slots = 64;
static_assert(k_ring_slots > isa::k_max_latency && k_ring_slots == 64);

struct CoreMemorySpan {
  std::byte* data = nullptr;
  std::uint64_t bytes = 0;
};

// What profile() records instead of touching data.
struct AccessLog {
  static constexpr int k_pointer_shift = 40;  // pointer i lies at (i + 1) << 40
  std::vector<KernelProfile::PointerExtent> pointers;
  CallTrace* trace = nullptr;  // if set: every issue and access
};

struct Context {
  RegisterState registers;  // first: MicroOp offsets count from here
  std::uint64_t zero = 0;   // stands in for an absent OR register
  // Plain arrays: the handlers of different host levels must share no inline function, not even std::array's.
  CoreMemorySpan memory[2];
  std::int64_t cycle = 0;
  std::int64_t cycle_limit = INT64_MAX;
  std::int64_t branch_at = INT64_MAX;   // cycle at which the pending taken branch takes effect
  std::int64_t next_event = INT64_MAX;  // the earlier of the two: all the loop has to compare with
  std::int64_t branch_target = 0;
  AccessLog* log = nullptr;
  FaultKind fault = FaultKind::none;
  std::uint64_t fault_value = 0;  // address or branch target
  std::uint16_t fault_instruction = 0;
  std::uint64_t landings = 0;  // bit i: ring[i] holds results
  LandingSlot ring[k_ring_slots];
};

inline constexpr std::int64_t k_return_target = -1;

// How a run of packets ended, and at which micro-operation; the caller turns it into a RunResult.
enum class LoopEnd : std::uint8_t { returned, limit, fault };
struct LoopResult {
  LoopEnd end = LoopEnd::returned;
  std::int64_t operation = 0;
};

// What the loop runs: plain pointers into a DecodedProgram.
struct PacketStream {
  const MicroOp* operations = nullptr;   // packet after packet, each closed by k_end_of_packet, all by k_end_of_program
  const std::uint32_t* first = nullptr;  // of each packet, and of the end of the program
};

// Issues packets from `packet` until the program returns, faults or reaches the cycle limit, and counts the issues of
// each.
using Loop = LoopResult (*)(Context& context, const PacketStream& stream, std::int64_t* counts, std::int64_t packet);
extern const Loop k_loop_baseline;
extern const Loop k_loop_avx2;
extern const Loop k_loop_avx512;
Loop loop_of(HostLevel level);

struct DecodedProgram::Impl {
  isa::Program program;
  isa::Pipeline pipeline;
  std::vector<MicroOp> operations;
  std::vector<std::uint32_t> first;  // micro-operation of each packet, and of the end of the program
  std::vector<std::array<std::uint8_t, isa::k_units>> issues;  // per packet
  int max_vector_landings = 0;  // results that can land in one cycle: bounds a LandingSlot
  int max_scalar_landings = 0;
};

struct DecodeOptions {
  bool early_writes = true;  // false: every result waits in the ring, for the test that both agree
};
std::unique_ptr<DecodedProgram::Impl> decode(const isa::Program& program, const isa::Pipeline& pipeline,
                                             const DecodeOptions& options = {});

// One run, shared by Executor and profile(). The ring's storage is sized for `program` by the caller.
RunResult interpret(Context& context, Loop loop, const DecodedProgram::Impl& program, const RunOptions& options);

// One micro-operation by its code, and the results that land in the context's cycle: the loop's own handlers, one call
// at a time, for whoever stops in between. Only codes of a decode without early writes.
void run_operation(Context& context, const MicroOp& op, std::uint16_t code);
std::uint64_t accessed_address(Context& context, const MicroOp& op);  // of a load or store
void land_results(Context& context);

// How far into RegisterState a register lies, and which one lies there.
std::uint16_t register_offset(isa::Register reg);
isa::Register register_at(std::uint16_t offset);

// The fault in the context, which the packet `pc` raised.
Fault make_fault(const Context& context, const isa::Program& program, int pc, int core);
// Adds up what the packets issued; `result.cycles` is set.
void summarise(const DecodedProgram::Impl& program, const std::vector<std::int64_t>& counts, RunResult& result);

// Storage behind Context::ring.
class RingStorage {
 public:
  void fit(Context& context, const DecodedProgram::Impl& program);

 private:
  std::vector<VectorWrite> m_vectors;
  std::vector<ScalarWrite> m_scalars;
  int m_vectors_per_slot = -1;
  int m_scalars_per_slot = -1;
};

}  // namespace mtsim::sim
