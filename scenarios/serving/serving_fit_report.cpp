// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "scenarios/serving/serving_report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

Json serving_fit_json(const ServingFit& fit) {
  Json json = {{"fit", "batches"},           {"title", fit.source},     {"kind", "serving"},
               {"metric", k_serving_metric}, {"plans", fit.plans_path}, {"batches", Json::object()}};
  for (const FittedBatch& batch : fit.batches) {
    Json residuals = Json::array();
    for (const BatchResidual& r : batch.residuals) {
      residuals.push_back({{"scenario", r.scenario},
                           {"case", r.cell},
                           {"paper", r.paper},
                           {"fitted", r.fitted},
                           {"error_percent", r.error_percent()}});
    }
    json["batches"][batch.model] = {{"value", batch.requests},
                                    {"unit", "requests a decode micro-batch"},
                                    {"prompt", batch.prompt},
                                    {"output", batch.output},
                                    {"mape_percent", batch.mape_percent},
                                    {"evaluations", batch.evaluations},
                                    {"residuals", std::move(residuals)}};
  }
  return json;
}

std::string serving_fit_text(const ServingFit& fit) {
  Table table({Align::left, Align::right, Align::right, Align::right, Align::right},
              {"model", "before", "fitted", "error %", "evaluations"});
  Table cells({Align::left, Align::left, Align::right, Align::right, Align::right},
              {"scenario", "cell", "paper", "fitted", "error %"});
  for (const FittedBatch& batch : fit.batches) {
    table.add({batch.model, std::to_string(batch.start), std::to_string(batch.requests),
               fmt::format("{:.2f}", batch.mape_percent), std::to_string(batch.evaluations)});
    for (const BatchResidual& r : batch.residuals) {
      cells.add({r.scenario, r.cell, fmt::format("{:g}", r.paper), fmt::format("{:.1f}", r.fitted),
                 fmt::format("{:+.1f}", r.error_percent())});
    }
  }
  return fmt::format("requests of a decode micro-batch, fitted to {}\n\n{}\n{}", fit.source, table.text(2),
                     cells.text(2));
}

}  // namespace mtsim::scenarios
