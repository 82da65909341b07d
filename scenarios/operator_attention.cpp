// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/attention/attention.h"
#include "scenarios/attention_reference.h"
#include "scenarios/operands.h"
#include "scenarios/operators.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

using kernels::AttentionPlan;
using kernels::AttentionSequence;
using kernels::AttentionShape;
using kernels::AttentionVariant;

enum Dimensions : std::size_t { k_batch, k_heads, k_kv_heads, k_seq, k_context, k_head_dim, k_kv_block };

AttentionShape shape_of(const Shape& shape, DType dtype, bool causal) {
  AttentionShape s;
  s.batch = shape[k_batch];
  s.heads = shape[k_heads];
  s.kv_heads = shape[k_kv_heads] == 0 ? s.heads : shape[k_kv_heads];
  s.seq_q = shape[k_seq];
  s.seq_k = shape[k_context] == 0 ? s.seq_q : shape[k_context];
  s.head_dim = shape[k_head_dim];
  s.causal = causal;
  s.dtype = dtype;
  s.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)));
  s.kv_block = shape[k_kv_block];
  return s;
}

kernels::AttentionChoice choice_of(const std::vector<std::string>& variant) {
  kernels::AttentionChoice choice;
  for (const AttentionVariant v : {AttentionVariant::mt, AttentionVariant::flash, AttentionVariant::unfused}) {
    if (variant[0] == to_string(v)) choice.variant = v;
  }
  if (variant[1] == "paper") choice.sequence = AttentionSequence::paper;
  if (variant[3] == "f16_scores" && choice.variant == AttentionVariant::unfused) choice.scores = DType::f16;
  return choice;
}

/// Bytes between the DDR and the cores by what they belong to.
class Traffic : public sim::Observer {
 public:
  enum Part : std::size_t { q, kt, v, o, scratch, k_parts };

  void watch(Part part, sim::Pointer begin, std::int64_t bytes) {
    m_ranges[part] = {begin.offset, begin.offset + static_cast<std::uint64_t>(bytes)};
    m_bytes[part] = 0;
  }
  std::int64_t bytes(Part part) const { return m_bytes[part]; }

  void dram_request(std::int64_t, int, int, const sim::MemoryModel::Request& request) override {
    for (std::size_t part = 0; part < k_parts; ++part) {
      const auto [begin, end] = m_ranges[part];
      if (request.start >= begin && request.start < end) m_bytes[part] += request.rows * request.row_bytes;
    }
  }

 private:
  std::array<std::pair<std::uint64_t, std::uint64_t>, k_parts> m_ranges{};
  std::array<std::int64_t, k_parts> m_bytes{};
};

class AttentionCase final : public OperatorCase {
 public:
  AttentionCase(AttentionPlan plan, std::int64_t cores)
      : m_plan(std::move(plan)), m_cores(cores), m_items(m_plan.items) {}

