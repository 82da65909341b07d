// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/rope/rope.h"
#include "scenarios/operands.h"
#include "scenarios/operator_stream.h"
#include "scenarios/operators.h"
#include "scenarios/rope_reference.h"

namespace mtsim::scenarios {

namespace {

using kernels::NaiveOp;
using kernels::RopePairs;

class RopeCase final : public OperatorCase {
 public:
  /// `frequencies`: as the program wants them.
  RopeCase(const CaseSpec& spec, RopePairs pairs, std::vector<float> inv_freq, std::vector<float> frequencies,
           StreamWay way)
      : m_spec(spec),
        m_pairs(pairs),
        m_inv_freq(std::move(inv_freq)),
        m_frequencies(std::move(frequencies)),
        m_way(std::move(way)) {}

  Json plan() const override { return m_way.plan; }
  std::string plan_text() const override { return m_way.plan_text; }
  double ideal_bytes() const override { return static_cast<double>(2 * elements() * bytes_of(m_spec.dtype)); }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    const std::int64_t bytes = elements() * bytes_of(m_spec.dtype);
    const sim::Pointer x = cluster.ddr_malloc(bytes);
    const sim::Pointer frequencies = cluster.ddr_malloc(4 * std::ssize(m_frequencies));
    m_y = cluster.ddr_malloc(bytes);
    if (cluster.depth() == sim::Depth::functional) {
      m_x = rounded(random_values(elements(), seed), m_spec.dtype);
      write_values(cluster, x, m_x, m_spec.dtype);
      write_values(cluster, frequencies, m_frequencies, DType::f32);
    }
    return m_way.program(cluster, {x, frequencies}, m_y);
  }

  Verification verify(const sim::Cluster& cluster) const override {
    const auto columns = static_cast<std::size_t>(elements() / m_spec.shape[0]);
    const std::vector<float> y = read_values(cluster, m_y, elements(), m_spec.dtype);
    Comparison comparison(static_cast<std::int64_t>(columns));
    std::vector<double> values, bounds;
    for (std::size_t first = 0; first < y.size(); first += columns) {
      const auto x = std::span(m_x).subspan(first, columns);
      values.assign(x.begin(), x.end());
      bounds.assign(columns, 0);
      rotate_reference(first_position(m_spec) + static_cast<std::int64_t>(first / columns), m_inv_freq, m_pairs,
                       m_spec.dtype, values, bounds);
      for (std::size_t i = 0; i < columns; ++i) comparison.add(static_cast<double>(y[first + i]), values[i], bounds[i]);
    }
    return comparison.result();
  }

  static std::int64_t first_position(const CaseSpec& spec) { return spec.shape[3] - 1; }

 private:
  std::int64_t elements() const { return m_spec.shape[0] * m_spec.shape[1] * m_spec.shape[2]; }

  CaseSpec m_spec;
  RopePairs m_pairs;
  std::vector<float> m_inv_freq, m_frequencies;
  StreamWay m_way;
  std::vector<float> m_x;
  sim::Pointer m_y;
};

StreamWay vector_way(const kernels::RopePlan& plan, std::int64_t tile_rows) {
  StreamWay way;
  way.plan["tile"] = {{"rows", plan.tile_rows()}};
  way.plan["memory"] = {{"sm_bytes", 0}, {"am_bytes", plan.stream.am_bytes}, {"gsm_bytes", 0}};
  way.plan_text = tile_text("rows", plan.tile_rows(), tile_rows);
  way.program = [plan](sim::Cluster& cluster, const std::vector<sim::Pointer>& inputs, sim::Pointer result) {
    return kernels::rope(cluster, plan, {inputs[0], inputs[1], result});
  };
  return way;
}

/// In the user's words: `first` counts from 1, and the kernel's positions from 0.
void require_positions(const CaseSpec& spec) {
  const std::int64_t rows = spec.shape[0], first = spec.shape[3], most = kernels::k_rope_max_position + 1;
  if (rows > most)
    throw kernels::KernelError(fmt::format("rope: {} rows; sine and cosine are computed for {} positions", rows, most));
  if (first - 1 <= most - rows) return;
  throw kernels::KernelError(
      fmt::format("rope: first = {}: sine and cosine are computed for the positions 1 to {}; with {} row{} first is at "
                  "most {}",
                  first, most, rows, rows == 1 ? "" : "s", most - rows + 1));
}

class Rope final : public Operator {
 public:
  Rope()
      : Operator(
            {.name = "rope",
             .summary = "Y = X[rows, heads * head_dim] with each head's pairs rotated by position * inv_freq",
             .dimensions = {{"rows", "Rows of X: tokens", {}},
                            {"heads", "Heads of a row", {}},
                            {"head_dim", "Elements of a head, even", 128},
                            {"first", "Position of the first row, counted from 1; the next row has the next one", 1},
                            {"theta", "Base of inv_freq", 10000}},
             .dtypes = {DType::f32, DType::f16},
             .variants = {k_best_or_naive, {{"interleaved", "half"}}},
             .tiles = "Rows a core works on at a time, e.g. rows=2 (about 16 KB by default)",
             .examples = {"--rows 512 --heads 32 --variant half --dtype f16",
                          "--rows 61 --heads 5 --head_dim 80 --first 4000 --verify"}}) {}

  double operand_bytes(const Shape& shape, DType dtype) const override {
    return 2.0 * static_cast<double>(bytes_of(dtype)) * static_cast<double>(shape[0]) * static_cast<double>(shape[1]) *
           static_cast<double>(shape[2]);
  }
  void check_tile(const std::string& tile, DType) const override { kernels::parse_stream_tile(tile, "rows"); }
  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override {
    const RopePairs pairs = spec.variant[1] == "half" ? RopePairs::half : RopePairs::interleaved;
    const auto [rows, heads, head_dim] = std::tuple(spec.shape[0], spec.shape[1], spec.shape[2]);
    require_positions(spec);
    const kernels::RopePositions positions{RopeCase::first_position(spec), {}};
    const std::int64_t tile_rows = kernels::parse_stream_tile(spec.tile, "rows");
    const kernels::RopePlan plan =
        kernels::plan_rope({rows, heads, head_dim}, pairs, spec.dtype, positions, tile_rows, machine);
    const auto theta = static_cast<double>(spec.shape[4]);
    std::vector<float> frequencies = kernels::rope_inv_freq(head_dim, theta);
    StreamWay way;
    if (is_naive(spec)) {
      way = naive_way({.op = pairs == RopePairs::half ? NaiveOp::rope_half : NaiveOp::rope_interleaved,
                       .rows = rows,
                       .columns = heads * head_dim,
                       .dtype = spec.dtype,
                       .heads = heads,
                       .position = positions.first},
                      spec, machine);
    } else {
      frequencies = plan.layout.frequencies(frequencies);
      way = vector_way(plan, tile_rows);
    }
    return std::make_unique<RopeCase>(spec, pairs, reference_inv_freq(head_dim, theta), std::move(frequencies),
                                      std::move(way));
  }
};

}  // namespace

const Operator& rope_operator() {
  static const Rope op;
  return op;
}

}  // namespace mtsim::scenarios
