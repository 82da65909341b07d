// SPDX-License-Identifier: Apache-2.0
#include "runtime/planner/planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "runtime/error.h"
#include "runtime/planner/interpolated_cost.h"
#include "runtime/planner/known_cost.h"

namespace mtsim::runtime {
namespace {

constexpr std::array<std::int64_t, 3> k_prefill_micro_batches = {1, 2, 4};

std::string gb(double bytes) { return fmt::format("{:.2f} GB", bytes * 1e-9); }

std::string memory_text(const Footprint& memory) {
  return fmt::format("{} of weights, {} of KV and {} of overhead in each cluster; it has {} (eq. 16)",
                     gb(static_cast<double>(memory.params)), gb(static_cast<double>(memory.kv)),
                     gb(static_cast<double>(memory.overhead)), gb(static_cast<double>(memory.there)));
}

/// Stages of which one more would leave the longest as long as it is.
std::vector<std::int64_t> pipeline_depths(std::int64_t layers) {
  std::vector<std::int64_t> depths;
  for (std::int64_t pp = 1; pp <= layers; ++pp) {
    if (pp == 1 || (layers + pp - 1) / pp != (layers + pp - 2) / (pp - 1)) depths.push_back(pp);
  }
  return depths;
}

/// The rows of one search.
class Search {
 public:
  Search(const models::LlamaConfig& config, IterationCost& cost, const PlannerOptions& options)
      : m_config(config), m_cost(cost), m_options(options), m_times(m_cost, options.prompt_tokens, decode_context()) {}

  std::vector<PlanRow> run() {
    for (const std::int64_t tp : tensor_degrees(m_config, m_options.most_tp)) {
      for (const std::int64_t pp : pipeline_depths(m_config.layers)) {
        if (!decode_pool({tp, pp, 1, 1})) break;  // deeper ones are larger still
      }
    }
    return std::move(m_rows);
  }

 private:
  std::int64_t context() const { return m_options.prompt_tokens + m_options.output_tokens; }
  std::int64_t decode_context() const { return m_options.prompt_tokens + m_options.output_tokens / 2; }
  double tokens(const Pool& decode) const { return static_cast<double>(decode.batch() * m_options.output_tokens); }

  PlanRow& die(PlanRow row, Death death, double needed, double there, std::string why) {
    row.death = death;
    row.needed = needed;
    row.there = there;
    row.why = std::move(why);
    return m_rows.emplace_back(std::move(row));
  }
  void die_of_memory(PlanRow row, Death death, const Footprint& memory) {
    die(std::move(row), death, static_cast<double>(memory.needed()), static_cast<double>(memory.there),
        memory_text(memory));
  }
  void die_of_clusters(PlanRow row, Death death, std::int64_t needed) {
    die(std::move(row), death, static_cast<double>(needed), static_cast<double>(m_options.clusters),
        fmt::format("{} clusters needed, {} there (eq. 20)", needed, m_options.clusters));
  }

  PlanRow row_of(PipelineMode mode, const Pool& decode) const {
    PlanRow row;
    row.plan.mode = mode;
    row.plan.execution = ExecutionPlan::named(m_options.execution);
    row.plan.coupled_batch = CoupledBatch::continuous;
    row.plan.decode = decode;
    row.clusters = decode.clusters();
    row.decode_memory = decode_memory(m_cost, decode, context());
    return row;
  }

  /// Every plan with decode replicas of this shape; false when the clusters do not even hold one.
  bool decode_pool(Pool decode) {
    PlanRow row = row_of(PipelineMode::coupled, decode);
    if (decode.clusters() > m_options.clusters) {
      die_of_clusters(std::move(row), Death::clusters, decode.clusters());
      return false;
    }
    if (!row.decode_memory.fits()) {
      const Footprint memory = row.decode_memory;
      die_of_memory(std::move(row), Death::decode_memory, memory);
      return true;
    }
    coupled(decode);
    std::vector<Pool> prefills;
    for (const std::int64_t micro_batch : k_prefill_micro_batches) {
      if (const auto pool = prefill_pool(decode, micro_batch)) prefills.push_back(*pool);
    }
    for (decode.dp = 1; decode.dp <= m_options.most_decode_replicas && decode.clusters() <= m_options.clusters;
         ++decode.dp) {
      for (const Pool& prefill : prefills) bounded(decode, prefill);
    }
    return true;
  }

