// SPDX-License-Identifier: Apache-2.0
#include "scenarios/gemm_runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <span>
#include <utility>

#include "isa/checker.h"
#include "kernels/gemm/gemm_program.h"
#include "scenarios/error.h"
#include "scenarios/exec.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

constexpr int k_fp32_per_word = 2;

/// Uniform in [-1, 1), the same on every host (splitmix64, 24 bits).
std::vector<float> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    std::uint64_t z = (seed += 0x9E37'79B9'7F4A'7C15);
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
    value = static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-23F - 1.0F;
  }
  return values;
}

void require_shape(const kernels::GemmShape& shape, const sim::MachineConfig& machine) {
  for (const auto& [name, value] : {std::pair{"m", shape.m}, {"n", shape.n}, {"k", shape.k}}) {
    if (value < 1) throw UsageError(fmt::format("gemm: {} = {}; at least 1", name, value));
  }
  const double needed = 4 * (static_cast<double>(shape.m) * static_cast<double>(shape.k) +
                             static_cast<double>(shape.k) * static_cast<double>(shape.n) +
                             static_cast<double>(shape.m) * static_cast<double>(shape.n));
  if (needed > static_cast<double>(machine.ddr.bytes)) {
    throw UsageError(
        fmt::format("gemm m={} n={} k={}: X, W and Y take {:.0f} bytes in FP32, the cluster's DDR has {} (ddr.bytes); "
                    "use a smaller shape or a machine with more",
                    shape.m, shape.n, shape.k, needed, machine.ddr.bytes));
  }
}

/// The operands here and in the simulated DDR, Y read back, and W twice in FP64 for the verification.
void require_host_memory(const GemmRequest& request) {
  if (request.depth == sim::Depth::timing) return;
  const auto [m, n, k] = request.shape;
  const double x = 4e-9 * static_cast<double>(m * k), w = 4e-9 * static_cast<double>(k * n),
               y = 4e-9 * static_cast<double>(m * n);
  const double needed = 2 * (x + w) + y + (request.verify ? 4 * w + y : 0);
  const double available =
      1e-9 * static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > available) {
    throw UsageError(fmt::format(
        "gemm m={} n={} k={}: functional depth needs about {:.1f} GB of memory, this host has {:.1f} GB; use a "
        "smaller shape or --depth timing",
        m, n, k, needed, available));
  }
}

template <class Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

bool GemmOutcome::passed() const {
  return !launch.fault && launch.findings.empty() && (!request.verify || (verification && verification->passed()));
}

GemmRunner::GemmRunner(sim::Machine machine) : m_machine(std::move(machine)) {}
GemmRunner::~GemmRunner() = default;

void GemmRunner::set_machine(sim::Machine machine) { m_machine = std::move(machine); }

