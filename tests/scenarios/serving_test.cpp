// SPDX-License-Identifier: Apache-2.0
// Serving scenarios and plans in YAML: what is read, what is refused, how a batch goes to other lengths and pools, how
// groups step, what a fit finds. On a formula instead of clusters.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <memory>

#include "scenarios/error.h"
#include "scenarios/serving/plan_file.h"
#include "scenarios/serving/serving_fit.h"
#include "scenarios/serving/serving_runner.h"
#include "scenarios/serving/serving_scenario.h"
#include "tests/support/analytic_cost.h"
#include "tests/support/temporary_folder.h"

using namespace mtsim;
using namespace mtsim::scenarios;
using Catch::Matchers::Contains;
using mtsim::test::AnalyticCost;
using mtsim::test::TemporaryFolder;

namespace {

/// Kernels take what a formula says; links and hosts are the machine's.
class AnalyticCosts final : public ServingCosts {
 public:
  explicit AnalyticCosts(const sim::Machine& machine) { set_between(machine); }
  runtime::IterationCost& of(const models::LlamaConfig& config, const runtime::ExecutionPlan&) override {
    auto& cost = m_costs[config.name];
    if (!cost) cost = std::make_unique<AnalyticCost>(config, m_numbers);
    return *cost;
  }
  void set_between(const sim::Machine& machine) override {
    m_costs.clear();
    m_numbers.latency_s = 1e-6 * machine.config().link.network_latency_us;
    m_numbers.link = 1e9 * machine.config().link.network_bandwidth_gb_s;
    m_numbers.host_s = 1e-6 * machine.config().host.iteration_us;
    m_numbers.request_s = 1e-6 * machine.config().host.request_us;
  }
  std::int64_t clusters_per_device() const override { return 4; }

 private:
  test::AnalyticNumbers m_numbers;
  std::map<std::string, std::unique_ptr<AnalyticCost>> m_costs;
};
std::unique_ptr<ServingCosts> analytic_costs(const sim::Machine& machine) {
  return std::make_unique<AnalyticCosts>(machine);
}

const sim::Machine& machine() {
  static const sim::Machine its = sim::Machine::load("mt3000");
  return its;
}

std::string paper_file(const std::string& name) { return std::string(MTSIM_SOURCE) + "/scenarios/paper/" + name; }

constexpr const char* k_head = "kind: serving\nname: s\ntitle: t\nmachine: mt3000\nmodels: {7b: Llama-2-7B}\n";
constexpr const char* k_grid = "grid: {devices: [8, 18], prompt: 512, output: 128}\n";
constexpr const char* k_plans =
    "plans:\n  7b: {prefill: {dp: 2}, buffer: {clusters: 2}, decode: {tp: 2, pp: 2, micro_batch: 16}}\n";

ServingRun run(const ServingScenario& scenario, const ServingRunOptions& options = {}) {
  return run_serving(scenario, machine(), analytic_costs, options);
}

}  // namespace

TEST_CASE("the paper's serving tables are read whole", "[serving]") {
  const ServingScenario five = load_serving_scenario(paper_file("table_v.yaml"));
  CHECK(five.cells().size() == 16);
  CHECK(five.cells()[1].paper.at("tokens_s") == 456);
  CHECK(five.reported.size() == 2);
  CHECK(five.reported[0].values.size() == 6);  // 70B did not run
  CHECK(is_serving_scenario(paper_file("table_vi.yaml")));
  CHECK_FALSE(is_serving_scenario(paper_file("table_viii.yaml")));
  const ServingScenario seven = load_serving_scenario(paper_file("table_vii.yaml"));
  CHECK(seven.cells().size() == 18);
  for (const ScenarioCell& cell : seven.cells()) {
    INFO(seven.text(cell.at));
    const PinnedPlan& pinned = seven.pinned(cell.at);
    CHECK(12 % pinned.plan.clusters() == 0);
    CHECK_FALSE(pinned.batch.carried);  // resolved
  }
}

TEST_CASE("a carried batch is that of the model's pool, dealt to the pipelines", "[serving]") {
  const PinnedPlans pools = load_pinned_plans(paper_file("serving_plans.yaml"));
  const ServingScenario seven = load_serving_scenario(paper_file("table_vii.yaml"));
  for (const auto& cell : seven.cells()) {
    const PinnedPlan& pinned = seven.pinned(cell.at);
    if (pinned.plan.kv.sequences == 1) continue;  // one request at a time
    const PinnedPlan& pool = pools.at(seven.label(cell.at));
    const auto requests = static_cast<double>(pool.batch.requests * pool.plan.decode.pp * pool.plan.decode.dp);
    const auto pipelines = static_cast<double>(pinned.plan.decode.pp * pinned.plan.decode.dp);
    INFO(seven.text(cell.at));
    CHECK(std::abs(static_cast<double>(pinned.batch.requests) - requests / pipelines) <= 0.5);
  }
}

