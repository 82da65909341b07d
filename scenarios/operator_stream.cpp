// SPDX-License-Identifier: Apache-2.0
#include "scenarios/operator_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "scenarios/operands.h"

namespace mtsim::scenarios {

namespace {

/// `reference` as a result of the type can be: infinite from half way between its largest number and the next power of
/// two on.
double in_range(double reference, DType dtype) {
  const double limit = dtype == DType::f32 ? 0x1.FFFFFFp127 : 65520;
  return std::abs(reference) < limit || std::isnan(reference)
             ? reference
             : std::copysign(std::numeric_limits<double>::infinity(), reference);
}

class StreamCase final : public OperatorCase {
 public:
  StreamCase(StreamOperatorInfo op, const CaseSpec& spec, StreamWay way)
      : m_op(std::move(op)),
        m_dtype(spec.dtype),
        m_rows(spec.shape[0]),
        m_columns(spec.shape[1]),
        m_way(std::move(way)) {}

  Json plan() const override { return m_way.plan; }
  std::string plan_text() const override { return m_way.plan_text; }
  double ideal_bytes() const override {
    std::int64_t bytes = m_rows * m_columns * bytes_of(m_op.result_dtype(m_dtype));
    for (std::size_t i = 0; i < m_op.inputs.size(); ++i)
      bytes += input_elements(i) * bytes_of(m_op.input_dtype(i, m_dtype));
    return static_cast<double>(bytes);
  }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    std::vector<sim::Pointer> inputs;
    for (std::size_t i = 0; i < m_op.inputs.size(); ++i) {
      const std::int64_t count = input_elements(i);
      const DType dtype = m_op.input_dtype(i, m_dtype);
      inputs.push_back(cluster.ddr_malloc(count * bytes_of(dtype)));
      if (cluster.depth() != sim::Depth::functional) continue;
      std::vector<float> values = random_values(count, seed + i * k_next_seed);
      if (i < m_op.scale.size()) {
        for (float& value : values) value *= m_op.scale[i];
      }
      m_inputs.push_back(rounded(std::move(values), dtype));
      write_values(cluster, inputs.back(), m_inputs.back(), dtype);
    }
    m_result = cluster.ddr_malloc(m_rows * m_columns * bytes_of(m_op.result_dtype(m_dtype)));
    return m_way.program(cluster, inputs, m_result);
  }

  Verification verify(const sim::Cluster& cluster) const override {
    const DType dtype = m_op.result_dtype(m_dtype);
    const auto columns = static_cast<std::size_t>(m_columns);
    const std::vector<float> results = read_values(cluster, m_result, m_rows * m_columns, dtype);
    Comparison comparison(m_columns);
    ReferenceRow row{std::vector<std::span<const float>>(m_inputs.size()), m_dtype, std::vector<double>(columns),
                     std::vector<double>(columns)};
    for (std::size_t first = 0; first < results.size(); first += columns) {
      for (std::size_t i = 0; i < m_inputs.size(); ++i) {
        row.inputs[i] = std::span(m_inputs[i]).subspan(m_op.inputs[i] == StreamInput::matrix ? first : 0, columns);
      }
      m_op.reference(row);
      for (std::size_t c = 0; c < columns; ++c)
        comparison.add(results[first + c], in_range(row.values[c], dtype), row.bounds[c]);
    }
    return comparison.result();
  }

 private:
  static constexpr std::uint64_t k_next_seed = 0x1000'0000'0000'0001;

  std::int64_t input_elements(std::size_t input) const {
    return m_op.inputs[input] == StreamInput::matrix ? m_rows * m_columns : m_columns;
  }

  StreamOperatorInfo m_op;
  DType m_dtype;
  std::int64_t m_rows, m_columns;
  StreamWay m_way;
  std::vector<std::vector<float>> m_inputs;
  sim::Pointer m_result;
};

StreamWay vector_way(const StreamOperatorInfo& op, const CaseSpec& spec, const sim::MachineConfig& machine) {
  const std::int64_t tile = kernels::parse_stream_tile(spec.tile, op.tile_key);
  const kernels::StreamPlan plan = op.plan(spec.shape[0], spec.shape[1], spec.dtype, tile, machine);
  StreamWay way;
  way.plan["tile"] = {{std::string(op.tile_key), plan.tile_items}};
  way.plan["memory"] = {{"sm_bytes", 0}, {"am_bytes", plan.am_bytes}, {"gsm_bytes", 0}};
  way.plan_text = tile_text(op.tile_key, plan.tile_items, tile);
  way.program = [program = op.program, plan, dtype = spec.dtype](
                    sim::Cluster& cluster, const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
    return program(cluster, plan, dtype, inputs, result);
  };
  return way;
}

}  // namespace

bool is_naive(const CaseSpec& spec) {
  return std::find(spec.variant.begin(), spec.variant.end(), "naive") != spec.variant.end();
}

std::string tile_text(std::string_view key, std::int64_t tile, std::int64_t asked) {
  return fmt::format("tile {}={}{}", key, tile, asked > tile ? fmt::format(" (all a core has; {} asked)", asked) : "");
}

StreamWay naive_way(const kernels::NaiveRowsShape& shape, const CaseSpec& spec, const sim::MachineConfig& machine) {
  if (!spec.tile.empty()) {
    throw kernels::KernelError(fmt::format("--tile {}: the naive variant has tiles of its own", spec.tile));
  }
  const kernels::NaiveRowsPlan plan = kernels::plan_naive_rows(shape, machine);
  const std::string_view item = shape.is_elementwise() ? "elements" : "rows";
  StreamWay way;
  way.plan["tile"] = {{std::string(item), plan.tile}};
  way.plan["memory"] = {{"sm_bytes", plan.sm_bytes}, {"am_bytes", 0}, {"gsm_bytes", 0}};
  way.plan_text = fmt::format("tile {}={}", item, plan.tile);
  way.program = [plan](sim::Cluster& cluster, const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
    return kernels::naive_rows(cluster, plan, {inputs[0], inputs.size() > 1 ? inputs[1] : sim::Pointer{}, result});
  };
  return way;
}

StreamOperator::StreamOperator(StreamOperatorInfo op) : Operator(op.info), m_op(std::move(op)) {}

double StreamOperator::operand_bytes(const Shape& shape, DType dtype) const {
  const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  double bytes = static_cast<double>(bytes_of(m_op.result_dtype(dtype))) * rows * columns;
  for (const StreamInput input : m_op.inputs)
    bytes += static_cast<double>(bytes_of(dtype)) * (input == StreamInput::matrix ? rows : 1) * columns;
  return bytes;
}

void StreamOperator::check_tile(const std::string& tile, DType) const {
  kernels::parse_stream_tile(tile, m_op.tile_key);
}

std::unique_ptr<OperatorCase> StreamOperator::prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const {
  StreamOperatorInfo op = m_op;
  if (op.complete) op.complete(op, spec);
  StreamWay way;
  if (op.naive) {
    op.naive->rows = spec.shape[0];
    op.naive->columns = spec.shape[1];
    op.naive->dtype = spec.dtype;
    way = naive_way(*op.naive, spec, machine);
  } else {
    way = vector_way(op, spec, machine);
  }
  return std::make_unique<StreamCase>(std::move(op), spec, std::move(way));
}

std::vector<Dimension> matrix_dimensions() { return {{"m", "Rows", {}}, {"n", "Columns", {}}}; }

}  // namespace mtsim::scenarios
