// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "kernels/gemm/gemm.h"
#include "kernels/naive/naive.h"
#include "scenarios/operands.h"
#include "scenarios/operators.h"
#include "scenarios/rope_reference.h"

namespace mtsim::scenarios {

namespace {

using kernels::GemmDataflow;
using kernels::GemmSums;
using kernels::GemmVariant;
using kernels::GemmWeights;

constexpr std::pair<std::string_view, GemmVariant> k_variants[] = {{"best", GemmVariant::best},
                                                                   {"paper", GemmVariant::paper}};
constexpr std::pair<std::string_view, GemmDataflow> k_dataflows[] = {{"automatic", GemmDataflow::automatic},
                                                                     {"large_m", GemmDataflow::large_m},
                                                                     {"small_m", GemmDataflow::small_m},
                                                                     {"w_stationary", GemmDataflow::w_stationary}};
constexpr std::pair<std::string_view, GemmSums> k_sums[] = {
    {"promoted", GemmSums::promoted}, {"f16_sums", GemmSums::f16}, {"f32_sums", GemmSums::f32}};
constexpr std::pair<std::string_view, GemmWeights> k_weights[] = {{"in_out", GemmWeights::in_out},
                                                                  {"out_in", GemmWeights::out_in}};

template <class Value, std::size_t N>
Value value_of(const std::pair<std::string_view, Value> (&names)[N], std::string_view word) {
  for (const auto& [name, value] : names) {
    if (name == word) return value;
  }
  return names[0].second;
}
template <class Value, std::size_t N>
std::string_view name_of(const std::pair<std::string_view, Value> (&names)[N], Value wanted) {
  for (const auto& [name, value] : names) {
    if (value == wanted) return name;
  }
  return "";
}

/// Row-major operands and their verification; a derived class says how Y is computed.
class MatrixCase : public OperatorCase {
 public:
  MatrixCase(const kernels::GemmShape& shape, DType dtype) : m_shape(shape), m_dtype(dtype) {}

  double macs() const override { return m_shape.macs(); }
  double ideal_bytes() const override {
    const auto [m, n, k] = m_shape;
    return static_cast<double>(bytes_of(m_dtype) * (m * k + k * n + m * n));
  }

 protected:
  void load_operands(sim::Cluster& cluster, std::uint64_t seed, GemmWeights weights) {
    const auto [m, n, k] = m_shape;
    const std::int64_t bytes = bytes_of(m_dtype);
    m_operands = {cluster.ddr_malloc(bytes * m * k), cluster.ddr_malloc(bytes * k * n),
                  cluster.ddr_malloc(bytes * m * n)};
    if (cluster.depth() != sim::Depth::functional) return;
    m_x = rounded(random_values(m * k, seed), m_dtype);
    m_w = rounded(random_values(k * n, ~seed), m_dtype);
    write_values(cluster, m_operands.x, m_x, m_dtype);
    write_values(cluster, m_operands.w, weights == GemmWeights::out_in ? transposed(m_w, n) : m_w, m_dtype);
  }
  Verification verify_against(const sim::Cluster& cluster, const kernels::GemmErrorBound& bound,
                              const FinishRow& finish = {}) const {
    const auto [m, n, k] = m_shape;
    Verification result = verify_gemm(m_x, m_w, read_values(cluster, m_operands.y, m * n, m_dtype), m, n, k,
                                      bound.relative, bound.absolute, finish);
    // A worst case of thousands of roundings promises little; random operands are far from it.
    constexpr std::int64_t k_enough_elements = 256;
    if (!finish && m * n >= k_enough_elements) result.rms_limit = bound.rms;
    return result;
  }

  kernels::GemmShape m_shape;
  DType m_dtype;
  kernels::GemmOperands m_operands;

