// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "kernels/transpose/transpose.h"
#include "scenarios/operands.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

class TransposeCase final : public OperatorCase {
 public:
  explicit TransposeCase(const kernels::TransposePlan& plan) : m_plan(plan) {}

  Json plan() const override {
    Json json;
    json["tile"] = {{"rows", m_plan.tiles.rows}, {"columns", m_plan.tiles.columns}};
    json["memory"] = {{"sm_bytes", 0}, {"am_bytes", m_plan.am_bytes}, {"gsm_bytes", 0}};
    return json;
  }
  std::string plan_text() const override {
    return fmt::format("tile rows={} columns={}", m_plan.tiles.rows, m_plan.tiles.columns);
  }
  double ideal_bytes() const override { return m_plan.ideal_bytes(); }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    const std::int64_t bytes = elements() * bytes_of(m_plan.dtype);
    m_operands = {cluster.ddr_malloc(bytes), cluster.ddr_malloc(bytes)};
    if (cluster.depth() == sim::Depth::functional) {
      m_x = rounded(random_values(elements(), seed), m_plan.dtype);
      write_values(cluster, m_operands.x, m_x, m_plan.dtype);
    }
    return kernels::transpose(cluster, m_plan, m_operands);
  }

  Verification verify(const sim::Cluster& cluster) const override {
    const std::int64_t rows = m_plan.shape.rows, columns = m_plan.shape.columns;
    const std::vector<float> y = read_values(cluster, m_operands.y, elements(), m_plan.dtype);
    Comparison comparison(rows);
    for (std::int64_t j = 0; j < columns; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) {
        comparison.add(static_cast<double>(y[static_cast<std::size_t>(j * rows + i)]),
                       static_cast<double>(m_x[static_cast<std::size_t>(i * columns + j)]), 0);
      }
    }
    return comparison.result();
  }

 private:
  std::int64_t elements() const { return m_plan.shape.rows * m_plan.shape.columns; }

  kernels::TransposePlan m_plan;
  kernels::TransposeOperands m_operands;
  std::vector<float> m_x;
};

class Transpose final : public Operator {
 public:
  Transpose()
      : Operator({.name = "transpose",
                  .summary = "Y[columns, rows] = X[rows, columns] transposed",
                  .dimensions = {{"rows", "Rows of X", {}}, {"columns", "Columns of X", {}}},
                  .dtypes = {DType::f32, DType::f16},
                  .variants = {},
                  .tiles = "What a core transposes at a time, e.g. rows=128,columns=64 (at most 128 x 128 by default)",
                  .examples = {"--rows 512 --columns 4096 --dtype f16", "--rows 61 --columns 129 --verify"}}) {}

  double operand_bytes(const Shape& shape, DType dtype) const override {
    return 2.0 * static_cast<double>(bytes_of(dtype)) * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }
  void check_tile(const std::string& tile, DType dtype) const override { kernels::parse_transpose_tiles(tile, dtype); }
  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override {
    return std::make_unique<TransposeCase>(kernels::plan_transpose(
        {spec.shape[0], spec.shape[1]}, spec.dtype, kernels::parse_transpose_tiles(spec.tile, spec.dtype), machine));
  }
};

}  // namespace

const Operator& transpose_operator() {
  static const Transpose op;
  return op;
}

}  // namespace mtsim::scenarios