  /// With the fewest stages that memory allows.
  std::optional<Pool> prefill_pool(const Pool& decode, std::int64_t micro_batch) {
    Pool prefill{1, 1, 1, micro_batch};
    for (const std::int64_t pp : pipeline_depths(m_config.layers)) {
      prefill.pp = pp;
      if (prefill_memory(m_cost, prefill, m_options.prompt_tokens).fits()) return prefill;
    }
    PlanRow row = row_of(PipelineMode::bounded, decode);
    row.plan.prefill = prefill;
    row.prefill_memory = prefill_memory(m_cost, prefill, m_options.prompt_tokens);
    const Footprint memory = row.prefill_memory;
    die_of_memory(std::move(row), Death::prefill_memory, memory);
    return std::nullopt;
  }

  /// Seconds from one micro-batch of a full pipeline to the next of the same requests: all stages one behind the other
  /// with messages and host, or as many times the slowest.
  double cycle_s(const Pool& pool, const LayerTime& time, std::int64_t tokens) const {
    const double message_s = m_cost.message_s(tokens * m_cost.activation_bytes_per_token(),
                                              pool.tp * pool.pp <= m_options.clusters_per_device);
    const double way = time.all(m_config.layers, pool.pp).busy_s() + static_cast<double>(pool.pp - 1) * message_s;
    return std::max(static_cast<double>(pool.pp) * time.slowest(m_config.layers, pool.pp).busy_s(),
                    way + m_cost.host_s(pool.micro_batch));
  }

  /// (18), (19): of the decode stages of a row, at its micro-batch.
  void time_decode(PlanRow& row) {
    const Pool& decode = row.plan.decode;
    const LayerTime time = m_times.decode(decode.tp, decode.micro_batch);
    const StageTime slowest = time.slowest(m_config.layers, decode.pp);
    row.decode_stage_s = slowest.busy_s();
    row.all_reduce_share = slowest.all_reduce_s / slowest.busy_s();
    row.tpot_s = cycle_s(decode, time, decode.micro_batch);
    row.decode_s = static_cast<double>(m_options.output_tokens - 1) * row.tpot_s;  // the first one is prefill's
    row.decode_memory = decode_memory(m_cost, decode, context());
  }
  void time_prefill(PlanRow& row, const Pool& prefill) {
    const LayerTime time = m_times.prefill(prefill.tp, prefill.micro_batch);
    row.prefill_stage_s = time.slowest(m_config.layers, prefill.pp).busy_s();
    row.ttft_s = cycle_s({prefill.tp, 1, 1, prefill.micro_batch}, time, 0);
    const double cycle = cycle_s(prefill, time, prefill.micro_batch * m_options.prompt_tokens);
    row.prefill_s = static_cast<double>(row.plan.decode.batch()) / static_cast<double>(prefill.micro_batch) * cycle /
                    static_cast<double>(prefill.pp);
  }
  /// (21) over whole pools.
  void rate(PlanRow& row, double period) const {
    row.groups = m_options.clusters / row.clusters;
    row.tokens_s = static_cast<double>(row.groups) * tokens(row.plan.decode) / period;
  }

  /// What a larger TP must bring: a layer in less time than with half of it, (17) and (19).
  bool pays(const Pool& decode, PlanRow& row) {
    if (decode.tp == 1) return true;
    const double its = m_times.decode(decode.tp, decode.micro_batch).layer.busy_s();
    const double half = m_times.decode(decode.tp / 2, decode.micro_batch).layer.busy_s();
    if (its < half) return true;
    row.death = Death::all_reduce;
    row.needed = its;
    row.there = half;
    row.why = fmt::format("a layer takes {:.3f} ms with TP {}, {:.3f} ms with TP {} (eqs. 17, 19)", its * 1e3,
                          decode.tp, half * 1e3, decode.tp / 2);
    return false;
  }
  bool keeps_slo(PlanRow& row) const {
    const bool first = row.ttft_s > m_options.slo.ttft_s;
    if (!first && row.tpot_s <= m_options.slo.tpot_s) return true;
    row.death = Death::slo;
    row.needed = first ? row.ttft_s : row.tpot_s;
    row.there = first ? m_options.slo.ttft_s : m_options.slo.tpot_s;
    row.why = fmt::format("{:.3f} s {}, the SLO is {:g} s", row.needed,
                          first ? "to the first token" : "a token behind it", row.there);
    return false;
  }