GemmOutcome GemmRunner::run(const GemmRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const sim::MachineConfig& config = m_machine.config();
  const auto [m, n, k] = request.shape;
  if (request.verify && request.depth == sim::Depth::timing) {
    throw UsageError("--verify needs functional depth: timing depth moves no data");
  }
  require_shape(request.shape, config);
  require_host_memory(request);

  GemmOutcome outcome;
  outcome.request = request;
  outcome.plan =
      kernels::plan_gemm(request.shape, kernels::DType::f32, request.tiles,
                         {.dataflow = request.sequence.dataflow, .variant = request.sequence.variant}, config);
  const sim::ClusterOptions options{.depth = request.depth, .memo = request.memo, .poison = true};
  if (m_cluster) {
    m_cluster->reset(config, options);
  } else {
    m_cluster = std::make_unique<sim::Cluster>(config, options);
  }
  const kernels::GemmOperands operands{m_cluster->ddr_malloc(4 * m * k), m_cluster->ddr_malloc(4 * k * n),
                                       m_cluster->ddr_malloc(4 * m * n)};
  std::vector<float> x, w;
  if (request.depth == sim::Depth::functional) {
    x = random_values(m * k, request.seed);
    w = random_values(k * n, ~request.seed);
    m_cluster->write(operands.x, bytes_of(x));
    m_cluster->write(operands.w, bytes_of(w));
  }
  try {
    outcome.launch = m_cluster->launch(kernels::gemm_program(*m_cluster, outcome.plan, operands));
  } catch (const sim::SimError& error) {
    throw ProgramFailed(fmt::format("gemm m={} n={} k={}: {}", m, n, k, error.what()));
  }
  if (request.verify && !outcome.launch.fault) {
    std::vector<float> y(static_cast<std::size_t>(m * n));
    m_cluster->read(operands.y, std::as_writable_bytes(std::span(y)));
    outcome.verification = verify_gemm_f32(x, w, y, m, n, k, kernels::gemm::format(kernels::DType::f32).padded_k(k));
  }

  outcome.latency_ms = config.milliseconds(outcome.launch.cycles);
  outcome.peak_gmac_s = config.peak_gmac_s(k_fp32_per_word);
  if (outcome.latency_ms > 0) outcome.gmac_s = request.shape.macs() / (outcome.latency_ms * 1e6);
  outcome.utilisation = outcome.gmac_s / outcome.peak_gmac_s;
  for (const auto& called : outcome.launch.kernels) {
    const isa::Program& program = kernels::program(called.program);
    for (const auto& mnemonic : assumed_instructions(program)) outcome.assumed_instructions.push_back(mnemonic);
    for (const auto& rule : isa::assumed_shapes(program)) outcome.assumed_packet_rules.push_back(rule);
  }
  for (auto* list : {&outcome.assumed_instructions, &outcome.assumed_packet_rules}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

const char* to_string(kernels::GemmDataflow dataflow) {
  switch (dataflow) {
    case kernels::GemmDataflow::large_m: return "large_m";
    case kernels::GemmDataflow::small_m: return "small_m";
    case kernels::GemmDataflow::automatic: break;
  }
  return "automatic";
}

const char* to_string(sim::Depth depth) { return depth == sim::Depth::functional ? "functional" : "timing"; }

const char* to_string(kernels::GemmVariant variant) { return variant == kernels::GemmVariant::best ? "best" : "paper"; }

GemmSequence parse_sequence(const std::string& words) {
  GemmSequence sequence;
  std::string variant_word, dataflow_word;  // given so far
  const auto choose = [&words](std::string& before, const std::string& word) {
    if (!before.empty())
      throw UsageError(fmt::format("variant '{}': '{}' and '{}' exclude each other; keep one", words, before, word));
    before = word;
  };
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t comma = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, comma - at);
    at = comma + 1;
    bool known = false;
    for (auto variant : {kernels::GemmVariant::best, kernels::GemmVariant::paper}) {
      if (word != to_string(variant)) continue;
      choose(variant_word, word);
      sequence.variant = variant;
      known = true;
    }
    for (auto dataflow :
         {kernels::GemmDataflow::automatic, kernels::GemmDataflow::large_m, kernels::GemmDataflow::small_m}) {
      if (word != to_string(dataflow)) continue;
      choose(dataflow_word, word);
      sequence.dataflow = dataflow;
      known = true;
    }
    if (known) continue;
    static constexpr std::array<std::string_view, 5> k_words = {"best", "paper", "automatic", "large_m", "small_m"};
    throw UsageError(
        fmt::format("unknown variant '{}' of gemm{}; known: best or paper, and automatic, large_m or small_m", word,
                    isa::did_you_mean(word, k_words)));
  }
  return sequence;
}

sim::Depth parse_depth(const std::string& name) {
  for (auto depth : {sim::Depth::functional, sim::Depth::timing}) {
    if (name == to_string(depth)) return depth;
  }
  throw UsageError(fmt::format("unknown depth '{}'; known: functional, timing", name));
}

void require_gemm_dtype(const std::string& dtype) {
  if (dtype == "f32") return;
  if (dtype == "f16") throw UsageError("gemm: dtype f16 is not available yet; use f32");
  throw UsageError(fmt::format("gemm: unknown dtype '{}'; use f32", dtype));
}

}  // namespace mtsim::scenarios