 private:
  std::vector<float> m_x, m_w;  // [m, k], [k, n]
};

class GemmCase final : public MatrixCase {
 public:
  /// `theta`: of a RopeEpilogue.
  explicit GemmCase(kernels::GemmPlan plan, double theta = 0)
      : MatrixCase(plan.shape, plan.dtype), m_plan(std::move(plan)), m_theta(theta) {}

  Json plan() const override {
    const auto& tiles = m_plan.tiles;
    Json json;
    json["dataflow"] = name_of(k_dataflows, m_plan.dataflow);
    json["tile"] = {{"mg", tiles.mg}, {"kg", tiles.kg}, {"k2", tiles.k2}, {"n2", tiles.n2}};
    json["weights"] = name_of(k_weights, m_plan.weights);
    if (m_plan.dtype == DType::f16) json["sums"] = name_of(k_sums, m_plan.sums);
    if (m_plan.promotes()) json["tile"]["k_promote"] = tiles.k_promote;
    if (m_plan.dataflow == GemmDataflow::w_stationary) json["tile"]["m2"] = tiles.m2;
    if (m_plan.dataflow != GemmDataflow::small_m) {
      json["tile"].update({{"m1", tiles.m1}, {"n1", tiles.n1}});
      json["buffers"] = {{"x", tiles.x_buffers}, {"w", tiles.w_buffers}, {"y", m_plan.y_buffers + m_plan.y_transfers}};
    }
    json["memory"] = {{"m2", m_plan.m2},
                      {"sm_bytes", m_plan.sm_bytes},
                      {"am_bytes", m_plan.am_bytes},
                      {"gsm_bytes", m_plan.gsm_bytes}};
    return json;
  }
  std::string plan_text() const override {
    const auto& tiles = m_plan.tiles;
    return fmt::format("{}  tile mg={} kg={} {}k2={} n2={}{}{}{}", name_of(k_dataflows, m_plan.dataflow), tiles.mg,
                       tiles.kg, m_plan.dataflow == GemmDataflow::w_stationary ? fmt::format("m2={} ", tiles.m2) : "",
                       tiles.k2, tiles.n2, m_plan.promotes() ? fmt::format(" k_promote={}", tiles.k_promote) : "",
                       m_plan.has_hand_tile() ? "" : fmt::format(" m1={} n1={}", tiles.m1, tiles.n1),
                       m_plan.weights == GemmWeights::out_in ? "  W as [n, k]" : "");
  }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    load_operands(cluster, seed, m_plan.weights);
    if (rope() != nullptr) {
      const std::vector<float> frequencies =
          kernels::gemm_frequencies(m_plan, kernels::rope_inv_freq(rope()->head_dim, m_theta));
      m_operands.frequencies = cluster.ddr_malloc(4 * static_cast<std::int64_t>(frequencies.size()));
      write_values(cluster, m_operands.frequencies, frequencies, DType::f32);
    }
    return kernels::gemm_program(cluster, m_plan, m_operands);
  }
  Verification verify(const sim::Cluster& cluster) const override {
    const kernels::GemmErrorBound bound = kernels::gemm_error_bound(m_plan);
    if (rope() == nullptr) return verify_against(cluster, bound);
    const std::vector<float> inv_freq = reference_inv_freq(rope()->head_dim, m_theta);
    return verify_against(cluster, bound, [&](auto row, auto values, auto bounds) {
      rotate_reference(rope()->positions.at(row), inv_freq, rope()->pairs, m_plan.dtype, values, bounds);
    });
  }

 private:
  const kernels::RopeEpilogue* rope() const { return std::get_if<kernels::RopeEpilogue>(&m_plan.epilogue); }

  kernels::GemmPlan m_plan;
  double m_theta;
};

class NaiveGemmCase final : public MatrixCase {
 public:
  explicit NaiveGemmCase(const kernels::NaiveGemmPlan& plan) : MatrixCase(plan.shape, plan.layout.y), m_plan(plan) {}

