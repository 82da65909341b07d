// SPDX-License-Identifier: Apache-2.0
// A microkernel without data: scalars execute, vectors do nothing, loads and stores only leave their footprint.
// Pointers are symbolic, far apart, so that every address tells which parameter it came from.
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "sim/core/decode.h"

namespace mtsim::sim {
namespace {

constexpr std::uint64_t k_half_window = std::uint64_t{1} << (AccessLog::k_pointer_shift - 1);

#define MTSIM_LEAVE_HOST_CODE static_cast<void>(0)
#define MTSIM_PACKET_ISSUED(context, packet)                                                        \
  if (CallTrace* kept = (context).log->trace) {                                                     \
    kept->issues.push_back({static_cast<int>(packet), static_cast<std::int64_t>((context).cycle)}); \
  }
#include "sim/core/handlers_scalar.inc"

struct RunNothing {
  template <class Sem, bool Early, bool Immediate>
  static void run(Context&, const MicroOp&) {}
};
template <>
struct Run<Format::VVVV> : RunNothing {};
template <>
struct Run<Format::VVV> : RunNothing {};
template <>
struct Run<Format::VV> : RunNothing {};
template <>
struct Run<Format::IV> : RunNothing {};
template <>
struct Run<Format::NVV> : RunNothing {};
template <>
struct Run<Format::SV> : RunNothing {};
template <>
struct Run<Format::SSVV> : RunNothing {};
template <>
struct Run<Format::VC> : RunNothing {};

template <bool Store>
struct RunAccess {
  template <class Sem, bool Early, bool Immediate>
  static void run(Context& context, const MicroOp& op) {
    const u64 address = address_of(context, op);
    const u64 index = (address + k_half_window) >> AccessLog::k_pointer_shift;
    if (index == 0 || index > context.log->pointers.size()) return raise(context, op, FaultKind::address, address);
    auto& pointer = context.log->pointers[index - 1];
    const auto offset = static_cast<i64>(address - (index << AccessLog::k_pointer_shift));
    Extent& extent = Store ? pointer.write : pointer.read;
    extent.lo = std::min(extent.lo, offset + Sem::first);
    extent.hi = std::max(extent.hi, offset + Sem::last);
    // The symbolic base is aligned to everything; what the offset lacks, a real base would have to lack too.
    pointer.alignment = std::max<i64>(pointer.alignment, op.alignment);
    if ((static_cast<u64>(offset) & (op.alignment - 1u)) != 0) raise(context, op, FaultKind::alignment, address);
    if (CallTrace* kept = context.log->trace) {
      kept->accesses.push_back({static_cast<std::uint32_t>(kept->issues.size()), op.instruction,
                                static_cast<std::uint16_t>(index - 1), offset});
    }
  }
};
template <>
struct Run<Format::MV> : RunAccess<false> {};
template <>
struct Run<Format::MVV> : RunAccess<false> {};
template <>
struct Run<Format::MS> : RunAccess<false> {};
template <>
struct Run<Format::MSS> : RunAccess<false> {};
template <>
struct Run<Format::VM> : RunAccess<true> {};
template <>
struct Run<Format::VVM> : RunAccess<true> {};
template <>
struct Run<Format::SM> : RunAccess<true> {};
template <>
struct Run<Format::SSM> : RunAccess<true> {};

#include "sim/core/loop.inc"

KernelProfile run_symbolically(const DecodedProgram& program, std::span<const std::uint64_t> arguments,
                               const RunOptions& options, CallTrace* kept) {
  const auto& parameters = program.program().parameters;
  if (arguments.size() != parameters.size()) {
    throw std::invalid_argument(fmt::format("{} takes {} arguments (.param), got {}", program.program().name,
                                            parameters.size(), arguments.size()));
  }
  AccessLog log;
  log.trace = kept;
  log.pointers.resize(parameters.size());
  auto context = std::make_unique<Context>();
  RingStorage ring;
  context->log = &log;
  context->registers.r[isa::k_return_register.index] = k_return_address;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::uint64_t value =
        isa::is_pointer(parameters[i].kind) ? (i + 1) << AccessLog::k_pointer_shift : arguments[i];
    context->registers.set(parameters[i].reg, value);
  }
  ring.fit(*context, program.impl());
  KernelProfile result;
  result.result = interpret(*context, &loop, program.impl(), options);
  result.pointers = std::move(log.pointers);
  return result;
}

}  // namespace

KernelProfile profile(const DecodedProgram& program, std::span<const std::uint64_t> arguments,
                      const RunOptions& options) {
  return run_symbolically(program, arguments, options, nullptr);
}

CallTrace trace(const DecodedProgram& program, std::span<const std::uint64_t> arguments, const RunOptions& options) {
  CallTrace kept;
  kept.profile = run_symbolically(program, arguments, options, &kept);
  return kept;
}

}  // namespace mtsim::sim
