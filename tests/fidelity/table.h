// SPDX-License-Identifier: Apache-2.0
// A table of the paper as `mtsim run` simulates it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace mtsim::test {

/// "table_viii": the result of scenarios/paper/table_viii.yaml, run once a process.
const nlohmann::json& run_table(const std::string& name);

}  // namespace mtsim::test
