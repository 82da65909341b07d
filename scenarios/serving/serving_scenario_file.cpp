// SPDX-License-Identifier: Apache-2.0
// Reads serving scenarios and --set; serving_scenario.cpp says what one is.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "isa/diagnostic.h"
#include "models/error.h"
#include "scenarios/files.h"
#include "scenarios/grid_file.h"
#include "scenarios/serving/plan_file.h"
#include "scenarios/serving/serving_scenario.h"
#include "sim/config/scalar.h"

namespace mtsim::scenarios {
namespace {

using sim::YamlNode;

constexpr std::string_view k_pinned = "pinned";  // the only plan of a scenario that names none

std::optional<std::int64_t> read_value(const YamlNode& node, const Axis& axis) {
  if (!axis.words.empty()) return read_axis_word(node, axis);
  const std::int64_t value = node.as_integer();
  if (value < 1) node.complain(fmt::format("{} is no number of {}", value, axis.name), "at least 1");
  return value;
}

GridReader reader_of(GridScenario& scenario) { return {scenario, read_value}; }

/// Every value of an axis of words.
void take_all(Axis& axis) {
  axis.values.clear();
  for (std::size_t i = 0; i < axis.words.size(); ++i) axis.values.push_back(static_cast<std::int64_t>(i));
}

void read_models(const YamlNode& root, ServingScenario& scenario) {
  const YamlNode node = root.require("models");
  if (node.is_null()) return;
  for (const std::string& label : node.keys()) {
    const YamlNode model = *node.find(label);
    std::string name = model.as_string();
    if (name.find('/') != std::string::npos) name = relative_to(scenario.path, name);
    scenario.model_names.push_back(name);
    try {
      scenario.models.push_back(models::load_config(name));
    } catch (const models::ModelError& error) {
      model.complain(error.what());
      scenario.models.emplace_back();
    }
    scenario.axes[ServingScenario::k_model].words.push_back(label);
  }
  if (node.is_mapping() && node.size() == 0) node.complain("no model", "give at least one, as LABEL: NAME");
}

/// Why a cluster group cannot hold its share of every matrix; "" when it can.
std::string tp_problem(const models::LlamaConfig& config, const runtime::ServingPlan& plan) {
  for (const std::int64_t tp : {plan.prefill.tp, plan.decode.tp}) {
    const std::pair<const char*, std::int64_t> parts[] = {{"heads", config.heads},
                                                          {"KV heads", config.kv_heads},
                                                          {"feed-forward columns", config.intermediate_size},
                                                          {"tokens of the vocabulary", config.vocab_size}};
    for (const auto& [what, count] : parts) {
      if (count % tp != 0) return fmt::format("TP {} does not divide the {} {} of {}", tp, count, what, config.name);
    }
    const std::int64_t stages = std::max(plan.prefill.pp, plan.decode.pp);
    if (stages > config.layers)
      return fmt::format("{} stages for the {} layers of {}", stages, config.layers, config.name);
  }
  return "";
}

PinnedPlans search_all(const ServingScenario& scenario) {
  PinnedPlans plans;
  for (const std::string& label : scenario.axes[ServingScenario::k_model].words) plans[label].search = true;
  return plans;
}

PinnedPlans load_plans(const YamlNode& node, const std::string& path) {
  try {
    return load_pinned_plans(path);
  } catch (const sim::ConfigError& error) {
    node.complain(error.what());
    return {};
  }
}

/// `search`, a file, or a mapping of labels.
PinnedPlans read_plan_set(const YamlNode& node, ServingScenario& scenario) {
  PinnedPlans plans;
  const auto& labels = scenario.axes[ServingScenario::k_model].words;
  if (node.is_scalar()) {
    const std::string word = node.as_string();
    if (word == "search") return search_all(scenario);
    scenario.plans_path = relative_to(scenario.path, word);
    plans = load_plans(node, scenario.plans_path);
  } else {
    plans = read_pinned_plans(node);
    for (const auto& [label, plan] : plans) {
      if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
        const std::vector<std::string_view> known(labels.begin(), labels.end());
        node.complain_about_key(label, fmt::format("a plan for '{}', which is no model of this scenario", label),
                                fmt::format("models: {}{}", fmt::join(labels, ", "), isa::did_you_mean(label, known)));
      }
    }
  }
  for (std::size_t m = 0; m < labels.size(); ++m) {
    const auto plan = plans.find(labels[m]);
    if (plan == plans.end()) {
      node.complain(fmt::format("no plan for {}", labels[m]), "pin one, or give it 'search'");
    } else if (const std::string problem = tp_problem(scenario.models[m], plan->second.plan); !problem.empty()) {
      const std::string message = fmt::format("{}: {}", labels[m], problem);
      if (node.is_mapping())
        node.complain_about_key(labels[m], message);
      else
        node.complain(message);
    }
  }
  return plans;
}

void read_plans(const YamlNode& root, ServingScenario& scenario) {
  const YamlNode node = root.require("plans");
  if (node.is_null()) return;
  Axis& axis = scenario.axes[ServingScenario::k_plan];
  const auto& labels = scenario.axes[ServingScenario::k_model].words;
  const auto is_label = [&](const std::string& key) {
    return std::find(labels.begin(), labels.end(), key) != labels.end();
  };
  const std::vector<std::string> keys = node.is_mapping() ? node.keys() : std::vector<std::string>{};
  if (!node.is_mapping() || std::any_of(keys.begin(), keys.end(), is_label)) {
    axis.words = {std::string(k_pinned)};
    scenario.plans.push_back(read_plan_set(node, scenario));
    return;
  }
  for (const std::string& key : keys) {
    axis.words.push_back(key);
    scenario.plans.push_back(read_plan_set(*node.find(key), scenario));
  }
}

/// Batch sizes of plans that say `carried`: B of the model's pool in the file, dealt to the pipelines of this one.
void carry_batches(const YamlNode& root, ServingScenario& scenario) {
  const auto node = root.find("batches");
  PinnedPlans from;
  if (node) {
    scenario.batches_path = relative_to(scenario.path, node->as_string());
    from = load_plans(*node, scenario.batches_path);
  }
  for (std::size_t p = 0; p < scenario.plans.size(); ++p) {
    for (auto& [label, pinned] : scenario.plans[p]) {
      if (!pinned.batch.carried) continue;
      const auto pool = from.find(label);
      if (pool == from.end()) {
        root.complain(fmt::format("plan {} of {} has a carried micro-batch, and {}",
                                  scenario.axes[ServingScenario::k_plan].words[p], label,
                                  node ? fmt::format("{} has no plan of {}", scenario.batches_path, label)
                                       : "there is no 'batches'"),
                      "name a file of plans with 'batches: FILE'");
        continue;
      }
      const BatchSize& its = pool->second.batch;
      const std::int64_t requests = its.requests * pool->second.plan.decode.pp * pool->second.plan.decode.dp;
      const auto pipelines = static_cast<double>(pinned.plan.decode.pp * pinned.plan.decode.dp);
      pinned.batch = its;
      pinned.batch.requests = std::max<std::int64_t>(1, std::lround(static_cast<double>(requests) / pipelines));
      pinned.batch.from = fmt::format("the {} requests of the pool in {}", requests, scenario.batches_path);
    }
  }
}

/// The texts of the rates, each a number above 0.
void read_rates(const YamlNode& grid, Axis& axis) {
  const auto node = grid.find("rate");
  if (!node) return;
  const std::size_t count = node->is_sequence() ? node->size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const YamlNode rate = node->is_sequence() ? node->at(i) : *node;
    if (!(rate.as_number() > 0))
      rate.complain(fmt::format("a rate of '{}'", rate.as_string()), "requests a second, above 0");
    axis.words.push_back(rate.as_string());
  }
  take_all(axis);
}

