// SPDX-License-Identifier: Apache-2.0
#include "kernel_contracts.h"

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include "kernels/gemm/gemm_tile.h"

namespace mtsim::kernels {
namespace {

/// One call.
struct Call {
  const isa::Program& program;
  const std::string& entry;
  std::span<const sim::Argument> arguments;
  const KernelFacts& facts;

  std::int64_t number(std::size_t i) const { return static_cast<std::int64_t>(arguments[i].value); }
  bool f16() const { return facts.dtype == DType::f16; }
  std::int64_t bytes() const { return bytes_of(facts.dtype); }
  /// What argument `i` points to.
  Tile row(std::size_t i, std::int64_t row_bytes) const { return {arguments[i].pointer, 1, row_bytes, 0}; }
  Tile rows(std::size_t i, std::int64_t count, std::int64_t row_bytes, std::int64_t pitch) const {
    return {arguments[i].pointer, count, row_bytes, pitch};
  }
};

KernelContract gemm(const Call& call, std::int64_t columns) {  // x, w, y, k, x_pitch, w_pitch, y_pitch
  constexpr std::int64_t k_rows = 6;
  const std::int64_t b = call.bytes(), sum_bytes = call.entry.ends_with("_f32") ? 4 : b;
  const Tile y = call.rows(2, k_rows, columns * sum_bytes, call.number(6));
  KernelContract contract{{call.rows(0, k_rows, call.number(3) * b, call.number(4)),
                           call.rows(1, call.number(3), columns * b, call.number(5))},
                          {y}};
  if (call.entry.starts_with("accumulate")) contract.reads.push_back(y);
  return contract;
}

KernelContract gemm_tile(const Call& call) {             // as gemm
  static std::map<const isa::Program*, GemmTile> tiles;  // the programs of calls live as long as the only cluster
  auto known = tiles.find(&call.program);
  if (known == tiles.end()) known = tiles.emplace(&call.program, gemm_tile_of(call.program)).first;
  const GemmTile& tile = known->second;
  const std::int64_t b = bytes_of(tile.dtype), sum_bytes = tile.promotes ? 4 : b;
  const Tile y = call.rows(2, tile.rows, tile.columns() * sum_bytes, call.number(6));
  KernelContract contract{{call.rows(0, tile.rows, call.number(3) * b, call.number(4)),
                           call.rows(1, call.number(3), tile.columns() * b, call.number(5))},
                          {y}};
  if (call.entry == "accumulate") contract.reads.push_back(y);
  return contract;
}

KernelContract gemm_dot(const Call& call) {  // x, w, y, k, w_pitch, scratch
  constexpr std::int64_t k_columns = 32, k_scratch_bytes = 2560;
  const std::int64_t bytes = call.number(3) * call.bytes();
  const Tile y = call.row(2, k_columns * 4);
  return {{call.row(0, bytes), call.rows(1, k_columns, bytes, call.number(4)), y}, {y, call.row(5, k_scratch_bytes)}};
}

KernelContract narrow(const Call& call) {  // sums, y, sums_pitch, y_pitch
  constexpr std::int64_t k_rows = 6, k_columns = 256;
  const Tile y = call.rows(1, k_rows, k_columns * 2, call.number(3));
  KernelContract contract{{call.rows(0, k_rows, k_columns * 4, call.number(2))}, {y}};
  if (call.entry == "merge") contract.reads.push_back(y);
  return contract;
}

KernelContract add(const Call& call) {  // x, a, bytes
  const Tile x = call.row(0, call.number(2));
  return {{x, call.row(1, call.number(2))}, {x}};
}

KernelContract convert(const Call& call) {  // x, y, bytes of the FP32 side
  const std::int64_t wide = call.number(2), half = wide / 2;
  const bool widens = call.entry == "f16_to_f32";
  return {{call.row(0, widens ? half : wide)}, {call.row(1, widens ? wide : half)}};
}

constexpr std::int64_t k_row_area = 15360;  // rows_bytes of kernels/reduce/rows.inc.s

KernelContract softmax(const Call& call) {  // x, y, e, area, rows, blocks, scale
  const std::int64_t elements = call.number(4) * call.number(5) * 256;
  return {{call.row(0, elements * call.bytes())},
          {call.row(1, elements * call.bytes()), call.row(2, elements * 4), call.row(3, k_row_area)}};
}

KernelContract rmsnorm(const Call& call) {  // x, y, gamma, area, rows, blocks, per_column, eps
  const std::int64_t columns = call.number(5) * 256, bytes = call.number(4) * columns * call.bytes();
  return {{call.row(0, bytes), call.row(2, columns * bytes_of(call.facts.gamma))},
          {call.row(1, bytes), call.row(3, k_row_area)}};
}

KernelContract transpose(const Call& call) {  // x, y, scratch, blocks, x_pitch, y_pitch
  const std::int64_t unit = 128 / call.bytes(), blocks = call.number(3);
  return {{call.rows(0, unit, blocks * 128, call.number(4))},
          {call.rows(1, blocks * unit, 128, call.number(5)), call.row(2, call.f16() ? 16384 : 8192)}};
}

KernelContract rope_angles(const Call& call) {  // position, inv_freq, cosine, sine, rows, pitch
  const std::int64_t column = call.facts.pairs == RopePairs::interleaved ? 256 : 128;
  return {{call.row(1, 128)},
          {call.rows(2, call.number(4), column, call.number(5)), call.rows(3, call.number(4), column, call.number(5))}};
}

KernelContract rotation(const Call& call) {  // x, cosine, sine, count, x_step, angle_step
  const std::int64_t head = call.facts.rope_head_dim * call.bytes(), count = call.number(3);
  // A pair of FP32 angles is 4 B a table; where pairs lie in lanes each is there twice.
  const std::int64_t angles = call.facts.rope_head_dim / 2 * (call.facts.pairs == RopePairs::interleaved ? 8 : 4);
  const std::int64_t steps = call.number(5) == 0 ? 1 : count;
  const Tile x = call.rows(0, count, call.facts.rope_heads * head, call.number(4));
  return {{x, call.rows(1, steps, angles, call.number(5)), call.rows(2, steps, angles, call.number(5))}, {x}};
}

// A tile of scores is 128 columns of FP32; what is known of a row is a vector.
constexpr std::int64_t k_scores = 512, k_vector = 128;

KernelContract attention_exp(const Call& call) {  // x, minus_m, sums, rows, pitch, scale
  const Tile x = call.rows(0, call.number(3), k_scores, call.number(4)), sums = call.row(2, call.number(3) * k_vector);
  return {{x, call.row(1, call.number(3) * k_vector), sums}, {x, sums}};
}

KernelContract attention_max(const Call& call) {  // x, most, seen, rows, pitch
  const Tile most = call.row(1, call.number(3) * k_vector), seen = call.row(2, call.number(3) * k_vector);
  return {{call.rows(0, call.number(3), k_scores, call.number(4)), most, seen}, {most, seen}};
}

KernelContract attention_mask(const Call& call) {  // x, lanes, rows, pitch, limit, step
  const Tile x = call.rows(0, call.number(2), k_scores, call.number(3));
  return {{x, call.row(1, k_vector)}, {x}};
}

KernelContract attention_paper(const Call& call) {  // x, lane, unused, rows, pitch, factor
  const Tile x = call.rows(0, call.number(3), k_scores, call.number(4)), lane = call.row(1, call.number(3) * k_vector);
  if (call.entry == "scale") return {{x}, {x}};
  if (call.entry == "exp") return {{x, lane}, {x}};
  return {{x, lane}, {lane}};
}

KernelContract attention_rescale(const Call& call) {  // y, factor, rows, pitch
  const Tile y = call.rows(0, call.number(2), call.facts.rescaled_bytes, call.number(3));
  return {{y, call.row(1, call.number(2) * k_vector)}, {y}};
}

KernelContract attention_rows(const Call& call) {  // first, second, value, turn, kept, scale
  const Tile first = call.row(0, 32 * k_vector), second = call.row(1, 32 * k_vector),
             value = call.row(2, 32 * k_vector), turn = call.row(3, 2560), kept = call.row(4, 2 * k_vector),
             l = {kept.at + k_vector, 1, k_vector, 0};
  if (call.entry == "begin") return {{first, second}, {second, value, turn, kept}};
  if (call.entry == "next") return {{first, second, kept}, {first, second, value, turn, kept}};
  if (call.entry == "add") return {{second, l}, {turn, l}};
  return {{kept}, {value}};
}

using Contract = std::function<KernelContract(const Call&)>;
const std::map<std::string, Contract> k_contracts = {
    {"gemm_f32_6x128", [](const Call& call) { return gemm(call, 128); }},
    {"gemm_f16_6x256", [](const Call& call) { return gemm(call, 256); }},
    {"gemm_tile", gemm_tile},
    {"gemm_dot_1x32", gemm_dot},
    {"gemm_narrow_6x256", narrow},
    {"gemm_narrow_row",  // sums, y, n
     [](const Call& call) {
       return KernelContract{{call.row(0, call.number(2) * 4)}, {call.row(1, call.number(2) * 2)}};
     }},
    {"zero_sm_column",  // x, rows, pitch
     [](const Call& call) {
       return KernelContract{{}, {call.rows(0, call.number(1), 8, call.number(2))}};
     }},
    {"zero_am_column",  // at, rows, pitch
     [](const Call& call) {
       return KernelContract{{}, {call.rows(0, call.number(1), 128, call.number(2))}};
     }},
    {"zero_am",
     [](const Call& call) {
       return KernelContract{{}, {call.row(0, call.number(1))}};
     }},  // w, bytes
    {"fill_am",
     [](const Call& call) {
       return KernelContract{{}, {call.row(0, call.number(1))}};
     }},  // am, bytes, value
    {"add", add},
    {"attention_exp", attention_exp},
    {"attention_lanes",
     [](const Call& call) {
       return KernelContract{{}, {call.row(0, 248)}};
     }},
    {"attention_mask", attention_mask},
    {"attention_max", attention_max},
    {"attention_paper", attention_paper},
    {"attention_rescale", attention_rescale},
    {"attention_rows", attention_rows},
    {"attention_widen",  // x, y, bytes
     [](const Call& call) {
       return KernelContract{{call.row(0, call.number(2) / 2)}, {call.row(1, call.number(2))}};
     }},
    {"silu_mul", add},  // gate, up, bytes
    {"convert", convert},
    {"softmax", softmax},
    {"rmsnorm", rmsnorm},
    {"transpose", transpose},
    {"rope_angles", rope_angles},
    {"rope_interleaved", rotation},
    {"rope_half", rotation},
};

}  // namespace

KernelContract contract_of(const sim::Kernel& kernel, std::span<const sim::Argument> arguments,
                           const KernelFacts& facts) {
  const std::string& program = kernel.program->program().name;
  const auto known = k_contracts.find(program);
  if (known == k_contracts.end()) throw std::logic_error("no contract is known of " + program);
  return known->second({kernel.program->program(), kernel.entry, arguments, facts});
}

}  // namespace mtsim::kernels
