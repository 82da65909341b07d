// SPDX-License-Identifier: Apache-2.0
// Plans of pools in YAML: what a serving scenario pins, what `mtsim plan` writes and `mtsim generate --plan` takes.
//
//   7b:
//     prefill: {dp: 2, pp: 1}
//     buffer: {clusters: 2}
//     decode: {tp: 2, pp: 2, micro_batch: {value: 46, prompt: 512, output: 128, source: fitted, from: "..."}}
//     source: assumed
//     from: "..."
#pragma once

#include <string>

#include "scenarios/serving/serving_scenario.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

/// One plan. Mistakes are complaints at their nodes.
PinnedPlan read_pinned_plan(const sim::YamlNode& node);

/// A mapping of models' labels to plans.
PinnedPlans read_pinned_plans(const sim::YamlNode& node);

/// A file with nothing but `plans:` as above.
PinnedPlans load_pinned_plans(const std::string& path);

/// --plan of `mtsim generate`: "a2,tp=2,pp=2", or a serving scenario (a .yaml file) with one plan, whose decode pool
/// says tp and pp. Throws UsageError, sim::ConfigError, runtime::RuntimeError.
runtime::InferencePlan inference_plan(const std::string& text);

/// "{mode: bounded, execution: a2, prefill: {...}, ...}" over lines with so many blanks in front, as it is read.
std::string plan_yaml(const PinnedPlan& plan, int indent);

}  // namespace mtsim::scenarios
