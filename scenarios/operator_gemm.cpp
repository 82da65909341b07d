// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "kernels/gemm/gemm.h"
#include "scenarios/operands.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

using kernels::GemmDataflow;
using kernels::GemmSums;
using kernels::GemmVariant;
using kernels::GemmWeights;

constexpr std::pair<std::string_view, GemmVariant> k_variants[] = {{"best", GemmVariant::best},
                                                                   {"paper", GemmVariant::paper}};
constexpr std::pair<std::string_view, GemmDataflow> k_dataflows[] = {
    {"automatic", GemmDataflow::automatic}, {"large_m", GemmDataflow::large_m}, {"small_m", GemmDataflow::small_m}};
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

class GemmCase final : public OperatorCase {
 public:
  explicit GemmCase(const kernels::GemmPlan& plan) : m_plan(plan) {}

  Json plan() const override {
    const auto& tiles = m_plan.tiles;
    Json json;
    json["dataflow"] = name_of(k_dataflows, m_plan.dataflow);
    json["tile"] = {{"mg", tiles.mg}, {"kg", tiles.kg}, {"k2", tiles.k2}, {"n2", tiles.n2}};
    json["weights"] = name_of(k_weights, m_plan.weights);
    if (m_plan.dtype == DType::f16) json["sums"] = name_of(k_sums, m_plan.sums);
    if (m_plan.promotes()) json["tile"]["k_promote"] = tiles.k_promote;
    json["memory"] = {{"m2", m_plan.m2},
                      {"sm_bytes", m_plan.sm_bytes},
                      {"am_bytes", m_plan.am_bytes},
                      {"gsm_bytes", m_plan.gsm_bytes}};
    return json;
  }
  std::string plan_text() const override {
    const auto& tiles = m_plan.tiles;
    return fmt::format("{}  tile mg={} kg={} k2={} n2={}{}{}", name_of(k_dataflows, m_plan.dataflow), tiles.mg,
                       tiles.kg, tiles.k2, tiles.n2,
                       m_plan.promotes() ? fmt::format(" k_promote={}", tiles.k_promote) : "",
                       m_plan.weights == GemmWeights::out_in ? "  W as [n, k]" : "");
  }
  double macs() const override { return m_plan.shape.macs(); }
  double ideal_bytes() const override {
    const auto [m, n, k] = m_plan.shape;
    return static_cast<double>(bytes_of(m_plan.dtype) * (m * k + k * n + m * n));
  }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    const auto [m, n, k] = m_plan.shape;
    const DType dtype = m_plan.dtype;
    const std::int64_t bytes = bytes_of(dtype);
    m_operands = {cluster.ddr_malloc(bytes * m * k), cluster.ddr_malloc(bytes * k * n),
                  cluster.ddr_malloc(bytes * m * n)};
    if (cluster.depth() == sim::Depth::functional) {
      m_x = rounded(random_values(m * k, seed), dtype);
      m_w = rounded(random_values(k * n, ~seed), dtype);
      write_values(cluster, m_operands.x, m_x, dtype);
      write_values(cluster, m_operands.w, m_plan.weights == GemmWeights::out_in ? transposed(m_w, n) : m_w, dtype);
    }
    return kernels::gemm_program(cluster, m_plan, m_operands);
  }
  Verification verify(const sim::Cluster& cluster) const override {
    const auto [m, n, k] = m_plan.shape;
    const kernels::GemmErrorBound bound = kernels::gemm_error_bound(m_plan);
    return verify_gemm(m_x, m_w, read_values(cluster, m_operands.y, m * n, m_plan.dtype), m, n, k, bound.relative,
                       bound.absolute);
  }

 private:
  kernels::GemmPlan m_plan;
  kernels::GemmOperands m_operands;
  std::vector<float> m_x, m_w;  // [m, k], [k, n]
};

kernels::GemmChoice choice_of(const std::vector<std::string>& words) {
  return {value_of(k_dataflows, words[1]), value_of(k_variants, words[0]), value_of(k_sums, words[2]),
          value_of(k_weights, words[3])};
}

class Gemm final : public Operator {
 public:
  Gemm()
      : Operator(
            {.name = "gemm",
             .summary = "Y[m,n] = X[m,k] * W[k,n], row-major",
             .dimensions = {{"m", "Rows of X and Y", {}},
                            {"n", "Columns of W and Y", {}},
                            {"k", "Columns of X, rows of W", {}}},
             .dtypes = {DType::f32, DType::f16},
             .variants = {{{"best", "paper"}},
                          {{"automatic", "large_m", "small_m"}},
                          {{"promoted", "f16_sums", "f32_sums"}},
                          {{"in_out", "out_in"}}},
             .tiles = "Block sizes, e.g. mg=720,kg=2048,k2=128,n2=256 and of FP16 k_promote=128 (FP32: the "
                      "paper's by default)",
             .examples = {"--m 720 --n 256 --k 2048 --dtype f32 --verify",
                          "--m 4096 --n 4096 --k 4096 --set ddr.bandwidth_gb_s=60 --json -",
                          "--m 8 --n 4096 --k 4096 --variant paper,small_m", "--m 4096 --n 4096 --k 4096 --dtype f16",
                          "--m 1 --n 4096 --k 4096 --dtype f16 --variant out_in"}}) {}

  double operand_bytes(const Shape& shape, DType dtype) const override {
    const auto m = static_cast<double>(shape[0]), n = static_cast<double>(shape[1]), k = static_cast<double>(shape[2]);
    return static_cast<double>(bytes_of(dtype)) * (m * k + k * n + m * n);
  }
  /// The operands here and in the simulated DDR, Y read back, and W twice in FP64 for the verification.
  double host_bytes(const Shape& shape, DType, bool verify) const override {
    const auto m = static_cast<double>(shape[0]), n = static_cast<double>(shape[1]), k = static_cast<double>(shape[2]);
    const double x = 4 * m * k, w = 4 * k * n, y = 4 * m * n;
    return 2 * (x + w) + y + (verify ? 4 * w + y : 0);
  }
  void check_tile(const std::string& tile, DType dtype) const override { kernels::parse_gemm_tiles(tile, dtype); }
  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override {
    const kernels::GemmChoice choice = choice_of(spec.variant);
    return std::make_unique<GemmCase>(kernels::plan_gemm({spec.shape[0], spec.shape[1], spec.shape[2]}, spec.dtype,
                                                         kernels::parse_gemm_tiles(spec.tile, spec.dtype, choice),
                                                         choice, machine));
  }
};

}  // namespace

const Operator& gemm_operator() {
  static const Gemm op;
  return op;
}

}  // namespace mtsim::scenarios
