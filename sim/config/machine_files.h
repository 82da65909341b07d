// SPDX-License-Identifier: Apache-2.0
// Where machine files are. Private to sim/config.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::sim {

/// "mt3000" is the name of a shipped machine; "./m.yaml", "m.yaml" and "dir/m" are paths.
bool is_machine_name(std::string_view name_or_path);

/// Where machine files are looked for, in this order: $MTSIM_MACHINES, beside the installed `executable`, the source
/// tree. An installation comes before the tree it was built from, which may have moved on.
std::vector<std::filesystem::path> machine_folders(const std::filesystem::path& executable);

/// The file of a shipped machine.
std::optional<std::filesystem::path> find_machine(std::string_view name);

/// The names find_machine() knows, sorted.
std::vector<std::string> machine_names();

/// "shipped machines: mt3000; did you mean 'mt3000'?"
std::string machine_name_suggestion(std::string_view name);

}  // namespace mtsim::sim
