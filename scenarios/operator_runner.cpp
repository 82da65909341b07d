// SPDX-License-Identifier: Apache-2.0
#include "scenarios/operator_runner.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "isa/checker.h"
#include "scenarios/error.h"
#include "scenarios/exec.h"
#include "scenarios/launch_sum.h"
#include "scenarios/watch.h"

namespace mtsim::scenarios {

namespace {

/// Of many equal pieces, and one more where they are odd: what is left out are pairs like the last two, since buffers
/// take turns. The first two fill the pipeline (pieces_test.cpp compares with whole runs).
constexpr std::int64_t k_simulated_pieces = 4;

/// "gemm m=1 n=2 k=3".
std::string name_of(const OperatorRequest& request) {
  return fmt::format("{} {}", request.op->info().name, shape_text(*request.op, request.spec.shape));
}

void require_shape(const OperatorRequest& request, const sim::MachineConfig& machine) {
  const CaseSpec& spec = request.spec;
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    const Dimension& dimension = request.op->info().dimensions[i];
    if (spec.shape[i] < dimension.least) {
      throw UsageError(fmt::format("{}: {} = {}; at least {}", request.op->info().name, dimension.name, spec.shape[i],
                                   dimension.least));
    }
  }
  const double needed = request.op->operand_bytes(spec.shape, spec.dtype);
  if (needed > static_cast<double>(machine.ddr.bytes)) {
    throw UsageError(
        fmt::format("{}: the operands take {:.0f} bytes in {}, the cluster's DDR has {} (ddr.bytes); use a smaller "
                    "shape or a machine with more",
                    name_of(request), needed, to_string(spec.dtype), machine.ddr.bytes));
  }
}

void require_host_memory(const OperatorRequest& request) {
  if (request.options.depth == sim::Depth::timing) return;
  const double needed = 1e-9 * request.op->host_bytes(request.spec.shape, request.spec.dtype, request.options.verify);
  const double available =
      1e-9 * static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  if (needed > available) {
    throw UsageError(
        fmt::format("{}: functional depth needs about {:.1f} GB of memory, this host has {:.1f} GB; use a smaller "
                    "shape or --depth timing",
                    name_of(request), needed, available));
  }
}

void collect_assumed(OperatorOutcome& outcome) {
  for (const auto& called : outcome.launch.kernels) {
    for (const auto& mnemonic : assumed_instructions(*called.code)) outcome.assumed_instructions.push_back(mnemonic);
    for (const auto& rule : isa::assumed_shapes(*called.code)) outcome.assumed_packet_rules.push_back(rule);
  }
  for (auto* list : {&outcome.assumed_instructions, &outcome.assumed_packet_rules}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
}

}  // namespace

bool OperatorOutcome::passed() const {
  return !launch.fault && launch.findings.empty() &&
         (!request.options.verify || (verification && verification->passed()));
}

OperatorRunner::OperatorRunner(sim::Machine machine) : m_machine(std::move(machine)) {}
OperatorRunner::~OperatorRunner() = default;

void OperatorRunner::set_machine(sim::Machine machine) { m_machine = std::move(machine); }

sim::Cluster& OperatorRunner::cluster(const CaseOptions& options, sim::Observer* observer) {
  const sim::ClusterOptions cluster_options{.depth = options.depth,
                                            .memo = options.memo,
                                            .poison = true,
                                            .max_launch_cycles = options.max_cycles,
                                            .hazards = options.hazards && (m_watch == nullptr || m_watch->hazards()),
                                            .observer = observer,
                                            .interceptor = m_watch == nullptr ? nullptr : m_watch->interceptor()};
  if (m_cluster) {
    m_cluster->reset(m_machine.config(), cluster_options);
  } else {
    m_cluster = std::make_unique<sim::Cluster>(m_machine.config(), cluster_options);
  }
  return *m_cluster;
}

/// All programs of a case, one after the other on a fresh cluster.
sim::LaunchResult OperatorRunner::launch(const OperatorRequest& request, OperatorCase& the_case) {
  auto observers = std::make_unique<sim::Observers>();
  for (sim::Observer* observer : {m_watch == nullptr ? nullptr : m_watch->observer(), the_case.observer()}) {
    if (observer != nullptr) observers->add(*observer);
  }
  sim::Cluster& cluster = this->cluster(request.options, observers->empty() ? nullptr : observers.get());
  m_observers = std::move(observers);  // the cluster has forgotten those before
  sim::LaunchResult all;
  const sim::DspProgram first = the_case.load(cluster, request.options.seed);
  for (std::int64_t i = 0; i < the_case.launches() && !all.fault; ++i) {
    sim::LaunchResult one = cluster.launch(i == 0 ? first : the_case.launch_program(i));
    if (m_watch != nullptr) m_watch->review(one);
    if (i == 0)
      all = std::move(one);
    else
      append(all, one);
  }
  return all;
}

sim::LaunchResult OperatorRunner::launch_pieces(const OperatorRequest& request, OperatorCase& the_case,
                                                std::int64_t& simulated) {
  const std::int64_t pieces = the_case.pieces();
  simulated = pieces;
  if (!request.options.skip_pieces || request.options.depth != sim::Depth::timing || pieces <= k_simulated_pieces + 1)
    return launch(request, the_case);
  if (m_watch != nullptr && (m_watch->observer() != nullptr || m_watch->interceptor() != nullptr))
    throw UsageError("--skip-pieces with a trace or a mistake: they are of whole runs; leave one of them out");
  simulated = k_simulated_pieces + pieces % 2;
  the_case.limit(simulated - 2);
  const sim::LaunchResult fewer = launch(request, the_case);
  the_case.limit(simulated);
  OperatorRequest last = request;
  // All pieces take more + pairs * (more - fewer): from here on too long.
  const std::int64_t pairs = (pieces - simulated) / 2, limit = request.options.max_cycles;
  if (limit > 0 && the_case.launches() == 1)
    last.options.max_cycles = std::max<std::int64_t>(1, (limit + pairs * fewer.cycles) / (1 + pairs));
  const sim::LaunchResult more = launch(last, the_case);
  if (fewer.fault || more.fault) return more;
  return extrapolated(fewer, more, pairs);
}

OperatorOutcome OperatorRunner::run(const OperatorRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  const sim::MachineConfig& config = m_machine.config();
  if (request.options.verify && request.options.depth == sim::Depth::timing) {
    throw UsageError("--verify needs functional depth: timing depth moves no data");
  }
  require_shape(request, config);
  require_host_memory(request);

  OperatorOutcome outcome;
  outcome.request = request;
  const std::unique_ptr<OperatorCase> the_case = request.op->prepare(request.spec, config);
  outcome.plan = the_case->plan();
  outcome.plan_text = the_case->plan_text();
  outcome.pieces = the_case->pieces();
  const auto launches = static_cast<double>(the_case->launches());
  try {
    outcome.launch = launch_pieces(request, *the_case, outcome.simulated_pieces);
  } catch (const sim::LaunchCut&) {
    throw;
  } catch (const sim::SimError& error) {
    throw ProgramFailed(fmt::format("{}: {}", name_of(request), error.what()));
  }
  if (request.options.verify && !outcome.launch.fault) outcome.verification = the_case->verify(*m_cluster);
  outcome.results = the_case->results();
  outcome.results_text = the_case->results_text();

  outcome.latency_ms = config.milliseconds(outcome.launch.cycles);
  outcome.peak_gmac_s = config.peak_gmac_s(lanes_per_word(request.spec.dtype));
  if (outcome.latency_ms > 0) outcome.gmac_s = the_case->macs() / (outcome.latency_ms * 1e6);
  outcome.ideal_bytes = the_case->ideal_bytes();
  const double running_ms = outcome.latency_ms - launches * config.cluster.launch_us * 1e-3;
  if (running_ms > 0) outcome.ddr_gb_s = outcome.ideal_bytes / (running_ms * 1e6);
  outcome.utilisation =
      the_case->macs() > 0 ? outcome.gmac_s / outcome.peak_gmac_s : outcome.ddr_gb_s / config.ddr.bandwidth_gb_s;
  collect_assumed(outcome);
  outcome.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return outcome;
}

const char* to_string(sim::Depth depth) { return depth == sim::Depth::functional ? "functional" : "timing"; }

sim::Depth parse_depth(const std::string& name) {
  for (auto depth : {sim::Depth::functional, sim::Depth::timing}) {
    if (name == to_string(depth)) return depth;
  }
  throw UsageError(fmt::format("unknown depth '{}'; known: functional, timing", name));
}

}  // namespace mtsim::scenarios
