// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/simulated_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "models/model_part.h"
#include "runtime/error.h"
#include "runtime/serving/layer_simulation.h"
#include "runtime/serving/step_curve.h"
#include "runtime/weights/device_model.h"

namespace mtsim::runtime {
namespace {

using Batch = std::vector<models::SequenceStep>;

constexpr std::int64_t k_keys = 128;         // of a step of attention
constexpr double k_most_rise = 0.012;        // of linear layers, within a step
constexpr double k_tolerance = 0.008;        // of a curve, of the whole layer
constexpr std::size_t k_exact_prefills = 3;  // different micro-batches simulated as they are
constexpr std::int64_t k_exact_steps = 2;    // blocks of keys that contexts may lie in, for both ends to be simulated

/// Of interpolated batches, the first one, the fourth, the sixteenth and so on.
bool is_sampled(std::int64_t count) {
  const auto bits = static_cast<std::uint64_t>(count);
  return std::has_single_bit(bits) && std::countr_zero(bits) % 2 == 0;
}

/// Sorted: a batch takes what it takes in any order.
Batch sorted(std::span<const models::SequenceStep> batch) {
  Batch result(batch.begin(), batch.end());
  std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return std::pair(a.tokens, a.context) < std::pair(b.tokens, b.context);
  });
  return result;
}

struct BatchLess {
  bool operator()(const Batch& a, const Batch& b) const {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return std::pair(x.tokens, x.context) < std::pair(y.tokens, y.context);
    });
  }
};

std::int64_t tokens_of(const Batch& batch) {
  return std::accumulate(batch.begin(), batch.end(), std::int64_t{0},
                         [](std::int64_t sum, const auto& step) { return sum + step.tokens; });
}

std::string text_of(std::int64_t tp, const Batch& batch) {
  const auto positions = [](const models::SequenceStep& step) { return step.context + step.tokens; };
  return fmt::format("TP {}, {} {} of {} to {} positions", tp, batch.size(),
                     batch.front().context > 0 ? "requests" : "prompts", positions(batch.front()),
                     positions(batch.back()));
}

}  // namespace

class SimulatedCost::Layers {
 public:
  /// `block_rows`: of X that stay in GSM while weights pass; more rows take their weights once more.
  Layers(LayerSimulation simulation, std::int64_t cores, std::int64_t block_rows, std::int64_t context)
      : m_simulation(std::move(simulation)), m_cores(cores), m_block_rows(block_rows), m_context(context) {}

  LayerCycles cycles(std::int64_t tp, std::span<const models::SequenceStep> given);
  InterpolationError error() const;
  std::int64_t simulations() const { return m_simulation.runs(); }

 private:
  struct Decode {       // of one number of requests
    LayerCycles layer;  // its attention is that of one point
    StepCurve attention;
    std::int64_t queries = 0;
    bool is_exact = false;  // interpolation was off too far
  };
  struct Share {  // of one TP
    Share(std::int64_t cores, std::int64_t rows)
        : linear({cores, rows, k_tolerance, k_most_rise}), second_linear({cores, rows, k_tolerance, k_most_rise}) {}
    std::map<Batch, LayerCycles, BatchLess> known;     // simulated as they are
    std::map<Batch, LayerCycles, BatchLess> prefills;  // interpolated
    std::size_t exact_prefills = 0;
    std::map<std::int64_t, LayerCycles> launches;  // of prefill, by prompts: what is launched depends on nothing else
    StepCurve linear, second_linear;               // of prefill, a step is a row of each core
    std::map<std::int64_t, double> attention;      // of prefill, by tokens
    std::map<std::int64_t, Decode> decodes;
  };

  LayerCycles simulate(Share& share, std::int64_t tp, const Batch& batch);
  LayerCycles prefill(Share& share, std::int64_t tp, const Batch& batch);
  LayerCycles interpolated_prefill(Share& share, std::int64_t tp, const Batch& batch);
  StepCurve::Value linear_layers(Share& share, std::int64_t tokens, const StepCurve::Function& layer);
  double prefill_attention(Share& share, std::int64_t tp, std::int64_t tokens);
  LayerCycles decode(Share& share, std::int64_t tp, const Batch& batch);
  Decode& decode_of(Share& share, std::int64_t tp, std::int64_t requests, std::int64_t context);
  double sample(std::int64_t tp, const Batch& batch, const LayerCycles& guess, const LayerCycles& truth);