void read_grid(const YamlNode& root, ServingScenario& scenario, GridReader& reader) {
  const YamlNode grid = root.require("grid");
  if (grid.is_null()) return;
  scenario.grid_place = grid.place();
  for (const auto word_axis : {ServingScenario::k_model, ServingScenario::k_plan}) {
    Axis& axis = scenario.axes[word_axis];
    take_all(axis);
    if (const auto node = grid.find(axis.name)) axis.values = reader.values(*node, axis);
  }
  const auto clusters = grid.find("clusters");
  scenario.counts_clusters = clusters.has_value();
  Axis& devices = scenario.axes[ServingScenario::k_devices];
  if (clusters) {
    devices.name = "clusters";
    if (grid.find("devices")) grid.complain_about_key("devices", "both devices and clusters", "give one of them");
  }
  if (const YamlNode node = grid.require(devices.name); !node.is_null()) devices.values = reader.values(node, devices);
  read_rates(grid, scenario.axes[ServingScenario::k_rate]);
  for (const auto length : {ServingScenario::k_prompt, ServingScenario::k_output}) {
    Axis& axis = scenario.axes[length];
    if (scenario.workload.kind == WorkloadKind::trace) {
      if (grid.find(axis.name)) grid.complain_about_key(axis.name, fmt::format("a trace has its own {}s", axis.name));
    } else if (const YamlNode node = grid.require(axis.name); !node.is_null()) {
      axis.values = reader.values(node, axis);
    }
  }
  if (scenario.workload.kind == WorkloadKind::poisson && scenario.axes[ServingScenario::k_rate].words.empty())
    grid.complain("Poisson arrivals have a rate", "give rate: requests a second over all clusters");
  if (scenario.workload.kind != WorkloadKind::poisson && !scenario.axes[ServingScenario::k_rate].words.empty())
    grid.complain_about_key("rate", fmt::format("a {} workload has no rate", to_string(scenario.workload.kind)));
  reader.layout(root, [&](const Axis&) { return grid; });
}

