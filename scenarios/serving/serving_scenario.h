// SPDX-License-Identifier: Apache-2.0
// A scenario file of kind serving: models on many clusters under a workload, with pools that are pinned or searched,
// over a grid of devices and lengths. docs/scenarios.md describes every key.
//
//   ServingScenario scenario = load_serving_scenario("scenarios/paper/table_v.yaml");
//   scenario.set("model", "7b");
//   for (const ScenarioCell& cell : scenario.cells()) ...
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/config.h"
#include "runtime/planner/planner.h"
#include "runtime/serving/request.h"
#include "runtime/serving/serving_plan.h"
#include "scenarios/grid.h"

namespace mtsim::scenarios {

/// What a serving cell yields and a paper may report.
inline constexpr std::array<std::string_view, 1> k_serving_metrics = {"tokens_s"};
inline constexpr std::string_view k_serving_metric = k_serving_metrics[0];

/// How a micro-batch that is given for some lengths becomes one for others.
enum class BatchRule : std::uint8_t {
  kv_budget,  // the same bytes of KV: b * (prompt + output) / (prompt' + output'), from eqs. (15) and (16)
  same_batch  // the same number of requests
};
std::string_view to_string(BatchRule rule);

/// Requests of a decode micro-batch, as a file says them.
struct BatchSize {
  std::int64_t requests = 1;
  std::int64_t prompt = 0, output = 0;  // the lengths it is for; 0: all
  bool carried = false;                 // B of the model's pool in the file of `batches`, dealt to these pipelines
  std::string source = "assumed";       // or fitted
  std::string from;

  /// At other lengths; at least 1.
  std::int64_t at(std::int64_t its_prompt, std::int64_t its_output, BatchRule rule) const;
};

/// A plan as a file pins it for one model, or the wish that it be searched.
struct PinnedPlan {
  bool search = false;
  runtime::ServingPlan plan;
  BatchSize batch;
  std::string source = "assumed";  // of the pools
  std::string from;

  /// With its micro-batch for these lengths.
  runtime::ServingPlan at(std::int64_t prompt, std::int64_t output, BatchRule rule) const;
};
using PinnedPlans = std::map<std::string, PinnedPlan>;  // by the model's label

enum class WorkloadKind : std::uint8_t { uniform, poisson, trace };
std::string_view to_string(WorkloadKind kind);

struct WorkloadSpec {
  WorkloadKind kind = WorkloadKind::uniform;
  std::int64_t requests = 0;  // of one pool group; 0: uniform, four batches; poisson, 200; trace, all
  std::uint64_t seed = 1;     // of poisson
  std::string trace;          // CSV
  std::int64_t first = 0;     // row of it
  double speed = 1;           // arrivals of it so much faster
};

/// Numbers of systems that are not simulated: shown, never compared.
struct ReportedRow {
  std::string system;
  std::map<std::array<std::int64_t, 2>, double> values;  // row and column value -> tokens/s; absent: it did not run
};

/// Axes: model (words), plan (words), devices or clusters, rate (words: requests/s), prompt, output.
struct ServingScenario : GridScenario {
  enum AxisIndex : std::uint8_t { k_model, k_plan, k_devices, k_rate, k_prompt, k_output, k_axes };

  std::vector<models::LlamaConfig> models;  // one a word of the axis
  std::vector<std::string> model_names;     // of configurations or files
  bool counts_clusters = false;             // the devices' axis counts clusters
  WorkloadSpec workload;
  BatchRule batch_rule = BatchRule::kv_budget;
  std::vector<BatchRule> beside;   // other rules, shown beside it
  bool search_beside = false;      // the planner's own choice as well
  std::vector<PinnedPlans> plans;  // one a word of the axis
  std::string plans_path;          // the file of the only plan where it has one: `mtsim fit` writes there
  std::string batches_path;        // of batch sizes that are carried
  runtime::Objective objective = runtime::Objective::throughput;
  runtime::ServiceLevel slo;
  bool steps = false;  // rows are the steps of an ablation: what each brings is compared too
  std::vector<ReportedRow> reported;
  std::vector<std::pair<std::string, std::string>> machine_sets;  // what-ifs of the file: key, value

  const models::LlamaConfig& config(const Point& at) const { return models[static_cast<std::size_t>(at[k_model])]; }
  const std::string& label(const Point& at) const { return axes[k_model].words[static_cast<std::size_t>(at[k_model])]; }
  const PinnedPlan& pinned(const Point& at) const { return plans[static_cast<std::size_t>(at[k_plan])].at(label(at)); }
  /// Requests a second over all clusters; 0 where none is asked.
  double rate(const Point& at) const;
  std::int64_t clusters(const Point& at, std::int64_t clusters_per_device) const {
    return at[k_devices] * (counts_clusters ? 1 : clusters_per_device);
  }

  /// As --set does: an axis, workload.KEY, batch_rule, machine, slo, objective. Throws UsageError for a wrong value;
  /// false when `key` is no key of the scenario.
  bool set(const std::string& key, const std::string& value);
  std::vector<std::string> keys() const;
  /// Only the cells of `fit`, with nothing beside.
  ServingScenario for_fit() const;
};

/// Whether a file says `kind: serving`. Throws sim::ConfigError when it cannot be read.
bool is_serving_scenario(const std::string& path);

/// Throws sim::ConfigError with every mistake, file:line:col.
ServingScenario load_serving_scenario(const std::string& path);

}  // namespace mtsim::scenarios
