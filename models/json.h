// SPDX-License-Identifier: Apache-2.0
// JSON as strictly as a checkpoint needs it. Private to models/.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mtsim::models {

/// An object. Throws ModelError for what is no JSON, no UTF-8, no object, or has a key
/// twice (which the library would drop silently). `what` is how the message calls it: "config.json".
nlohmann::json parse_json_object(std::string_view text, const std::string& what);

}  // namespace mtsim::models