TEST_CASE("at other lengths a batch keeps its bytes of KV, or its requests", "[serving]") {
  BatchSize batch{46, 512, 128, false, "assumed", ""};
  CHECK(batch.at(512, 128, BatchRule::kv_budget) == 46);
  CHECK(batch.at(1024, 128, BatchRule::kv_budget) == std::lround(46.0 * 640 / 1152));
  CHECK(batch.at(1024, 128, BatchRule::same_batch) == 46);
  batch.requests = 1;
  CHECK(batch.at(4000, 128, BatchRule::kv_budget) == 1);
  batch.prompt = batch.output = 0;  // for any length
  CHECK(batch.at(1024, 128, BatchRule::kv_budget) == 1);
}

TEST_CASE("throughput steps with the number of whole pools that fit", "[serving]") {
  const TemporaryFolder folder;
  // A pool of ten clusters on 32, 40, 64 and 72: three, four, six and seven.
  const auto scenario = load_serving_scenario(folder.write(
      "s.yaml", std::string(k_head) + "grid: {devices: [8, 10, 16, 18], prompt: 512, output: 128}\nrows: model\n"
                                      "columns: devices\nplans:\n  7b: {prefill: {dp: 4}, buffer: {clusters: 2}, "
                                      "decode: {tp: 2, pp: 2, micro_batch: 8}}\n"));
  const ServingRun result = run(scenario);
  REQUIRE(result.cells.size() == 4);
  const double one = result.cells[0].outcome.metric("tokens_s") / 3;
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(result.cells[i].outcome.metric("tokens_s") / one == Approx((std::array{3, 4, 6, 7})[i]));
  CHECK(result.cells[0].outcome.json.at("idle_clusters") == 2);
}

TEST_CASE("a pool that does not fit is a result with the numbers", "[serving]") {
  const TemporaryFolder folder;
  auto scenario = load_serving_scenario(folder.write("s.yaml", std::string(k_head) + k_grid + k_plans));
  scenario.set("devices", "1");
  const ServingRun result = run(scenario);
  CHECK_FALSE(result.cells[0].outcome.fits());
  CHECK(result.cells[0].outcome.json.at("why_not") == "a pool takes 8 clusters, there are 4");
}

TEST_CASE("bands come from links and hosts alone", "[serving]") {
  const TemporaryFolder folder;
  const auto scenario = load_serving_scenario(folder.write("s.yaml", std::string(k_head) + k_grid + k_plans));
  const ServingRun result = run(scenario, {.samples = 8});
  for (const auto& n : result.drawn) CHECK((n.key.starts_with("link.") || n.key.starts_with("host.")));
  for (const ServingCell& cell : result.cells) {
    REQUIRE(cell.band);
    CHECK(cell.band->low < cell.band->high);
  }
  CHECK(result.cells[1].band->low / result.cells[0].band->low == Approx(9.0 / 4));  // groups
}

TEST_CASE("the planner's choice stands beside a pinned plan", "[serving]") {
  const TemporaryFolder folder;
  const auto scenario = load_serving_scenario(
      folder.write("s.yaml", std::string(k_head) + k_grid + k_plans + "beside: [same_batch, search]\n"));
  const ServingRun result = run(scenario);
  for (const ServingCell& cell : result.cells) {
    CHECK(cell.beside.at("search").metric("tokens_s") >= cell.outcome.metric("tokens_s"));
    CHECK(cell.beside.at("search").json.at("plan").at("source") == "planned");
  }
}

TEST_CASE("requests that arrive at random are dealt to the groups", "[serving]") {
  const TemporaryFolder folder;
  const auto scenario = load_serving_scenario(
      folder.write("s.yaml", std::string(k_head) + k_plans +
                                 "workload: {kind: poisson}\nslo: ttft=5,tpot=0.5\n"
                                 "grid: {devices: 16, prompt: 512, output: 128, rate: [0.5, 1.0]}\n"
                                 "rows: model\ncolumns: rate\n"));
  const ServingRun result = run(scenario);
  REQUIRE(result.cells.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& metrics = result.cells[i].outcome.json.at("metrics");
    CHECK(metrics.at("requests_s").get<double>() == Approx(0.5 * static_cast<double>(i + 1)).epsilon(0.25));
    CHECK(metrics.at("attainment").get<double>() > 0.9);
  }
}

