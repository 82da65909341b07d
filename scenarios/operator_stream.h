// SPDX-License-Identifier: Apache-2.0
// Operators on a matrix [m, n] that stream through AM (kernels/stream): their cases differ only in what an
// StreamOperatorInfo says.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/naive/naive.h"
#include "kernels/stream/stream.h"
#include "scenarios/operator.h"

namespace mtsim::scenarios {

/// An operand: a matrix like the result, or one row that serves all rows (a bias, the weights of a norm).
enum class StreamInput : std::uint8_t { matrix, row };

/// One row of every input, and what the result's row must be.
struct ReferenceRow {
  std::vector<std::span<const float>> inputs;  // [n] each
  DType dtype = DType::f32;                    // of the inputs
  std::vector<double> values, bounds;          // [n] each, to be filled: the exact result and what its error may be
};

struct StreamOperatorInfo {
  OperatorInfo info;          // dimensions m and n
  std::string_view tile_key;  // what an item is called in --tile: "elements", "rows"
  std::vector<StreamInput> inputs;
  std::function<DType(DType)> result_dtype = [](DType dtype) { return dtype; };
  std::function<kernels::StreamPlan(std::int64_t m, std::int64_t n, DType, std::int64_t tile,
                                    const sim::MachineConfig&)>
      plan;
  std::function<sim::DspProgram(sim::Cluster&, const kernels::StreamPlan&, DType,
                                const std::vector<sim::Pointer>& inputs, sim::Pointer result)>
      program;
  std::function<void(ReferenceRow&)> reference;
  /// Random values are in [-1, 1) times this, one factor an input; 1 for those not named.
  std::vector<float> scale = {};
  /// Types of inputs that have one of their own, whatever the case's.
  std::vector<std::optional<DType>> input_dtypes = {};
  /// For more dimensions than m and n, and for variants: fills in what depends on them for one case.
  std::function<void(StreamOperatorInfo&, const CaseSpec&)> complete = {};
  /// Set for a case of the naive variant; rows, columns and dtype are filled in.
  std::optional<kernels::NaiveRowsShape> naive = {};

  DType input_dtype(std::size_t input, DType dtype) const {
    return input < input_dtypes.size() ? input_dtypes[input].value_or(dtype) : dtype;
  }
};

class StreamOperator final : public Operator {
 public:
  explicit StreamOperator(StreamOperatorInfo op);

  double operand_bytes(const Shape& shape, DType dtype) const override;
  void check_tile(const std::string& tile, DType dtype) const override;
  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override;

 private:
  StreamOperatorInfo m_op;
};

/// How one case goes about it: through the vector microcode of its operator or as the ablation's baseline.
struct StreamWay {
  Json plan;  // as OperatorCase::plan
  std::string plan_text;
  std::function<sim::DspProgram(sim::Cluster&, const std::vector<sim::Pointer>& inputs, sim::Pointer result)> program;
};
/// "tile rows=2", and what was asked for when a core has no more than that.
std::string tile_text(std::string_view key, std::int64_t tile, std::int64_t asked);
/// KernelError when a tile is asked for: the baseline has one size of its own.
StreamWay naive_way(const kernels::NaiveRowsShape& shape, const CaseSpec& spec, const sim::MachineConfig& machine);

/// The variants of an operator that has a baseline.
inline const VariantGroup k_best_or_naive{{"best", "naive"}};
bool is_naive(const CaseSpec& spec);

/// The dimensions of all of them.
std::vector<Dimension> matrix_dimensions();

/// Half a unit in the last place, relative: what one rounding to the type may be off by.
constexpr double unit_roundoff(DType dtype) { return dtype == DType::f32 ? 0x1p-24 : 0x1p-11; }

}  // namespace mtsim::scenarios
