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

std::uint64_t register_at(Context& context, std::uint16_t offset) {
  return *reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::byte*>(&context) + offset);
}

#include "isa/semantics.inc"

template <class Sem, bool Store>
void run_access(Context& context, const MicroOp& op) {
  const std::uint64_t address = register_at(context, op.a) + static_cast<std::uint64_t>(op.immediate) +
                                static_cast<std::uint64_t>(op.scale) * register_at(context, op.b);
  const std::uint64_t index = (address + k_half_window) >> AccessLog::k_pointer_shift;
  if (index == 0 || index > context.log->pointers.size()) {
    if (context.fault == FaultKind::none) {
      context.fault = FaultKind::address;
      context.fault_value = address;
      context.fault_instruction = op.instruction;
    }
    return;
  }
  auto& pointer = context.log->pointers[index - 1];
  const auto offset = static_cast<std::int64_t>(address - (index << AccessLog::k_pointer_shift));
  Extent& extent = Store ? pointer.write : pointer.read;
  extent.lo = std::min(extent.lo, offset + Sem::first);
  extent.hi = std::max(extent.hi, offset + Sem::last);
  // The symbolic base is aligned to everything; what the offset lacks, a real base would have to lack too.
  pointer.alignment = std::max<std::int64_t>(pointer.alignment, op.alignment);
  if ((static_cast<std::uint64_t>(offset) & (op.alignment - 1u)) != 0) {
    context.fault = FaultKind::alignment;
    context.fault_value = address;
    context.fault_instruction = op.instruction;
  }
}

void run_nothing(Context&, const MicroOp&) {}

template <class Sem>
constexpr Handler handler_without_data(isa::Format format, Handler scalar) {
  if constexpr (requires { Sem::last; }) {
    return isa::is_store(format) ? &run_access<Sem, true> : &run_access<Sem, false>;
  } else {
    switch (format) {
      case isa::Format::VVVV:
      case isa::Format::VVV:
      case isa::Format::VV:
      case isa::Format::IV:
      case isa::Format::SV: return &run_nothing;
      default: return scalar;
    }
  }
}

const Handler* handlers_without_data() {
  static const auto table = [] {
    std::array<Handler, k_handler_count> handlers;
    std::copy_n(k_host_baseline.handlers, handlers.size(), handlers.begin());
#define ROW(mnemonic, units, format, cycles, name, grade, source)                                  \
  for (int variant = 0; variant < k_variants; ++variant) {                                         \
    Handler& handler = handlers[static_cast<int>(isa::Mnemonic::mnemonic) * k_variants + variant]; \
    handler = handler_without_data<semantics::name>(isa::Format::format, handler);                 \
  }
#include "isa/instructions.def"
#undef ROW
    return handlers;
  }();
  return table.data();
}

bool is_pointer(isa::ParameterKind kind) {
  return kind == isa::ParameterKind::pointer_sm || kind == isa::ParameterKind::pointer_am;
}

}  // namespace

KernelProfile profile(const DecodedProgram& program, std::span<const std::uint64_t> arguments,
                      const RunOptions& options) {
  const auto& parameters = program.program().parameters;
  if (arguments.size() != parameters.size()) {
    throw std::invalid_argument(fmt::format("{} takes {} arguments (.param), got {}", program.program().name,
                                            parameters.size(), arguments.size()));
  }
  AccessLog log;
  log.pointers.resize(parameters.size());
  auto context = std::make_unique<Context>();
  RingStorage ring;
  context->log = &log;
  context->handlers = handlers_without_data();
  context->registers.r[isa::k_return_register.index] = k_return_address;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::uint64_t value = is_pointer(parameters[i].kind) ? (i + 1) << AccessLog::k_pointer_shift : arguments[i];
    context->registers.r[parameters[i].reg.index] = value;
  }
  ring.fit(*context, program.impl());
  KernelProfile result;
  result.result = interpret(*context, k_host_baseline, program.impl(), options);
  result.pointers = std::move(log.pointers);
  return result;
}

}  // namespace mtsim::sim