  Json plan() const override {
    Json json;
    json["tile"] = {{"rows", m_plan.rows}, {"columns", m_plan.columns}, {"depth", m_plan.depth}};
    json["memory"] = {{"sm_bytes", m_plan.sm_bytes}, {"am_bytes", 0}, {"gsm_bytes", 0}};
    return json;
  }
  std::string plan_text() const override {
    return fmt::format("tile rows={} columns={} depth={}", m_plan.rows, m_plan.columns, m_plan.depth);
  }
  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    load_operands(cluster, seed, GemmWeights::in_out);
    return kernels::naive_gemm(cluster, m_plan, {m_operands.x, {m_operands.w}, m_operands.y});
  }
  Verification verify(const sim::Cluster& cluster) const override {
    return verify_against(cluster, kernels::naive_gemm_error_bound(m_plan));
  }

 private:
  kernels::NaiveGemmPlan m_plan;
};

/// What GEMMs of all kinds have in common; a derived class says what a shape means.
class GemmOperator : public Operator {
 public:
  using Operator::Operator;

  double operand_bytes(const Shape& shape, DType dtype) const override {
    const auto [m, n, k] = sizes(shape);
    return static_cast<double>(bytes_of(dtype)) * (m * k + k * n + m * n);
  }
  /// The operands here and in the simulated DDR, Y read back, and W twice in FP64 for the verification.
  double host_bytes(const Shape& shape, DType, bool verify) const override {
    const auto [m, n, k] = sizes(shape);
    const double x = 4 * m * k, w = 4 * k * n, y = 4 * m * n;
    return 2 * (x + w) + y + (verify ? 4 * w + y : 0);
  }
  void check_tile(const std::string& tile, DType dtype) const override { kernels::parse_gemm_tiles(tile, dtype); }

 protected:
  virtual kernels::GemmShape gemm_shape(const Shape& shape) const = 0;

  /// The variant's dataflow, sequence and sums.
  static kernels::GemmChoice choice_of(const CaseSpec& spec) {
    return {.dataflow = value_of(k_dataflows, spec.variant[1]),
            .variant = value_of(k_variants, spec.variant[0]),
            .sums = value_of(k_sums, spec.variant[2])};
  }
  kernels::GemmPlan plan(const CaseSpec& spec, const kernels::GemmChoice& choice,
                         const sim::MachineConfig& machine) const {
    return kernels::plan_gemm(gemm_shape(spec.shape), spec.dtype,
                              kernels::parse_gemm_tiles(spec.tile, spec.dtype, choice), choice, machine);
  }

  struct Sizes {
    double m, n, k;
  };
  /// As gemm_shape, of shapes that nothing has checked yet.
  virtual Sizes sizes(const Shape& shape) const {
    const auto [m, n, k] = gemm_shape(shape);
    return {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)};
  }
};

const std::vector<DType> k_gemm_dtypes = {DType::f32, DType::f16};
std::vector<VariantGroup> variants(VariantGroup first, VariantGroup dataflows, VariantGroup last) {
  return {std::move(first), std::move(dataflows), {{"promoted", "f16_sums", "f32_sums"}}, std::move(last)};
}
constexpr std::string_view k_gemm_tiles =
    "Block sizes, e.g. mg=720,kg=2048,k2=128,n2=256 and of FP16 k_promote=128 (FP32: the paper's by default); large_m "
    "and w_stationary have m1, n1, x_buffers, w_buffers, y_buffers and y_tiles too, w_stationary m2";

