// SPDX-License-Identifier: Apache-2.0
#include "kernels/tile_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "isa/diagnostic.h"
#include "kernels/library.h"

namespace mtsim::kernels {

void parse_tiles(const std::string& text, std::span<const TileKey> keys) {
  if (keys.empty() && !text.empty())
    throw KernelError(fmt::format("tile '{}': this operator has no tiles; leave it out", text));
  std::vector<std::string_view> names;
  for (const TileKey& key : keys) {
    if (key.value != nullptr) names.push_back(key.name);
  }
  std::vector<bool> given(keys.size());
  std::string_view rest = text;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    rest.remove_prefix(more ? comma + 1 : rest.size());
    const std::string_view name = item.substr(0, item.find('='));
    const auto key = std::find_if(keys.begin(), keys.end(), [&](const TileKey& k) { return k.name == name; });
    if (key == keys.end()) {
      throw KernelError(fmt::format("tile '{}': unknown key '{}'; known: {}{}", text, name, fmt::join(names, ", "),
                                    isa::did_you_mean(name, names)));
    }
    if (key->value == nullptr) {
      throw KernelError(
          fmt::format("tile '{}': {} {}; known here: {}", text, name, key->why_not, fmt::join(names, ", ")));
    }
    const auto index = static_cast<std::size_t>(key - keys.begin());
    if (given[index]) throw KernelError(fmt::format("tile '{}': {} is given twice; keep one", text, name));
    given[index] = true;
    const std::string_view digits = item.substr(std::min(item.size(), name.size() + 1));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < 1 || value > INT32_MAX) {
      throw KernelError(fmt::format("tile '{}': {}='{}' must be a positive number below 2^31, e.g. {}={}", text, name,
                                    digits, name, std::max<std::int64_t>(*key->value, 1)));
    }
    *key->value = value;
  }
}

}  // namespace mtsim::kernels
