// SPDX-License-Identifier: Apache-2.0
// The handlers of the loop behind a table of functions: what the Stepper runs, one micro-operation at a time.
#include "sim/core/decode.h"

namespace mtsim::sim {
namespace {

#include "sim/core/handlers_scalar.inc"

#include "sim/core/handlers_data.inc"

using Handler = void (*)(Context&, const MicroOp&);

template <Format F, class Sem, bool Immediate>
void run_late(Context& context, const MicroOp& op) {
  execute<F, Sem, false, Immediate>(context, op);
}

// By code_of without its lowest bit: nothing is written early.
constexpr Handler k_handlers[] = {
#define ROW(mnemonic, units, format, cycles, name, ...) \
  &run_late<Format::format, semantics::name, false>, &run_late<Format::format, semantics::name, true>,
#include "isa/instructions.def"
#undef ROW
};
static_assert(2 * sizeof k_handlers / sizeof k_handlers[0] == k_post_modify);

}  // namespace

void run_operation(Context& context, const MicroOp& op, std::uint16_t code) {
  if (code == k_post_modify) {
    run_post_modify<false>(context, op);
  } else if (code == k_illegal) {
    raise(context, op, FaultKind::illegal_packet, 0);
  } else {
    k_handlers[code / 2](context, op);
  }
}

std::uint64_t accessed_address(Context& context, const MicroOp& op) { return address_of(context, op); }

void land_results(Context& context) { land(context); }

}  // namespace mtsim::sim