  LayerSimulation m_simulation;
  std::int64_t m_cores, m_block_rows, m_context;
  std::map<std::int64_t, Share> m_shares;
  std::int64_t m_interpolated = 0, m_prefill_samples = 0, m_decode_samples = 0;
  double m_error_sum = 0, m_worst = 0;
  std::string m_worst_batch;
};

LayerCycles SimulatedCost::Layers::cycles(std::int64_t tp, std::span<const models::SequenceStep> given) {
  const Batch batch = sorted(given);
  Share& share = m_shares.try_emplace(tp, m_cores, m_block_rows).first->second;
  const auto known = share.known.find(batch);
  if (known != share.known.end()) return known->second;
  const bool all_decode = std::all_of(batch.begin(), batch.end(), [](const auto& step) { return step.tokens == 1; });
  const bool all_prefill = std::all_of(batch.begin(), batch.end(), [](const auto& step) { return step.context == 0; });
  if (all_decode) return decode(share, tp, batch);
  if (all_prefill) return prefill(share, tp, batch);
  return simulate(share, tp, batch);
}

LayerCycles SimulatedCost::Layers::simulate(Share& share, std::int64_t tp, const Batch& batch) {
  const auto known = share.known.find(batch);
  if (known != share.known.end()) return known->second;
  return share.known[batch] = m_simulation.run(tp, batch);
}

/// In percent; also for error().
double SimulatedCost::Layers::sample(std::int64_t tp, const Batch& batch, const LayerCycles& guess,
                                     const LayerCycles& truth) {
  const double percent = 100 * std::abs(guess.layer() / truth.layer() - 1);
  m_error_sum += percent;
  if (percent > m_worst || m_worst_batch.empty()) {
    m_worst = percent;
    m_worst_batch = text_of(tp, batch);
  }
  return percent;
}

InterpolationError SimulatedCost::Layers::error() const {
  const std::int64_t sampled = m_prefill_samples + m_decode_samples;
  return {m_interpolated, sampled, sampled > 0 ? m_error_sum / static_cast<double>(sampled) : 0, m_worst,
          m_worst_batch};
}

// --- Prefill.

LayerCycles SimulatedCost::Layers::prefill(Share& share, std::int64_t tp, const Batch& batch) {
  const auto known = share.prefills.find(batch);
  if (known != share.prefills.end()) return known->second;
  const auto alike = share.launches.find(std::ssize(batch));
  if (share.exact_prefills < k_exact_prefills || alike == share.launches.end()) {
    ++share.exact_prefills;
    return share.launches[std::ssize(batch)] = simulate(share, tp, batch);
  }
  const LayerCycles guess = interpolated_prefill(share, tp, batch);
  ++m_interpolated;
  if (is_sampled(std::ssize(share.prefills) + 1)) {
    ++m_prefill_samples;
    const LayerCycles truth = simulate(share, tp, batch);
    sample(tp, batch, guess, truth);
    return share.prefills[batch] = truth;
  }
  return share.prefills[batch] = guess;
}

/// Rows come in blocks. The first is a curve of its own, the second too; behind it all are alike.
StepCurve::Value SimulatedCost::Layers::linear_layers(Share& share, std::int64_t tokens,
                                                      const StepCurve::Function& layer) {
  const std::int64_t before = (tokens - 1) / m_block_rows;  // blocks
  if (before == 0) return share.linear.at(tokens, false, 0, layer);
  const auto second = [&](std::int64_t rows) { return layer(m_block_rows + rows); };
  StepCurve::Value value = share.second_linear.at(tokens - before * m_block_rows, false, 0, second);
  const StepCurve::Value one = share.linear.at(m_block_rows, true, 0, layer),
                         two = share.second_linear.at(m_block_rows, true, 0, second);
  for (std::size_t i = 0; i < value.size(); ++i) value[i] += static_cast<double>(before - 1) * (two[i] - one[i]);
  return value;
}

