// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

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
      for (const std::int32_t id : m_operands.ids) {  // the rows nobody asks for stay unwritten
        const auto [row, is_new] = m_table.try_emplace(id);
        if (!is_new) continue;
        const auto first = static_cast<std::uint64_t>(id) * static_cast<std::uint64_t>(m_columns);
        row->second = rounded(random_values(m_columns, seed, first), m_dtype);
        write_values(cluster, m_operands.table + id * row_bytes, row->second, m_dtype);
      }
    }
    return kernels::gather(cluster, row_bytes, m_vocabulary, m_operands);
  }

  Verification verify(const sim::Cluster& cluster) const override {
    const std::vector<float> y = read_values(cluster, m_operands.y, m_rows * m_columns, m_dtype);
    Comparison comparison(m_columns);
    for (std::int64_t row = 0; row < m_rows; ++row) {
      const std::vector<float>& expected = m_table.at(m_operands.ids[static_cast<std::size_t>(row)]);
      for (std::int64_t c = 0; c < m_columns; ++c)
        comparison.add(y[static_cast<std::size_t>(row * m_columns + c)], expected[static_cast<std::size_t>(c)], 0);
    }
    return comparison.result();
  }

 private:
  std::int64_t m_rows, m_columns, m_vocabulary;
  DType m_dtype;
  kernels::GatherOperands m_operands;
  std::map<std::int32_t, std::vector<float>> m_table;  // the rows that are gathered
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
  /// Of the table, the rows that are gathered.
  double host_bytes(const Shape& shape, DType dtype, bool verify) const override {
    return (verify ? 5 : 2) * operand_bytes({shape[0], shape[1], std::min(shape[0], shape[2])}, dtype);
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
