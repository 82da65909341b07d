// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather/gather.h"
#include "kernels/tile_text.h"
#include "scenarios/operands.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

class GatherCase final : public OperatorCase {
 public:
  explicit GatherCase(const CaseSpec& spec)
      : m_rows(spec.shape[0]), m_columns(spec.shape[1]), m_vocabulary(spec.shape[2]), m_dtype(spec.dtype) {}

  Json plan() const override { return {{"memory", {{"sm_bytes", 0}, {"am_bytes", 0}, {"gsm_bytes", 0}}}}; }
  std::string plan_text() const override { return "DDR to DDR"; }
  double ideal_bytes() const override {
    return 2 * static_cast<double>(m_rows) * static_cast<double>(m_columns * bytes_of(m_dtype));
  }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    const std::int64_t row_bytes = m_columns * bytes_of(m_dtype);
    m_operands.table = cluster.ddr_malloc(m_vocabulary * row_bytes);
    m_operands.y = cluster.ddr_malloc(m_rows * row_bytes);
    for (const float value : random_values(m_rows, ~seed)) {
      const double place = (static_cast<double>(value) + 1) / 2;  // [0, 1)
      m_operands.ids.push_back(static_cast<std::int32_t>(place * static_cast<double>(m_vocabulary)));
    }
    if (cluster.depth() == sim::Depth::functional) {
      m_table = rounded(random_values(m_vocabulary * m_columns, seed), m_dtype);
      write_values(cluster, m_operands.table, m_table, m_dtype);
    }
    return kernels::gather(cluster, row_bytes, m_vocabulary, m_operands);
  }

  Verification verify(const sim::Cluster& cluster) const override {
    const std::vector<float> y = read_values(cluster, m_operands.y, m_rows * m_columns, m_dtype);
    Comparison comparison(m_columns);
    for (std::int64_t row = 0; row < m_rows; ++row) {
      const std::int64_t from = m_operands.ids[static_cast<std::size_t>(row)] * m_columns;
      for (std::int64_t c = 0; c < m_columns; ++c)
        comparison.add(y[static_cast<std::size_t>(row * m_columns + c)], m_table[static_cast<std::size_t>(from + c)],
                       0);
    }
    return comparison.result();
  }

 private:
  std::int64_t m_rows, m_columns, m_vocabulary;
  DType m_dtype;
  kernels::GatherOperands m_operands;
  std::vector<float> m_table;
};

class Gather final : public Operator {
 public:
  Gather()
      : Operator({.name = "gather",
                  .summary = "Y[m,n] = T[ids[m],n], rows of a table: the embedding lookup",
                  .dimensions = {{"m", "Rows of Y: ids, random from --seed", {}},
                                 {"n", "Columns of T and Y", {}},
                                 {"vocabulary", "Rows of T", 32000}},
                  .dtypes = {DType::f32, DType::f16},
                  .variants = {},
                  .tiles = "",
                  .examples = {"--m 512 --n 4096 --dtype f16", "--m 61 --n 129 --vocabulary 1000 --verify"}}) {}

  double operand_bytes(const Shape& shape, DType dtype) const override {
    return static_cast<double>(bytes_of(dtype)) * static_cast<double>(shape[1]) *
           (static_cast<double>(shape[0]) + static_cast<double>(shape[2]));
  }
  void check_tile(const std::string& tile, DType) const override { kernels::parse_tiles(tile, {}); }
  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig&) const override {
    return std::make_unique<GatherCase>(spec);
  }
};

}  // namespace

const Operator& gather_operator() {
  static const Gather op;
  return op;
}

}  // namespace mtsim::scenarios