LayerCycles SimulatedCost::Layers::interpolated_prefill(Share& share, std::int64_t tp, const Batch& batch) {
  const auto layer = [&](std::int64_t tokens) {
    Batch prompts;  // short ones: what is looked for is not their attention
    for (; tokens > k_keys; tokens -= k_keys) prompts.push_back({k_keys, 0});
    prompts.push_back({tokens, 0});
    const LayerCycles its = m_simulation.run(tp, prompts);
    return StepCurve::Value{its.linear, its.embed};
  };
  const StepCurve::Value linear = linear_layers(share, tokens_of(batch), layer);
  LayerCycles cycles = share.launches.at(std::ssize(batch));
  cycles.linear = linear[0];
  cycles.embed = linear[1];
  cycles.attention = 0;
  for (const models::SequenceStep& step : batch) cycles.attention += prefill_attention(share, tp, step.tokens);
  cycles.head = decode_of(share, tp, std::ssize(batch), 0).layer.head;
  return cycles;
}

/// Its steps come with rows of the cores and with blocks of keys, and differ: it is simulated for the last number of
/// tokens before the next step of either.
double SimulatedCost::Layers::prefill_attention(Share& share, std::int64_t tp, std::int64_t tokens) {
  const auto up = [&](std::int64_t step) { return (tokens + step - 1) / step * step; };
  const std::int64_t last = std::max(tokens, std::min({up(m_cores), up(k_keys), m_context}));
  const auto [it, is_new] = share.attention.try_emplace(last);
  if (is_new) it->second = m_simulation.prefill_attention(tp, last);
  return it->second;
}

// --- Decode.

SimulatedCost::Layers::Decode& SimulatedCost::Layers::decode_of(Share& share, std::int64_t tp, std::int64_t requests,
                                                                std::int64_t context) {
  auto it = share.decodes.find(requests);
  if (it == share.decodes.end()) {
    const Batch batch(static_cast<std::size_t>(requests), {1, context / k_keys * k_keys});
    it =
        share.decodes.emplace(requests, Decode{simulate(share, tp, batch), StepCurve({k_keys, m_context, k_tolerance})})
            .first;
  }
  return it->second;
}

LayerCycles SimulatedCost::Layers::decode(Share& share, std::int64_t tp, const Batch& batch) {
  const std::int64_t requests = std::ssize(batch);
  Decode& its = decode_of(share, tp, requests, batch.front().context);
  if (its.is_exact) return simulate(share, tp, batch);
  const auto attention = [&](std::int64_t positions) {
    const Batch alike(static_cast<std::size_t>(requests), {1, positions - 1});
    return StepCurve::Value{simulate(share, tp, alike).attention, 0};
  };
  const std::int64_t steps = batch.back().context / k_keys - batch.front().context / k_keys + 1;
  LayerCycles cycles = its.layer;
  cycles.attention = 0;
  for (const models::SequenceStep& step : batch) {
    cycles.attention += its.attention.at(step.context + 1, steps <= k_exact_steps, cycles.linear, attention)[0] /
                        static_cast<double>(requests);
  }
  ++m_interpolated;
  if (!is_sampled(++its.queries)) return cycles;
  ++m_decode_samples;
  const LayerCycles truth = simulate(share, tp, batch);
  its.is_exact = sample(tp, batch, cycles, truth) > k_most_error_percent;
  return truth;
}

// --- The cost of a stage.

namespace {

/// Numbers that decide what one cluster takes.
std::string cluster_text(const sim::Machine& machine) {
  std::string text;
  for (const sim::MachineNumber& n : machine.numbers()) {
    const bool is_between = n.key.starts_with("link.") || n.key.starts_with("host.") || n.key.starts_with("device.");
    if (!is_between) text += fmt::format("{}={} ", n.key, n.value);
  }
  return text;
}

std::string key_of(const sim::Machine& machine, const models::LlamaConfig& config, const SimulatedCostOptions& options,
                   std::int64_t context) {
  const ExecutionPlan& plan = options.plan;
  return fmt::format("{} {} {} {} {} {} {} {} {} | {} {} {} {} {} {} | {} {} {}", cluster_text(machine),
                     config.hidden_size, config.intermediate_size, config.heads, config.kv_heads, config.head_dim,
                     config.vocab_size, config.qkv_bias, config.o_bias, static_cast<int>(options.dtype),
                     static_cast<int>(plan.operators), plan.fusion, static_cast<int>(plan.attention),
                     static_cast<int>(plan.launches), static_cast<int>(config.rope_pairs),
                     static_cast<int>(options.kv.mode), options.kv.block, context);
}

}  // namespace