WorkloadKind parse_kind(const std::string& word) {
  for (const auto kind : {WorkloadKind::uniform, WorkloadKind::poisson, WorkloadKind::trace}) {
    if (word == to_string(kind)) return kind;
  }
  throw UsageError(fmt::format("a workload is uniform, poisson or trace, not '{}'", word));
}
BatchRule parse_rule(const std::string& word) {
  for (const auto rule : {BatchRule::kv_budget, BatchRule::same_batch}) {
    if (word == to_string(rule)) return rule;
  }
  throw UsageError(fmt::format("a batch rule is kv_budget or same_batch, not '{}'", word));
}

/// One key of `workload`, from the file or --set. False when there is no such key.
bool set_workload(WorkloadSpec& workload, const std::string& key, const YamlNode& node, const std::string& from) {
  const auto count = [&](std::int64_t least, auto& value) {
    const std::int64_t number = node.as_integer();
    if (number < least) node.complain(fmt::format("{} {}", number, key), fmt::format("at least {}", least));
    value = static_cast<std::decay_t<decltype(value)>>(std::max(number, least));
  };
  if (key == "kind") {
    read_word(node, [&](const std::string& word) { workload.kind = parse_kind(word); });
  } else if (key == "requests") {
    count(1, workload.requests);
  } else if (key == "seed") {
    count(0, workload.seed);
  } else if (key == "first") {
    count(0, workload.first);
  } else if (key == "trace") {
    workload.trace = from.empty() ? node.as_string() : relative_to(from, node.as_string());
  } else if (key == "speed") {
    workload.speed = node.as_number();
    if (!(workload.speed > 0)) node.complain(fmt::format("a speed of {:g}", workload.speed), "above 0");
  } else {
    return false;
  }
  return true;
}

constexpr std::array<std::string_view, 6> k_workload_keys = {"kind", "requests", "seed", "trace", "first", "speed"};

void read_workload(const YamlNode& root, ServingScenario& scenario) {
  const auto node = root.find("workload");
  if (!node) return;
  for (const std::string_view key : k_workload_keys) {
    if (const auto value = node->find(key)) set_workload(scenario.workload, std::string(key), *value, scenario.path);
  }
  if (scenario.workload.kind == WorkloadKind::trace) {
    node->require("trace");
  } else if (!scenario.workload.trace.empty()) {
    node->complain(fmt::format("a {} workload with a trace", to_string(scenario.workload.kind)), "kind: trace");
  }
}

void read_beside(const YamlNode& node, ServingScenario& scenario) {
  const std::size_t count = node.is_sequence() ? node.size() : 1;
  for (std::size_t i = 0; i < count; ++i) {
    const YamlNode word = node.is_sequence() ? node.at(i) : node;
    if (word.is_scalar() && word.as_string() == "search") {
      scenario.search_beside = true;
    } else {
      read_word(word, [&](const std::string& text) { scenario.beside.push_back(parse_rule(text)); });
    }
  }
}

/// Systems that others measured: a list of {system: NAME, tokens_s: {ROW: [a number or null a column]}}.
void read_reported(const YamlNode& root, ServingScenario& scenario) {
  const auto node = root.find("reported");
  if (!node) return;
  for (std::size_t i = 0; i < node->size(); ++i) {
    const YamlNode entry = node->at(i);
    ServingScenario numbers = scenario;  // the same layout, to read the same tables
    numbers.tables.reset();
    numbers.paper.clear();
    ReportedRow row;
    row.system = entry.require("system").as_string();
    reader_of(numbers).numbers(entry, k_serving_metrics, true);
    for (const auto& [at, value] : numbers.paper[std::string(k_serving_metric)]) row.values[{at[1], at[2]}] = value;
    scenario.reported.push_back(std::move(row));
  }
}