TEST_CASE("mistakes of a serving scenario are listed with place and what to do", "[serving]") {
  struct Case {
    std::string text;
    std::vector<std::string> messages;
  };
  const std::string head = k_head, grid = k_grid, plans = k_plans;
  const auto [text, messages] = GENERATE_COPY(values<Case>({
      {head + grid, {"s.yaml:1:1", "missing key 'plans'"}},
      {head + plans + "grid: {prompt: 512, output: 128}\n", {"missing key 'devices'"}},
      {head + grid + plans + "batch_rul: same_batch\n", {"s.yaml:9:1", "did you mean 'batch_rule'?"}},
      {head + grid + plans + "batch_rule: same\n", {"s.yaml:9:13", "kv_budget or same_batch"}},
      {head + grid + "plans: {7b: {decode: {tp: 3, pp: 2, micro_batch: 4}, prefill: {}, buffer: {slack: true}}}\n",
       {"s.yaml:7:", "TP 3 does not divide the 32 heads"}},
      {head + grid + "plans: {7b: {decode: {pp: 40, micro_batch: 4}, mode: coupled}}\n",
       {"40 stages for the 32 layers"}},
      {head + grid + "plans: {7b: {decode: {pp: 2}, mode: coupled}}\n", {"missing key 'micro_batch'"}},
      {head + grid + "plans: {7b: {decode: {micro_batch: carried}, mode: coupled}}\n", {"there is no 'batches'"}},
      {head + grid + "plans: {7b: {decode: {micro_batch: 4}, prefill: {}}}\n", {"a bounded buffer of nothing"}},
      {head + grid + "plans: {7b: {decode: {micro_batch: 0}, mode: coupled}}\n", {"a micro-batch of 0"}},
      {head + grid + "plans: {7b: serch}\n", {"'search', or a mapping of its pools"}},
      {head + grid + "plans: {7b: search, 13b: search}\n", {"no model of this scenario"}},
      {head + grid + "plans: nowhere.yaml\n", {"nowhere.yaml"}},
      {head + grid + plans + "workload: {kind: burst}\n", {"uniform, poisson or trace, not 'burst'"}},
      {head + grid + plans + "workload: {kind: trace}\n", {"missing key 'trace'", "a trace has its own prompts"}},
      {head + grid + plans + "workload: {kind: poisson}\n", {"Poisson arrivals have a rate"}},
      {head + grid + plans + "objective: goodput\n", {"goodput without an SLO"}},
      {head + grid + plans + "set: {ddr.bandwith_gb_s: 60}\n", {"did you mean 'ddr.bandwidth_gb_s'?"}},
      {"kind: srving\nname: s\ntitle: t\nmachine: mt3000\nmodels: {7b: Llama-2-7B}\n" + grid + plans,
       {"s.yaml:1:7", "unknown kind 'srving'"}},
      {head + grid + plans + "paper: {source: T, tokens_s: {7b: [1, 2, 3]}}\n", {"3 numbers for 2 columns"}},
      {head + grid + plans + "reported: [{system: X, tokens_s: {8b: [1, null]}}]\n", {"'8b' is no value"}},
  }));
  INFO(text);
  const TemporaryFolder folder;
  const std::string path = folder.write("s.yaml", text);
  std::string message;
  try {
    static_cast<void>(load_serving_scenario(path));
  } catch (const sim::ConfigError& error) {
    message = error.what();
  }
  INFO(message);
  for (const std::string& part : messages) CHECK_THAT(message, Contains(part));
}

TEST_CASE("--set changes axes, workload and rules, and nothing else", "[serving]") {
  const TemporaryFolder folder;
  auto scenario = load_serving_scenario(
      folder.write("s.yaml", std::string(k_head) + k_grid + k_plans + "paper: {source: T, tokens_s: {7b: [1, 2]}}\n"));
  CHECK(scenario.set("devices", "[4, 9]"));
  CHECK(scenario.axes[ServingScenario::k_devices].values == std::vector<std::int64_t>{4, 9});
  CHECK(scenario.set("workload.requests", "7"));
  CHECK(scenario.workload.requests == 7);
  CHECK(scenario.set("batch_rule", "same_batch"));
  CHECK(scenario.set("prompt", "1024"));
  CHECK(scenario.paper.empty());  // they were for another prompt
  CHECK_FALSE(scenario.set("ddr.bandwidth_gb_s", "60"));
  CHECK_FALSE(scenario.set("workload.size", "7"));
  CHECK_THROWS_WITH(scenario.set("prompt", "[512, 1024]"), Contains("give one value"));
  CHECK_THROWS_WITH(scenario.set("rate", "3"), Contains("has no rate"));
  CHECK_THROWS(scenario.set("model", "8b"));
}

