// SPDX-License-Identifier: Apache-2.0
// One number a model: the requests of a decode micro-batch, fitted to the paper's cells that `fit` of the scenarios
// names. Nothing else of a serving scenario can be fitted.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/serving/serving_runner.h"

namespace mtsim::scenarios {

struct BatchResidual {
  std::string scenario;  // its name
  std::string cell;      // "model=7b devices=8 prompt=512"
  double paper = 0, fitted = 0;
  double error_percent() const { return 100 * (fitted / paper - 1); }
};

struct FittedBatch {
  std::string model;                     // label
  std::int64_t start = 0, requests = 0;  // a micro-batch: the file's, and the fitted one
  std::int64_t prompt = 0, output = 0;   // of the cells
  double mape_percent = 0;
  int evaluations = 0;
  std::vector<BatchResidual> residuals;
};

struct ServingFit {
  std::string source;      // "Tables V and VI"
  std::string plans_path;  // whose numbers they are
  std::vector<FittedBatch> batches;
};

/// Of all models of the scenarios, which pin one set of plans in one file. Larger micro-batches are tried until they
/// give more tokens than the paper has or memory ends; then the least mean absolute error is sought by halving. Throws
/// UsageError for scenarios that leave nothing to fit, or cells of several lengths.
ServingFit fit_batches(const std::vector<ServingScenario>& scenarios, const sim::Machine& machine,
                       const MakeServingCosts& make_costs, bool in_workers, const std::function<void()>& on_model = {});

/// Writes value, source (fitted) and from of each micro-batch; every other byte of the file stays. Throws
/// sim::ConfigError when one is not written as a mapping with these keys.
void write_batches(const ServingFit& fit);

}  // namespace mtsim::scenarios