  /// What B = PP * micro-batch of all replicas leaves to choose: from, to.
  std::pair<std::int64_t, std::int64_t> micro_batches(const Pool& decode) const {
    if (m_options.requests == 0) return {1, m_options.most_micro_batch};
    const auto pipelines = static_cast<double>(decode.pp * decode.dp);
    const std::int64_t only =
        std::max<std::int64_t>(1, std::lround(static_cast<double>(m_options.requests) / pipelines));
    return {only, only};
  }

  /// The best micro-batch of `row`: `evaluate` fills it in for one and says whether it lives. Larger ones are tried
  /// until memory ends, or the rate has stopped growing for an octave.
  template <class Evaluate>
  PlanRow best_micro_batch(PlanRow row, const Evaluate& evaluate) {
    std::optional<PlanRow> best, dead;
    const auto [first, last] = micro_batches(row.plan.decode);
    std::int64_t last_gain = first;
    for (std::int64_t b = first; b <= last && b <= 2 * last_gain; ++b) {
      PlanRow tried = row;
      tried.plan.decode.micro_batch = b;
      tried.decode_memory = decode_memory(m_cost, tried.plan.decode, context());
      if (!tried.decode_memory.fits()) {
        if (best || dead) break;
        tried.death = Death::decode_memory;
        tried.needed = static_cast<double>(tried.decode_memory.needed());
        tried.there = static_cast<double>(tried.decode_memory.there);
        tried.why = memory_text(tried.decode_memory);
        return tried;
      }
      if (evaluate(tried)) {
        if (best && tried.tokens_s <= best->tokens_s) continue;
        best = tried;
        last_gain = b;
      } else if (!dead) {
        dead = tried;
      }
    }
    return best ? *best : *dead;
  }

  void coupled(const Pool& decode) {
    m_rows.push_back(best_micro_batch(row_of(PipelineMode::coupled, decode), [&](PlanRow& row) {
      if (!pays(row.plan.decode, row)) return false;
      time_decode(row);
      row.plan.prefill = {decode.tp, decode.pp, 1, 1};
      time_prefill(row, row.plan.prefill);
      row.tpot_s += row.prefill_s / static_cast<double>(m_options.output_tokens);  // others' prefills come between
      rate(row, row.prefill_s + row.decode_s);
      return keeps_slo(row);
    }));
  }

  /// More and more prefill replicas, until they no longer limit.
  void bounded(const Pool& decode, Pool prefill) {
    for (prefill.dp = 1;; ++prefill.dp) {
      PlanRow row = row_of(PipelineMode::bounded, decode);
      row.plan.prefill = prefill;
      row.prefill_memory = prefill_memory(m_cost, prefill, m_options.prompt_tokens);
      row.clusters = pool_clusters(prefill, decode, 0);
      if (row.clusters > m_options.clusters) {
        if (prefill.dp == 1) die_of_clusters(std::move(row), Death::clusters, pool_clusters(prefill, decode, 0));
        return;
      }
      const PlanRow& done = m_rows.emplace_back(best_micro_batch(row, [&](PlanRow& tried) { return balance(tried); }));
      if (done.prefill_s / static_cast<double>(prefill.dp) <= done.decode_s) return;
    }
  }