TEST_CASE("a plan is read as it was written", "[serving]") {
  for (const std::string text :
       {"{mode: coupled, execution: a1, decode: {tp: 2, pp: 2, dp: 3, micro_batch: 5}}",
        "{mode: coupled, batch: continuous, prefill: {micro_batch: 2}, decode: {micro_batch: {value: 5, prompt: 9, "
        "output: 3, source: fitted}}}",
        "{prefill: {dp: 2, pp: 3, micro_batch: 2}, buffer: {clusters: 1, slack: true}, decode: {micro_batch: 7}}",
        "{mode: unbounded, prefill: {tp: 2}, decode: {micro_batch: 7}}"}) {
    INFO(text);
    const auto read = [](const std::string& yaml) {
      const auto document = sim::YamlDocument::parse(yaml, "plan");
      const PinnedPlan plan = read_pinned_plan(document.root());
      document.finish();
      return plan;
    };
    const PinnedPlan plan = read(text), again = read(plan_yaml(plan, 2));
    CHECK(again.plan.str() == plan.plan.str());
    CHECK(again.plan.execution.name == plan.plan.execution.name);
    CHECK(again.plan.prefill.micro_batch == plan.plan.prefill.micro_batch);
    CHECK(again.batch.requests == plan.batch.requests);
    CHECK(again.batch.prompt == plan.batch.prompt);
  }
}

TEST_CASE("a fit recovers the micro-batch that made the values, and writes it", "[serving]") {
  const TemporaryFolder folder;
  const auto plans = [](int requests) {
    return fmt::format(
        "plans:\n  7b:\n    prefill: {{dp: 2}}\n    buffer: {{clusters: 2}}\n    decode: {{tp: 2, pp: 2, micro_batch: "
        "{{value: {}, prompt: 512, output: 128, source: assumed, from: \"\"}}}}  # kept\n",
        requests);
  };
  const std::string path = folder.write("plans.yaml", plans(11));
  const std::string text = std::string(k_head) + k_grid + "rows: model\ncolumns: devices\nplans: plans.yaml\n";
  const ServingRun truth = run(load_serving_scenario(folder.write("s.yaml", text)));
  folder.write("plans.yaml", plans(3));
  const auto scenario = load_serving_scenario(folder.write(
      "s.yaml",
      text + fmt::format("paper: {{source: Table X, tokens_s: {{7b: [{}, {}]}}}}\n",
                         truth.cells[0].outcome.metric("tokens_s"), truth.cells[1].outcome.metric("tokens_s"))));
  const ServingFit fit = fit_batches({scenario.for_fit()}, machine(), analytic_costs, false);
  REQUIRE(fit.batches.size() == 1);
  CHECK(fit.batches[0].start == 3);
  CHECK(fit.batches[0].requests == 11);
  CHECK(fit.batches[0].mape_percent < 0.1);
  CHECK(fit.batches[0].residuals.size() == 2);
  write_batches(fit);
  const PinnedPlan written = load_pinned_plans(path).at("7b");
  CHECK(written.batch.requests == 11);
  CHECK(written.batch.source == "fitted");
  CHECK_THAT(written.batch.from, Contains("Table X, prompts of 512 (2 cells"));
  CHECK_THAT(sim::read_text_file(path), Contains("# kept"));
}

TEST_CASE("a fit refuses what it could not write, or would have to guess", "[serving]") {
  const TemporaryFolder folder;
  const std::string paper = "paper: {source: T, tokens_s: {7b: [1, 2]}}\n";
  const auto inline_plans =
      load_serving_scenario(folder.write("a.yaml", std::string(k_head) + k_grid + k_plans + paper));
  CHECK_THROWS_WITH(fit_batches({inline_plans}, machine(), analytic_costs, false), Contains("give 'plans: FILE'"));
  folder.write("plans.yaml", k_plans);
  const auto no_paper =
      load_serving_scenario(folder.write("b.yaml", std::string(k_head) + k_grid + "plans: plans.yaml\n"));
  CHECK_THROWS_WITH(fit_batches({no_paper}, machine(), analytic_costs, false), Contains("no cell with a number"));
  const auto lengths = load_serving_scenario(
      folder.write("c.yaml", std::string(k_head) +
                                 "grid: {devices: 8, prompt: [512, 1024], output: 128}\nrows: model\ncolumns: prompt\n"
                                 "plans: plans.yaml\n" +
                                 paper));
  CHECK_THROWS_WITH(fit_batches({lengths}, machine(), analytic_costs, false), Contains("at one length"));
  const auto bare =
      load_serving_scenario(folder.write("d.yaml", std::string(k_head) + k_grid + "plans: plans.yaml\n" + paper));
  const ServingFit fit = fit_batches({bare}, machine(), analytic_costs, false);
  CHECK_THROWS_WITH(write_batches(fit), Contains("has no 'value'"));
  CHECK(sim::read_text_file(folder.path("plans.yaml")) == k_plans);
}
