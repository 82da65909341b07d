// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/library.h"
#include "kernels/round.h"
#include "scenarios/attention_reference.h"
#include "scenarios/operands.h"
#include "scenarios/operator_attention.h"
#include "scenarios/operators.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

using kernels::AttentionPlan;
using kernels::AttentionSequence;
using kernels::AttentionVariant;

enum Dimensions : std::size_t {
  k_batch,
  k_heads,
  k_kv_heads,
  k_seq,
  k_context,
  k_head_dim,
  k_kv_block,
  k_shortest_context
};

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
  /// `lengths`: of decode, the context of each sequence.
  AttentionCase(AttentionPlan plan, std::int64_t cores, std::vector<std::int64_t> lengths)
      : m_plan(std::move(plan)), m_cores(cores), m_lengths(std::move(lengths)), m_items(m_plan.items) {}

  Json plan() const override {
    Json json;
    json["variant"] = is_decode() ? "decode" : to_string(m_plan.choice.variant);
    json["sequence"] = m_plan.choice.sequence == AttentionSequence::paper ? "paper" : "best";
    json["causal"] = m_plan.shape.causal;
    json["scores"] = to_string(m_plan.choice.scores);
    json["tile"] = {{"mr", m_plan.tiles.mr}, {"mc", m_plan.tiles.mc}, {"pass", m_plan.tiles.pass}};
    json["heads_at_once"] = m_plan.share;
    if (is_decode())
      json["lengths"] = m_lengths;
    else
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
  double macs() const override {
    if (!is_decode()) return m_plan.shape.macs();
    return 2 * all_lengths() * static_cast<double>(m_plan.shape.heads * m_plan.shape.head_dim);
  }
  double ideal_bytes() const override {
    return 2 * (static_cast<double>(q_bytes()) + (is_decode() ? cached_bytes() : static_cast<double>(kv_bytes())));
  }

  sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) override {
    const kernels::AttentionShape& s = m_plan.shape;
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
      for (std::int64_t b = 0; b < s.batch; ++b) {
        write_values(cluster, m_operands.kt + cache_offset(b), cache(m_k, b, true), s.dtype);
        write_values(cluster, m_operands.v + cache_offset(b), cache(m_v, b, false), s.dtype);
      }
    }
    if (is_decode()) {
      std::vector<kernels::AttentionCache> caches;
      for (std::int64_t b = 0; b < s.batch; ++b)
        caches.push_back({length(b), m_operands.kt + cache_offset(b), m_operands.v + cache_offset(b)});
      m_programs = {kernels::attention_decode(cluster, m_plan, m_operands.q, m_operands.o, caches)};
    } else {
      m_programs = kernels::attention_programs(cluster, m_plan, m_operands, m_items);
    }
    m_traffic.watch(Traffic::scratch, m_operands.o + q_bytes(), cluster_rest(cluster));
    return m_programs.front();
  }
  std::int64_t launches() const override {
    return m_plan.choice.variant == AttentionVariant::unfused ? 3 * m_items : 1;
  }
  sim::DspProgram launch_program(std::int64_t index) const override {
    return m_programs[static_cast<std::size_t>(index)];
  }
  std::int64_t pieces() const override { return is_decode() ? 1 : m_plan.items; }
  void limit(std::int64_t pieces) override {
    if (!is_decode()) m_items = pieces;
  }

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
    const kernels::AttentionShape& s = m_plan.shape;
    const std::int64_t d = s.head_dim;
    const std::vector<float> o = read_values(cluster, m_operands.o, s.q_elements(), s.dtype);
    Comparison comparison(d);
    for (std::int64_t row = 0; row < s.batch * s.seq_q * s.heads; ++row) {
      const std::int64_t head = row % s.heads, token = row / s.heads % s.seq_q, batch = row / s.heads / s.seq_q;
      const std::int64_t kv = (batch * s.kv_heads + head / s.group()) * s.seq_k;
      const std::int64_t keys =
          s.causal ? std::clamp<std::int64_t>(s.seq_k - s.seq_q + token + 1, 0, s.seq_k) : length(batch);
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
  std::int64_t kv_bytes() const { return cache_offset(m_plan.shape.batch); }
  bool is_decode() const { return !m_lengths.empty(); }
  double all_lengths() const {
    return static_cast<double>(std::accumulate(m_lengths.begin(), m_lengths.end(), std::int64_t{0}));
  }
  /// Of decode: K or V of all positions there are, without what fills blocks.
  double cached_bytes() const {
    const kernels::AttentionShape& s = m_plan.shape;
    return all_lengths() * static_cast<double>(s.kv_heads * s.head_dim * bytes_of(s.dtype));
  }
  /// Keys of a sequence, and its blocks.
  std::int64_t length(std::int64_t batch) const {
    return is_decode() ? m_lengths[static_cast<std::size_t>(batch)] : m_plan.shape.seq_k;
  }
  std::int64_t blocks(std::int64_t batch) const { return kernels::ceil_div(length(batch), m_plan.shape.block()); }
  /// Bytes of the caches of the sequences before it, of K^T or of V.
  std::int64_t cache_offset(std::int64_t batch) const {
    const kernels::AttentionShape& s = m_plan.shape;
    std::int64_t before = 0;
    for (std::int64_t b = 0; b < batch; ++b) before += blocks(b);
    return before * s.kv_heads * s.block() * s.head_dim * bytes_of(s.dtype);
  }
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
    const auto q = static_cast<double>(q_bytes());
    const double kv = is_decode() ? cached_bytes() : static_cast<double>(kv_bytes());
    std::optional<kernels::AttentionTraffic> table;
    if (m_plan.choice.variant != AttentionVariant::unfused && !is_decode())
      table = kernels::attention_table_iii(m_plan, m_cores);
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
      const kernels::AttentionShape& s = m_plan.shape;
      const double scores = static_cast<double>(bytes_of(m_plan.choice.scores)) *
                            static_cast<double>(s.batch * s.heads * s.seq_q) * static_cast<double>(s.seq_k);
      all.push_back({"scores", times(Traffic::scratch, scores), std::nullopt});
    }
    return all;
  }

  /// Of one sequence, as the tests' contract has it: [heads, blocks, block, d] or, transposed, [heads, blocks, d,
  /// block]; 0 behind the keys.
  std::vector<float> cache(const std::vector<float>& values, std::int64_t batch, bool transpose) const {
    const kernels::AttentionShape& s = m_plan.shape;
    const std::int64_t d = s.head_dim, block = s.block();
    std::vector<float> out(static_cast<std::size_t>(s.kv_heads * blocks(batch) * block * d));
    for (std::int64_t head = 0; head < s.kv_heads; ++head) {
      for (std::int64_t key = 0; key < length(batch); ++key) {
        const std::int64_t from = ((batch * s.kv_heads + head) * s.seq_k + key) * d;
        const std::int64_t start = (head * blocks(batch) + key / block) * block * d, at = key % block;
        for (std::int64_t i = 0; i < d; ++i) {
          out[static_cast<std::size_t>(start + (transpose ? i * block + at : at * d + i))] =
              values[static_cast<std::size_t>(from + i)];
        }
      }
    }
    return out;
  }

  AttentionPlan m_plan;
  std::int64_t m_cores;
  std::vector<std::int64_t> m_lengths;
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
                            {"kv_block", "Positions of a block of K and V in DDR; 0: all in one", 0, 0},
                            {"shortest_context",
                             "Decode: contexts of the sequences spread evenly from here to --context; 0: all that long",
                             0, 0}},
             .dtypes = {DType::f32, DType::f16},
             .variants = {{{"automatic", "mt", "flash", "unfused", "decode"}},
                          {{"best", "paper"}},
                          {{"full", "causal"}},
                          {{"f32_scores", "f16_scores"}}},
             .tiles = "Rows of Q of a core, keys of a block in AM, blocks whose scores are kept: mr=64,mc=512,pass=1",
             .examples = {"--batch 4 --heads 32 --seq 2048", "--heads 32 --kv-heads 4 --seq 1 --context 4096",
                          "--batch 16 --heads 32 --kv-heads 8 --seq 1 --context 2048 --shortest-context 100 --kv-block "
                          "64 --verify",
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
    kernels::AttentionShape shape = attention_shape(spec.shape, spec.dtype, spec.variant[2] == "causal");
    const kernels::AttentionTiles tiles = kernels::parse_attention_tiles(spec.tile);
    const bool may_decode = shape.seq_q == 1 && spec.variant[1] == "best" && tiles.mr == 0 && tiles.pass == 0;
    if (spec.variant[0] == "decode" || (spec.variant[0] == "automatic" && may_decode)) {
      if (spec.variant[1] == "paper") throw kernels::KernelError("attention decode: the paper has no sequence for it");
      if (shape.seq_q == 1) shape.causal = false;  // the last token sees all keys
      return std::make_unique<AttentionCase>(kernels::plan_attention_decode(shape, tiles, machine),
                                             machine.cluster.cores, lengths_of(spec.shape, shape));
    }
    if (spec.shape[k_shortest_context] > 0)
      throw kernels::KernelError(
          "attention: contexts of different lengths are of decode (seq 1); leave "
          "shortest_context out");
    return std::make_unique<AttentionCase>(kernels::plan_attention(shape, tiles, choice_of(spec.variant), machine),
                                           machine.cluster.cores, std::vector<std::int64_t>{});
  }

 private:
  /// The first sequence has the longest context, the last one the shortest.
  static std::vector<std::int64_t> lengths_of(const Shape& dimensions, const kernels::AttentionShape& shape) {
    const std::int64_t shortest = dimensions[k_shortest_context] > 0 ? dimensions[k_shortest_context] : shape.seq_k;
    if (shortest > shape.seq_k)
      throw kernels::KernelError(
          fmt::format("attention decode: shortest_context {} is above context {}", shortest, shape.seq_k));
    std::vector<std::int64_t> lengths;
    for (std::int64_t b = 0; b < shape.batch; ++b)
      lengths.push_back(shape.seq_k - (shape.seq_k - shortest) * b / std::max<std::int64_t>(shape.batch - 1, 1));
    return lengths;
  }
};

}  // namespace

kernels::AttentionShape attention_shape(const Shape& shape, DType dtype, bool causal) {
  kernels::AttentionShape s;
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

const Operator& attention_operator() {
  static const Attention op;
  return op;
}

}  // namespace mtsim::scenarios