void read_objective(const YamlNode& root, ServingScenario& scenario) {
  read_word(root, "objective", [&](const std::string& word) { scenario.objective = runtime::parse_objective(word); });
  read_word(root, "slo", [&](const std::string& text) { scenario.slo = runtime::ServiceLevel::parse(text); });
  if (scenario.objective == runtime::Objective::goodput && !scenario.slo.is_bound())
    root.complain("goodput without an SLO", "give slo: ttft=SECONDS,tpot=SECONDS");
}

/// `set: {ddr.bandwidth_gb_s: 60}`: a what-if of the machine.
void read_machine_sets(const YamlNode& root, ServingScenario& scenario) {
  const auto node = root.find("set");
  if (!node) return;
  for (const std::string& key : node->keys()) {
    scenario.machine_sets.emplace_back(key, node->find(key)->as_string());
    try {
      if (!scenario.machine.empty()) sim::Machine::load(scenario.machine).set(key, scenario.machine_sets.back().second);
    } catch (const sim::ConfigError& error) {
      node->complain_about_key(key, error.what());
    }
  }
}

}  // namespace

std::vector<std::string> ServingScenario::keys() const {
  std::vector<std::string> keys;
  for (const Axis& axis : axes) keys.push_back(axis.name);
  for (const std::string_view key : k_workload_keys) keys.push_back(fmt::format("workload.{}", key));
  for (const char* key : {"batch_rule", "beside", "objective", "slo", "machine"}) keys.emplace_back(key);
  return keys;
}

bool ServingScenario::set(const std::string& key, const std::string& value) {
  if (key == axes[k_rate].name && axes[k_rate].words.empty())
    throw UsageError(fmt::format("--set rate={}: the workload has no rate", value));
  if (key == axes[k_rate].name) {  // any rate, not only those of the file
    const auto document = sim::YamlDocument::parse("rate: " + value, "--set rate");
    axes[k_rate].words.clear();
    read_rates(document.root(), axes[k_rate]);
    document.finish();
    return true;
  }
  if (reader_of(*this).set_axis(key, value)) return true;
  const auto document = sim::YamlDocument::parse(value, "--set " + key);
  constexpr std::string_view k_workload = "workload.";
  if (key.starts_with(k_workload)) {
    if (!set_workload(workload, key.substr(k_workload.size()), document.root(), "")) return false;
    document.finish();
    return true;
  }
  if (key == "batch_rule") {
    batch_rule = parse_rule(value);
  } else if (key == "beside") {
    beside.clear();
    search_beside = false;
    if (value != "none") read_beside(document.root(), *this);
    document.finish();
  } else if (key == "objective") {
    objective = runtime::parse_objective(value);
  } else if (key == "slo") {
    slo = runtime::ServiceLevel::parse(value);
  } else if (key == "machine") {
    machine = value;
  } else {
    return false;
  }
  return true;
}

bool is_serving_scenario(const std::string& path) {
  const auto document = sim::YamlDocument::load(path);
  if (!document.root().is_mapping()) return false;
  const auto kind = document.root().find("kind");
  return kind && kind->is_scalar();
}

ServingScenario load_serving_scenario(const std::string& path) {
  const auto document = sim::YamlDocument::load(path);
  const YamlNode root = document.root();
  ServingScenario scenario;
  for (const char* name : {"model", "plan", "devices", "rate", "prompt", "output"}) scenario.axes.push_back({name, {}});
  for (const auto optional : {ServingScenario::k_rate, ServingScenario::k_prompt, ServingScenario::k_output})
    scenario.axes[optional].values = {0};
  scenario.rows = ServingScenario::k_model;
  scenario.columns = ServingScenario::k_devices;
  if (!read_head(root, path, scenario)) document.finish();
  if (const YamlNode kind = root.require("kind"); !kind.is_null() && kind.as_string() != "serving")
    kind.complain(fmt::format("unknown kind '{}'", kind.as_string()), "serving; a scenario of an operator has no kind");
  GridReader reader = reader_of(scenario);
  read_machine_sets(root, scenario);
  read_models(root, scenario);
  read_workload(root, scenario);
  read_plans(root, scenario);
  carry_batches(root, scenario);
  read_grid(root, scenario, reader);
  read_word(root, "batch_rule", [&](const std::string& word) { scenario.batch_rule = parse_rule(word); });
  if (const auto beside = root.find("beside")) read_beside(*beside, scenario);
  read_objective(root, scenario);
  if (const auto paper = root.find("paper")) reader.paper(*paper, k_serving_metrics);
  if (const auto steps = root.find("steps")) scenario.steps = steps->as_boolean();
  read_reported(root, scenario);
  reader.notes(root);
  if (const auto fit = root.find("fit")) scenario.fit = reader.filter(*fit);
  document.finish();
  return scenario;
}

}  // namespace mtsim::scenarios