  Json plan() const override {
    Json json;
    json["sequence"] = m_plan.choice.sequence == AttentionSequence::paper ? "paper" : "best";
    json["causal"] = m_plan.shape.causal;
    json["scores"] = to_string(m_plan.choice.scores);
    json["tile"] = {{"mr", m_plan.tiles.mr}, {"mc", m_plan.tiles.mc}, {"pass", m_plan.tiles.pass}};
    json["heads_at_once"] = m_plan.share;
    json["rounds"] = m_plan.rounds(m_cores);
    json["memory"] = {{"sm_bytes", m_plan.sm_bytes},
                      {"am_bytes", m_plan.am_bytes},
                      {"gsm_bytes", m_plan.gsm_bytes},
                      {"scratch_bytes", m_plan.scratch_bytes}};
    return json;
  }
  std::string plan_text() const override {
    return fmt::format("{} {} tile mr={} mc={} pass={}",
                       m_plan.choice.sequence == AttentionSequence::paper ? "paper" : "best",
                       m_plan.shape.causal ? "causal" : "full", m_plan.tiles.mr, m_plan.tiles.mc, m_plan.tiles.pass);
  }
  double macs() const override { return m_plan.shape.macs(); }
  double ideal_bytes() const override { return static_cast<double>(2 * (q_bytes() + kv_bytes())); }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    const AttentionShape& s = m_plan.shape;
    m_operands = {cluster.ddr_malloc(q_bytes()), cluster.ddr_malloc(kv_bytes()), cluster.ddr_malloc(kv_bytes()),
                  cluster.ddr_malloc(q_bytes())};
    m_traffic.watch(Traffic::q, m_operands.q, q_bytes());
    m_traffic.watch(Traffic::kt, m_operands.kt, kv_bytes());
    m_traffic.watch(Traffic::v, m_operands.v, kv_bytes());
    m_traffic.watch(Traffic::o, m_operands.o, q_bytes());
    if (cluster.depth() == sim::Depth::functional) {
      m_q = random_values(s.q_elements(), seed);
      for (float& value : m_q) value *= k_q_scale;
      m_q = rounded(std::move(m_q), s.dtype);
      const std::int64_t keys = s.batch * s.kv_heads * s.seq_k * s.head_dim;
      m_k = rounded(random_values(keys, seed, static_cast<std::uint64_t>(s.q_elements())), s.dtype);
      m_v = rounded(random_values(keys, seed, static_cast<std::uint64_t>(s.q_elements() + keys)), s.dtype);
      write_values(cluster, m_operands.q, m_q, s.dtype);
      write_values(cluster, m_operands.kt, cache(m_k, true), s.dtype);
      write_values(cluster, m_operands.v, cache(m_v, false), s.dtype);
    }
    m_programs = kernels::attention_programs(cluster, m_plan, m_operands, m_items);
    m_traffic.watch(Traffic::scratch, m_operands.o + q_bytes(), cluster_rest(cluster));
    return m_programs.front();
  }
  std::int64_t launches() const override {
    return m_plan.choice.variant == AttentionVariant::unfused ? 3 * m_items : 1;
  }
  sim::DspProgram launch_program(std::int64_t index) const override {
    return m_programs[static_cast<std::size_t>(index)];
  }
  std::int64_t pieces() const override { return m_plan.items; }
  void limit(std::int64_t pieces) override { m_items = pieces; }

  sim::Observer* observer() override { return &m_traffic; }
  Json results() const override {
    Json json = Json::object();
    for (const auto& [name, moved, expected] : counters()) {
      json["traffic"][name] = {{"times", moved}};
      if (expected) json["traffic"][name]["table_iii"] = *expected;
    }
    return json;
  }
  std::string results_text() const override {
    Table table({Align::left, Align::right, Align::right}, {"bytes / of the matrix", "moved", "Table III"});
    for (const auto& [name, moved, expected] : counters())
      table.add({name, fmt::format("{:.3f}", moved), expected ? fmt::format("{:g}", *expected) : "-"});
    return table.text(2);
  }

  Verification verify(const sim::Cluster& cluster) const override {
    const AttentionShape& s = m_plan.shape;
    const std::int64_t d = s.head_dim;
    const std::vector<float> o = read_values(cluster, m_operands.o, s.q_elements(), s.dtype);
    Comparison comparison(d);
    for (std::int64_t row = 0; row < s.batch * s.seq_q * s.heads; ++row) {
      const std::int64_t head = row % s.heads, token = row / s.heads % s.seq_q, batch = row / s.heads / s.seq_q;
      const std::int64_t kv = (batch * s.kv_heads + head / s.group()) * s.seq_k;
      const std::int64_t keys =
          s.causal ? std::clamp<std::int64_t>(s.seq_k - s.seq_q + token + 1, 0, s.seq_k) : s.seq_k;
      const auto part = [d](const std::vector<float>& all, std::int64_t first, std::int64_t count) {
        return std::span(all).subspan(static_cast<std::size_t>(first * d), static_cast<std::size_t>(count * d));
      };
      const AttentionRow expected =
          attention_row(part(m_q, row, 1), part(m_k, kv, keys), part(m_v, kv, keys), static_cast<double>(s.scale),
                        {(s.seq_k + 127) / 128, m_plan.choice.sequence == AttentionSequence::paper,
                         m_plan.choice.scores == DType::f16});
      for (std::int64_t c = 0; c < d; ++c) {
        const auto i = static_cast<std::size_t>(c);
        double bound = expected.bounds[i];
        if (s.dtype == DType::f16) bound += std::max(0x1p-11 * (std::abs(expected.values[i]) + bound), 0x1p-25);
        comparison.add(static_cast<double>(o[static_cast<std::size_t>(row * d + c)]), expected.values[i], bound);
      }
    }
    return comparison.result();
  }

 private:
  static constexpr float k_q_scale = 8;  // so that weights differ

  std::int64_t q_bytes() const { return m_plan.shape.q_elements() * bytes_of(m_plan.shape.dtype); }
  std::int64_t kv_bytes() const { return m_plan.shape.kv_elements() * bytes_of(m_plan.shape.dtype); }
  /// What was allocated behind O: scratch.
  std::int64_t cluster_rest(const sim::Cluster& cluster) const {
    return cluster.machine().ddr.bytes - static_cast<std::int64_t>(m_operands.o.offset) - q_bytes();
  }

  struct Counter {
    const char* name;
    double moved;
    std::optional<double> expected;
  };
  /// Of the heads that were simulated. What flash keeps of O in scratch is FP32 and has the rows' maxima and sums with
  /// it.
  std::vector<Counter> counters() const {
    const double part = static_cast<double>(m_items) / static_cast<double>(m_plan.items);
    const auto times = [&](Traffic::Part p, double matrix) {
      return static_cast<double>(m_traffic.bytes(p)) / (part * matrix);
    };
    const auto q = static_cast<double>(q_bytes()), kv = static_cast<double>(kv_bytes());
    std::optional<kernels::AttentionTraffic> table;
    if (m_plan.choice.variant != AttentionVariant::unfused) table = kernels::attention_table_iii(m_plan, m_cores);
    const auto expected = [&](double kernels::AttentionTraffic::*member) {
      return table ? std::optional(*table.*member) : std::nullopt;
    };
    using kernels::AttentionTraffic;
    const double scratch = times(Traffic::scratch, 4.0 * static_cast<double>(m_plan.shape.q_elements()));
    const bool flash = m_plan.choice.variant == AttentionVariant::flash;
    std::vector<Counter> all = {{"q", times(Traffic::q, q), expected(&AttentionTraffic::q)},
                                {"o", times(Traffic::o, q) + (flash ? scratch : 0), expected(&AttentionTraffic::o)},
                                {"k", times(Traffic::kt, kv), expected(&AttentionTraffic::k)},
                                {"v", times(Traffic::v, kv), expected(&AttentionTraffic::v)}};
    if (m_plan.choice.variant == AttentionVariant::unfused) {
      const AttentionShape& s = m_plan.shape;
      const double scores = static_cast<double>(bytes_of(m_plan.choice.scores)) *
                            static_cast<double>(s.batch * s.heads * s.seq_q) * static_cast<double>(s.seq_k);
      all.push_back({"scores", times(Traffic::scratch, scores), std::nullopt});
    }
    return all;
  }

  /// As the tests' contract has it: [heads, blocks, block, d] or, transposed, [heads, blocks, d, block]; 0 behind the
  /// keys.
  std::vector<float> cache(const std::vector<float>& values, bool transpose) const {
    const AttentionShape& s = m_plan.shape;
    const std::int64_t d = s.head_dim, block = s.block();
    std::vector<float> out(static_cast<std::size_t>(s.kv_elements()));
    for (std::int64_t row = 0; row < s.batch * s.kv_heads * s.seq_k; ++row) {
      const std::int64_t key = row % s.seq_k, start = (row / s.seq_k * s.blocks() + key / block) * block * d;
      for (std::int64_t i = 0; i < d; ++i) {
        out[static_cast<std::size_t>(start + (transpose ? i * block + key % block : key % block * d + i))] =
            values[static_cast<std::size_t>(row * d + i)];
      }
    }
    return out;
  }

  AttentionPlan m_plan;
  std::int64_t m_cores;
  std::int64_t m_items;
  kernels::AttentionOperands m_operands;
  std::vector<sim::DspProgram> m_programs;
  Traffic m_traffic;
  std::vector<float> m_q, m_k, m_v;
};