SimulatedCost::SimulatedCost(sim::Cluster& cluster, const sim::Machine& machine, const models::LlamaConfig& config,
                             const SimulatedCostOptions& options)
    : m_machine(machine.config()), m_config(config), m_options(options), m_links(machine.config()) {
  static std::map<std::pair<sim::Cluster*, std::string>, std::shared_ptr<Layers>> known;
  const std::int64_t context = options.context > 0 ? options.context : config.max_positions;
  std::shared_ptr<Layers>& its = known[{&cluster, key_of(machine, config, options, context)}];
  if (!its) {
    its = std::make_shared<Layers>(
        LayerSimulation(cluster, machine.config(), config, options.dtype, options.plan, options.kv),
        machine.config().cluster.cores, kernels::GemmTiles::of(options.dtype).mg, context);
  }
  m_layers = its;
}

SimulatedCost::~SimulatedCost() = default;

StageTime SimulatedCost::stage(const StageShape& stage, std::span<const models::SequenceStep> batch) {
  if (batch.empty()) throw RuntimeError("an iteration has no sequence");
  const LayerCycles cycles = m_layers->cycles(stage.tp, batch);
  const std::int64_t layers = stage.layers(m_config.layers), rows = std::ssize(batch);
  const bool is_first = stage.stage == 0, is_last = stage.stage + 1 == stage.stages;
  const double kernels = static_cast<double>(layers) * (cycles.linear + cycles.attention) +
                         (is_first ? cycles.embed : 0) + (is_last ? cycles.head : 0);
  const std::int64_t launches = cycles.stage_launches + layers * cycles.layer_launches +
                                (is_first ? cycles.embed_launches : 0) + (is_last ? cycles.head_launches : 0);
  StageTime time{seconds(kernels), seconds(cycles.launch * static_cast<double>(launches)), 0};
  if (stage.tp == 1) return time;
  std::vector<int> group(static_cast<std::size_t>(stage.tp));
  std::iota(group.begin(), group.end(), 0);
  std::int64_t tokens = 0;
  for (const models::SequenceStep& step : batch) tokens += step.tokens;
  constexpr std::int64_t k_sums = 2;  // of a layer
  std::int64_t exchanged = layers * k_sums * m_links.exchange_cycles(tokens * activation_bytes_per_token(), group);
  if (is_last) {
    exchanged += m_links.gather_cycles(rows * m_config.vocab_size / stage.tp * bytes_of(m_options.dtype), group);
  }
  time.all_reduce_s = seconds(static_cast<double>(exchanged));
  return time;
}

double SimulatedCost::message_s(std::int64_t bytes, bool same_device) const {
  return seconds(static_cast<double>(m_links.message_cycles(bytes, same_device)));
}

double SimulatedCost::host_s(std::int64_t requests) const {
  return 1e-6 * (m_machine.host.iteration_us + m_machine.host.request_us * static_cast<double>(requests));
}

std::int64_t SimulatedCost::activation_bytes_per_token() const {
  return m_config.hidden_size * bytes_of(m_options.dtype);
}

std::int64_t SimulatedCost::weight_bytes(std::int64_t tp, std::int64_t stages) const {
  double most = 0;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    most = std::max(most, DeviceModel::weight_bytes(m_config, m_options.dtype,
                                                    models::ModelPart::stage(m_config, stages, stage, tp)));
  }
  return static_cast<std::int64_t>(std::ceil(most));
}

std::int64_t SimulatedCost::kv_bytes_per_token(std::int64_t tp, std::int64_t stages) const {
  return models::ModelPart::stage(m_config, stages, 0, tp)
      .config(m_config)
      .kv_bytes_per_token(bytes_of(m_options.dtype));
}

InterpolationError SimulatedCost::error() const { return m_layers->error(); }
std::int64_t SimulatedCost::simulations() const { return m_layers->simulations(); }

}  // namespace mtsim::runtime
