// SPDX-License-Identifier: Apache-2.0
#include "sim/config/machine_files.h"

#include <cstdlib>
#include <set>
#include <system_error>

#include "isa/diagnostic.h"

namespace mtsim::sim {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_extension = ".yaml";

std::vector<fs::path> folders_of_this_process() {
  std::error_code error;
  return machine_folders(fs::read_symlink("/proc/self/exe", error));  // empty on error
}

}  // namespace

std::vector<fs::path> machine_folders(const fs::path& executable) {
  std::vector<fs::path> folders;
  if (const char* folder = std::getenv("MTSIM_MACHINES"); folder != nullptr && *folder != '\0')
    folders.emplace_back(folder);
  std::error_code error;
  const auto installed = executable.parent_path().parent_path() / "share" / "mtsim" / "machines";
  if (fs::is_directory(installed, error)) folders.push_back(installed);
  folders.emplace_back(MTSIM_SOURCE_MACHINES);
  return folders;
}

bool is_machine_name(std::string_view name_or_path) {
  const bool has_extension = name_or_path.size() >= k_extension.size() &&
                             name_or_path.substr(name_or_path.size() - k_extension.size()) == k_extension;
  return !has_extension && name_or_path.find('/') == std::string_view::npos;
}

std::optional<fs::path> find_machine(std::string_view name) {
  std::error_code error;
  for (const auto& folder : folders_of_this_process()) {
    const auto path = folder / (std::string(name) + std::string(k_extension));
    if (fs::is_regular_file(path, error)) return path;
  }
  return std::nullopt;
}

std::vector<std::string> machine_names() {
  std::set<std::string> names;
  for (const auto& folder : folders_of_this_process()) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path().extension() == k_extension) names.insert(entry->path().stem().string());
  }
  return {names.begin(), names.end()};
}

std::string machine_name_suggestion(std::string_view name) {
  const auto names = machine_names();
  std::string list;
  for (const auto& known : names) list += (list.empty() ? "" : ", ") + known;
  if (list.empty()) return "no machine is installed; set MTSIM_MACHINES to the folder of the machine files";
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  return "shipped machines: " + list + isa::did_you_mean(name, candidates);
}

}  // namespace mtsim::sim
