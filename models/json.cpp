// SPDX-License-Identifier: Apache-2.0
#include "models/json.h"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "models/error.h"
#include "models/utf8.h"

namespace mtsim::models {

using Json = nlohmann::json;

namespace {

constexpr int k_max_depth = 64;
constexpr std::size_t k_max_message = 400;  // with the piece of text the library quotes

/// "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the library's own name for it.
std::string plain(const char* what) {
  const std::string text = what;
  const auto end = text.find("] ");
  return printable(text.starts_with("[json") && end != std::string::npos ? text.substr(end + 2) : text, k_max_message);
}

}  // namespace

Json parse_json_object(std::string_view text, const std::string& what) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > k_max_depth) throw ModelError(fmt::format("{}: is nested more than {} deep", what, k_max_depth));
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second)
      throw ModelError(fmt::format("{}: has '{}' twice; remove one", what, printable(parsed.get<std::string>())));
    return true;
  };
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    throw ModelError(fmt::format("{}: is not JSON: {}", what, plain(error.what())));
  }
  if (!json.is_object()) throw ModelError(fmt::format("{}: is not a JSON object", what));
  return json;
}

}  // namespace mtsim::models
