// SPDX-License-Identifier: Apache-2.0
#include "scenarios/scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/error.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

OperatorRequest Scenario::request(const ScenarioCell& cell, const std::vector<std::string>& variant_words) const {
  OperatorRequest request;
  request.op = op;
  const std::size_t dimensions = op->info().dimensions.size();
  request.spec = {Shape(cell.at.begin(), cell.at.begin() + static_cast<std::ptrdiff_t>(dimensions)),
                  static_cast<DType>(cell.at.back()), variant_words, tile};
  for (std::size_t a = dimensions; a < axes.size(); ++a) {
    const Axis& axis = axes[a];
    if (!axis.words.empty()) request.spec.variant.front() = axis.text(cell.at[a]);
    if (!axis.is_tile) continue;
    std::string& tiles = request.spec.tile;
    tiles += fmt::format("{}{}={}", tiles.empty() ? "" : ",", axis.name, cell.at[a]);
  }
  request.options.depth = depth;
  request.options.skip_pieces = skip_pieces;
  return request;
}

bool Scenario::sweeps_tiles() const {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.is_tile; });
}

Scenario Scenario::for_fit() const {
  Scenario scenario = *this;
  scenario.beside.reset();
  scenario.axes = restricted(std::move(scenario.axes), fit);
  return scenario;
}

}  // namespace mtsim::scenarios