class Gemm final : public GemmOperator {
 public:
  Gemm()
      : GemmOperator(
            {.name = "gemm",
             .summary = "Y[m,n] = X[m,k] * W[k,n], row-major",
             .dimensions = {{"m", "Rows of X and Y", {}},
                            {"n", "Columns of W and Y", {}},
                            {"k", "Columns of X, rows of W", {}}},
             .dtypes = k_gemm_dtypes,
             .variants = variants({{"best", "paper", "naive"}}, {{"automatic", "large_m", "small_m", "w_stationary"}},
                                  {{"in_out", "out_in"}}),
             .tiles = k_gemm_tiles,
             .examples = {"--m 720 --n 256 --k 2048 --dtype f32 --verify",
                          "--m 4096 --n 4096 --k 4096 --set ddr.bandwidth_gb_s=60 --json -",
                          "--m 8 --n 4096 --k 4096 --variant paper,small_m", "--m 4096 --n 4096 --k 4096 --dtype f16",
                          "--m 1 --n 4096 --k 4096 --dtype f16 --variant out_in"}}) {}

  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override {
    if (spec.variant[0] == "naive") {
      check_naive(spec);
      return std::make_unique<NaiveGemmCase>(kernels::plan_naive_gemm(gemm_shape(spec.shape), spec.dtype, machine));
    }
    kernels::GemmChoice choice = choice_of(spec);
    choice.weights = value_of(k_weights, spec.variant[3]);
    return std::make_unique<GemmCase>(plan(spec, choice, machine));
  }

 private:
  kernels::GemmShape gemm_shape(const Shape& shape) const override { return {shape[0], shape[1], shape[2]}; }

  /// The baseline leaves nothing to choose.
  void check_naive(const CaseSpec& spec) const {
    if (!spec.tile.empty()) {
      throw kernels::KernelError(fmt::format("--tile {}: the naive variant has tiles of its own", spec.tile));
    }
    for (std::size_t group = 1; group < spec.variant.size(); ++group) {
      if (spec.variant[group] == info().variants[group].words.front()) continue;
      throw kernels::KernelError(
          fmt::format("--variant naive,{}: the naive variant knows no {}", spec.variant[group], spec.variant[group]));
    }
  }
};

/// A GEMM whose epilogue is RoPE.
class LinearRope final : public GemmOperator {
 public:
  LinearRope()
      : GemmOperator({.name = "linear_rope",
                      .summary = "Y[m, heads * head_dim] = X[m,k] * W, its heads rotated before they leave the cores",
                      .dimensions = {{"m", "Rows of X and Y: tokens", {}},
                                     {"k", "Columns of X, rows of W", {}},
                                     {"heads", "Heads of a row of Y", 8},
                                     {"head_dim", "Elements of a head, even", 128},
                                     {"first", "Position of the first row, counted from 1", 1},
                                     {"theta", "Base of inv_freq", 10000}},
                      .dtypes = k_gemm_dtypes,
                      .variants = variants({{"best", "paper"}}, {{"automatic", "large_m", "small_m"}},
                                           {{"interleaved", "half"}}),
                      .tiles = k_gemm_tiles,
                      .examples = {"--m 720 --k 4096 --heads 32",
                                   "--m 61 --k 515 --first 4000 --variant half --dtype f16 --verify"}}) {}

  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override {
    const std::int64_t head_dim = spec.shape[3];
    kernels::GemmChoice choice = choice_of(spec);
    choice.epilogue = kernels::RopeEpilogue{
        .pairs = spec.variant[3] == "half" ? kernels::RopePairs::half : kernels::RopePairs::interleaved,
        .head_dim = head_dim,
        .positions = {spec.shape[4] - 1, {}}};
    return std::make_unique<GemmCase>(plan(spec, choice, machine), static_cast<double>(spec.shape[5]));
  }

 private:
  kernels::GemmShape gemm_shape(const Shape& shape) const override { return {shape[0], shape[2] * shape[3], shape[1]}; }
  Sizes sizes(const Shape& shape) const override {
    return {static_cast<double>(shape[0]), static_cast<double>(shape[2]) * static_cast<double>(shape[3]),
            static_cast<double>(shape[1])};
  }
};

}  // namespace

const Operator& gemm_operator() {
  static const Gemm op;
  return op;
}

const Operator& linear_rope_operator() {
  static const LinearRope op;
  return op;
}

}  // namespace mtsim::scenarios
