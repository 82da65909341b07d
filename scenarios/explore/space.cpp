// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "isa/diagnostic.h"
#include "isa/hash.h"
#include "scenarios/error.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

Restrictions parse_only(const std::vector<std::string>& texts, std::span<const SpaceDimension> dimensions) {
  Restrictions only;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto dimension =
        std::find_if(dimensions.begin(), dimensions.end(), [&](const SpaceDimension& d) { return d.name == name; });
    if (dimension == dimensions.end()) {
      std::vector<std::string_view> names;
      for (const SpaceDimension& d : dimensions) names.push_back(d.name);
      throw UsageError(fmt::format("--only {}: no such dimension; known: {}{}", text, fmt::join(names, ", "),
                                   isa::did_you_mean(name, names)));
    }
    const std::string values = equals == std::string::npos ? "" : text.substr(equals + 1);
    const std::int64_t least = dimension->may_be_zero() ? 0 : 1;
    for (std::size_t at = 0; at <= values.size();) {
      const std::size_t end = std::min(values.find(':', at), values.size());
      std::int64_t value = 0;
      const auto [stop, error] = std::from_chars(values.data() + at, values.data() + end, value);
      if (error != std::errc{} || stop != values.data() + end || value < least || value > INT32_MAX) {
        throw UsageError(fmt::format("--only {}: '{}' is no number from {} to 2^31-1; write --only {}=128:256", text,
                                     values.substr(at, end - at), least, name));
      }
      only[name].push_back(value);
      at = end + 1;
    }
  }
  return only;
}

std::string Query::variant(const Candidate& point) const {
  std::string all(kinds()[point.kind].variant);
  for (const std::string& word : words) all += "," + word;
  return all;
}

std::string Query::tile(const Candidate& point) const {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < point.values.size(); ++d) {
    if (point.values[d] > 0) parts.push_back(fmt::format("{}={}", dimensions()[d].name, point.values[d]));
  }
  if (const std::string common = common_tile(); !common.empty()) parts.push_back(common);
  return joined(parts, ",");
}

OperatorRequest Query::request(const Candidate& point) const {
  OperatorRequest request;
  request.op = &op;
  request.spec = {shape, dtype, parse_variant(op, variant(point)), tile(point)};
  request.options.skip_pieces = skip_pieces;
  return request;
}

std::string Query::command(const Candidate& point) const {
  std::string text = fmt::format("mtsim op {}", op.info().name);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const Dimension& dimension = op.info().dimensions[d];
    if (dimension.value == shape[d]) continue;
    std::string name(dimension.name);
    std::replace(name.begin(), name.end(), '_', '-');
    text += fmt::format(" --{} {}", name, shape[d]);
  }
  text += fmt::format(" --dtype {} --variant {}", to_string(dtype), variant(point));
  if (const std::string sizes = tile(point); !sizes.empty()) text += " --tile " + sizes;
  return text + (skip_pieces ? " --skip-pieces" : "");
}

std::string Query::cell(std::size_t dimension, std::int64_t value) const {
  return value > 0 ? std::to_string(value) : std::string(dimensions()[dimension].zero);
}

std::vector<std::string> Query::cells(const Candidate& point) const {
  std::vector<std::string> all{std::string(kinds()[point.kind].cell)};
  for (std::size_t d = 0; d < dimensions().size(); ++d) all.push_back(cell(d, point.values[d]));
  return all;
}

std::vector<std::string> Query::columns() const {
  std::vector<std::string> all{std::string(kind_column())};
  for (const SpaceDimension& dimension : dimensions()) all.emplace_back(dimension.column);
  return all;
}

Json Query::about() const {
  return {{"explore", op.info().name},
          {"shape", shape},
          {"dtype", to_string(dtype)},
          {"words", words},
          {"kinds", kinds_explored},
          {"common_tile", common_tile()},
          {"only", only},
          {"skip_pieces", skip_pieces}};
}

void Query::explore_kinds(const std::string& text, const std::string& option, std::size_t usual) {
  if (text.empty()) {
    for (std::size_t kind = 0; kind < usual; ++kind) kinds_explored.push_back(kind);
    return;
  }
  std::vector<std::string_view> known;
  for (std::size_t kind = 0; kind < usual; ++kind) known.push_back(kinds()[kind].variant);
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word = std::string_view(text).substr(at, end - at);
    const auto found = std::find(known.begin(), known.end(), word);
    if (found == known.end())
      throw UsageError(fmt::format("{} {}: no such {}; known: {}{}", option, word, option.substr(2),
                                   fmt::join(known, ", "), isa::did_you_mean(word, known)));
    kinds_explored.push_back(static_cast<std::size_t>(found - known.begin()));
    at = end + 1;
  }
  std::sort(kinds_explored.begin(), kinds_explored.end());
  kinds_explored.erase(std::unique(kinds_explored.begin(), kinds_explored.end()), kinds_explored.end());
}

bool Query::explores(std::size_t kind) const {
  return std::find(kinds_explored.begin(), kinds_explored.end(), kind) != kinds_explored.end();
}

void sort_unique(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<std::int64_t> multiples_up_to(std::int64_t most) {
  constexpr std::int64_t k_fine = 4;  // one by one up to here
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1, step = 1; value <= most; value += step) {
    values.push_back(value);
    if (value >= k_fine * step) step *= 2;
  }
  return values;
}

std::vector<std::int64_t> values_beside(std::vector<std::int64_t> grid, std::int64_t now) {
  sort_unique(grid);
  std::vector<std::int64_t> beside;
  if (const auto below = std::lower_bound(grid.begin(), grid.end(), now); below != grid.begin())
    beside.push_back(*(below - 1));
  if (const auto above = std::upper_bound(grid.begin(), grid.end(), now); above != grid.end()) beside.push_back(*above);
  return beside;
}

std::vector<std::int64_t> allowed(const Restrictions& only, std::string_view dimension,
                                  std::vector<std::int64_t> grid) {
  if (const auto values = only.find(dimension); values != only.end()) grid = values->second;
  sort_unique(grid);
  return grid;
}

}  // namespace mtsim::scenarios
