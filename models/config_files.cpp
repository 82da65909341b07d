// SPDX-License-Identifier: Apache-2.0
// Where configurations are.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "models/config.h"
#include "models/error.h"
#include "models/gguf.h"
#include "models/llama2c.h"
#include "models/mapped_file.h"

namespace mtsim::models {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_max_config_bytes = 1 << 20;

/// $MTSIM_MODELS, beside the installed program, the source tree, in this order.
std::vector<fs::path> config_folders() {
  std::vector<fs::path> folders;
  if (const char* folder = std::getenv("MTSIM_MODELS"); folder != nullptr && *folder != '\0')
    folders.emplace_back(folder);
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  const auto installed = executable.parent_path().parent_path() / "share" / "mtsim" / "models";
  if (fs::is_directory(installed, error)) folders.push_back(installed);
  folders.emplace_back(MTSIM_SOURCE_MODEL_CONFIGS);
  return folders;
}

std::optional<fs::path> find_config(const std::string& name) {
  std::error_code error;
  for (const auto& folder : config_folders()) {
    const auto path = folder / name / "config.json";
    if (fs::is_regular_file(path, error)) return path;
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> config_names() {
  std::set<std::string> names;
  for (const auto& folder : config_folders()) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (fs::is_regular_file(entry->path() / "config.json", error)) names.insert(entry->path().filename().string());
  }
  return {names.begin(), names.end()};
}

LlamaConfig load_config(const std::string& name_or_path) {
  std::error_code error;
  fs::path path = name_or_path;
  const bool is_name = !name_or_path.empty() && name_or_path.find('/') == std::string::npos && name_or_path != "." &&
                       name_or_path != "..";
  if (!fs::exists(path, error)) {
    const auto found = is_name ? find_config(name_or_path) : std::nullopt;
    if (!found)
      throw ModelError(fmt::format("'{}' is neither a file, a folder nor a known model; known models: {}", name_or_path,
                                   fmt::join(config_names(), ", ")));
    path = *found;
  }
  if (fs::is_directory(path, error)) path /= "config.json";
  const MappedFile file(path.string());
  LlamaConfig config;
  if (path.extension() == ".gguf") {
    config = config_of(GgufFile(file.text(), path.string()));
  } else if (path.extension() == ".bin") {
    config = parse_llama2c_header(file.text().substr(0, k_llama2c_header_bytes), path.string());
  } else {
    if (file.size() > k_max_config_bytes)
      throw ModelError(fmt::format("{}: has {} bytes; a config.json is small", path.string(), file.size()));
    config = parse_hugging_face_config(file.text(), path.string());
  }
  const bool is_in_folder = path.filename() == "config.json";
  const fs::path full = fs::weakly_canonical(path, error);
  config.name = is_in_folder ? full.parent_path().filename().string() : path.stem().string();
  return config;
}

}  // namespace mtsim::models