class Attention final : public Operator {
 public:
  Attention()
      : Operator(
            {.name = "attention",
             .summary = "O = softmax(Q K^T / sqrt(head_dim)) V of every head, FP32 inside",
             .dimensions = {{"batch", "Sequences", 1},
                            {"heads", "Of Q, in each sequence", {}},
                            {"kv_heads", "Of K and V; 0: as many as heads", 0, 0},
                            {"seq", "Tokens of Q", {}},
                            {"context", "Tokens of K and V; 0: as many as of Q", 0, 0},
                            {"head_dim", "A multiple of 16, at most 256", 128},
                            {"kv_block", "Positions of a block of K and V in DDR; 0: all in one", 0, 0}},
             .dtypes = {DType::f32, DType::f16},
             .variants = {{{"mt", "flash", "unfused"}},
                          {{"best", "paper"}},
                          {{"full", "causal"}},
                          {{"f32_scores", "f16_scores"}}},
             .tiles = "Rows of Q of a core, keys of a block in AM, blocks whose scores are kept: mr=64,mc=512,pass=1",
             .examples = {"--batch 4 --heads 32 --seq 2048", "--heads 32 --kv-heads 4 --seq 1 --context 4096",
                          "--heads 2 --seq 100 --causal --variant flash --verify"},
             .flags = {"causal"}}) {}

  double operand_bytes(const Shape& shape, DType dtype) const override {
    const auto of = [&](std::size_t i, std::size_t usual) {
      return static_cast<double>(shape[shape[i] == 0 ? usual : i]);
    };
    const auto d = static_cast<double>(shape[k_head_dim] * shape[k_batch]);
    const double q = d * static_cast<double>(shape[k_heads]) * static_cast<double>(shape[k_seq]);
    const double kv = d * of(k_kv_heads, k_heads) * of(k_context, k_seq);
    return static_cast<double>(bytes_of(dtype)) * 2 * (q + kv);
  }
  void check_tile(const std::string& tile, DType) const override { kernels::parse_attention_tiles(tile); }
  std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const override {
    return std::make_unique<AttentionCase>(
        kernels::plan_attention(shape_of(spec.shape, spec.dtype, spec.variant[2] == "causal"),
                                kernels::parse_attention_tiles(spec.tile), choice_of(spec.variant), machine),
        machine.cluster.cores);
  }
};

}  // namespace

const Operator& attention_operator() {
  static const Attention op;
  return op;
}

}  // namespace mtsim::scenarios