  /// (20), (21): one micro-batch of a P-B-D plan. False, with the reason, where it cannot be.
  bool balance(PlanRow& row) {
    const Pool &prefill = row.plan.prefill, &decode = row.plan.decode;
    if (!pays(decode, row)) return false;
    time_decode(row);
    time_prefill(row, prefill);
    row.buffer_bytes = decode.batch() * m_options.prompt_tokens * m_cost.kv_bytes_per_token(1, 1);
    const std::int64_t slack =
        prefill.clusters() * row.prefill_memory.slack() + decode.clusters() * row.decode_memory.slack();
    row.plan.buffer = {buffer_clusters(m_cost, row.buffer_bytes - slack), true};
    row.clusters = pool_clusters(prefill, decode, row.plan.buffer.clusters);
    if (row.clusters > m_options.clusters) {
      row.death = Death::buffer;
      row.needed = static_cast<double>(row.clusters);
      row.there = static_cast<double>(m_options.clusters);
      row.why = fmt::format("{} of KV of a batch beside {} of slack: {} clusters needed, {} there (eq. 20)",
                            gb(static_cast<double>(row.buffer_bytes)), gb(static_cast<double>(slack)), row.clusters,
                            m_options.clusters);
      return false;
    }
    const double period = period_s(row.prefill_s, prefill.dp, row.decode_s);
    const std::int64_t cache = m_options.prompt_tokens * m_cost.kv_bytes_per_token(prefill.tp, prefill.pp);
    const double migration = static_cast<double>(decode.batch()) / static_cast<double>(prefill.dp) *
                             m_cost.message_s(cache, row.clusters <= m_options.clusters_per_device);
    if (migration > period) {
      row.death = Death::migration;
      row.needed = migration;
      row.there = period;
      row.why = fmt::format("the caches of a batch leave a prefill cluster in {:.3f} s, the pools take {:.3f} s",
                            migration, period);
      return false;
    }
    rate(row, period);
    return keeps_slo(row);
  }

  const models::LlamaConfig& m_config;
  KnownCost m_cost;
  const PlannerOptions& m_options;
  InterpolatedCost m_times;
  std::vector<PlanRow> m_rows;
};

void check(const models::LlamaConfig& config, const PlannerOptions& options) {
  if (options.clusters < 1) throw RuntimeError(fmt::format("{} clusters: there is nothing to plan", options.clusters));
  if (options.prompt_tokens < 1 || options.output_tokens < 1) {
    throw RuntimeError(fmt::format("a plan for {} prompt tokens and {} generated: at least 1 of each",
                                   options.prompt_tokens, options.output_tokens));
  }
  if (options.prompt_tokens + options.output_tokens > config.max_positions) {
    throw RuntimeError(fmt::format("{} prompt tokens and {} generated: the context of {} holds {}",
                                   options.prompt_tokens, options.output_tokens, config.name, config.max_positions));
  }
}

}  // namespace

std::string_view to_string(Death death) {
  switch (death) {
    case Death::none: return "none";
    case Death::prefill_memory: return "prefill memory";
    case Death::decode_memory: return "decode memory";
    case Death::clusters: return "clusters";
    case Death::buffer: return "buffer";
    case Death::all_reduce: return "all-reduce";
    case Death::migration: return "migration";
    case Death::slo: return "slo";
  }
  return "";
}

std::string_view to_string(Objective objective) {
  return objective == Objective::throughput ? "throughput" : "goodput";
}

Objective parse_objective(const std::string& word) {
  if (word == "throughput") return Objective::throughput;
  if (word == "goodput") return Objective::goodput;
  throw RuntimeError(fmt::format("there is no objective '{}'; there are throughput and goodput", word));
}

std::int64_t PlanSearch::alive() const {
  return std::count_if(rows.begin(), rows.end(), [](const PlanRow& row) { return row.alive(); });
}

std::vector<std::pair<Death, std::int64_t>> PlanSearch::deaths() const {
  std::map<Death, std::int64_t> counts;
  for (const PlanRow& row : rows) {
    if (!row.alive()) ++counts[row.death];
  }
  return {counts.begin(), counts.end()};
}

std::vector<std::int64_t> tensor_degrees(const models::LlamaConfig& config, std::int64_t most) {
  const std::int64_t common =
      std::gcd(std::gcd(config.heads, config.kv_heads), std::gcd(config.intermediate_size, config.vocab_size));
  std::vector<std::int64_t> degrees;
  for (std::int64_t tp = 1; tp <= most; tp *= 2) {
    if (common % tp == 0) degrees.push_back(tp);
  }
  return degrees;
}

PlanSearch search_plans(const models::LlamaConfig& config, IterationCost& cost, const PlannerOptions& options) {
  check(config, options);
  PlanSearch search{Search(config, cost, options).run()};
  std::stable_sort(search.rows.begin(), search.rows.end(), [](const PlanRow& a, const PlanRow& b) {
    const auto key = [](const PlanRow& row) {
      return std::tuple(row.death, -row.tokens_s, row.clusters, row.plan.decode.micro_batch);
    };
    return key(a) < key(b);
  });
  return search;
}

}  // namespace mtsim::runtime
