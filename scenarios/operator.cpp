// SPDX-License-Identifier: Apache-2.0
#include "scenarios/operator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <stdexcept>

#include "isa/diagnostic.h"
#include "scenarios/error.h"
#include "scenarios/operators.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

sim::DspProgram OperatorCase::launch_program(std::int64_t index) const {
  throw std::logic_error(fmt::format("an operator of one launch has no launch {}", index));
}

void OperatorCase::limit(std::int64_t pieces) {
  if (pieces != 1) throw std::logic_error(fmt::format("an operator of one piece has no {}", pieces));
}

std::span<const Operator* const> operators() {
  static const std::vector<const Operator*> all = [] {
    std::vector<const Operator*> list = {&attention_operator(),   &add_operator(),     &bias_operator(),
                                         &convert_operator(),     &gather_operator(),  &gemm_operator(),
                                         &linear_rope_operator(), &rmsnorm_operator(), &rope_operator(),
                                         &silu_mul_operator(),    &softmax_operator(), &transpose_operator()};
    std::sort(list.begin(), list.end(),
              [](const Operator* a, const Operator* b) { return a->info().name < b->info().name; });
    return list;
  }();
  return all;
}

const Operator* find_operator(std::string_view name) {
  for (const Operator* op : operators()) {
    if (op->info().name == name) return op;
  }
  return nullptr;
}

const Operator& require_operator(std::string_view name) {
  if (const Operator* op = find_operator(name)) return *op;
  std::vector<std::string_view> names;
  for (const Operator* op : operators()) names.push_back(op->info().name);
  throw UsageError(
      fmt::format("unknown operator '{}'{}; known: {}", name, isa::did_you_mean(name, names), fmt::join(names, ", ")));
}

DType parse_dtype(const Operator& op, const std::string& word) {
  const OperatorInfo& info = op.info();
  const auto dtype = kernels::parse_dtype(word);
  if (dtype && std::find(info.dtypes.begin(), info.dtypes.end(), *dtype) != info.dtypes.end()) return *dtype;
  std::vector<std::string_view> known;
  for (const DType d : info.dtypes) known.push_back(to_string(d));
  if (dtype)
    throw UsageError(fmt::format("{}: there is no dtype {}; use {}", info.name, word, fmt::join(known, " or ")));
  throw UsageError(fmt::format("{}: unknown dtype '{}'; use {}", info.name, word, fmt::join(known, " or ")));
}

std::vector<std::string> parse_variant(const Operator& op, const std::string& words) {
  const OperatorInfo& info = op.info();
  std::vector<std::string> chosen;
  std::vector<std::string> given(info.variants.size());
  std::vector<std::string> groups;      // "best or paper"
  std::vector<std::string_view> known;  // every word
  for (const VariantGroup& group : info.variants) {
    chosen.emplace_back(group.words.front());
    known.insert(known.end(), group.words.begin(), group.words.end());
    groups.push_back(
        group.words.size() == 1
            ? std::string(group.words.front())
            : fmt::format("{} or {}", fmt::join(group.words.begin(), group.words.end() - 1, ", "), group.words.back()));
  }
  if (words.empty()) return chosen;
  for (std::size_t at = 0; at <= words.size();) {
    const std::size_t comma = std::min(words.find(',', at), words.size());
    const std::string word = words.substr(at, comma - at);
    at = comma + 1;
    if (groups.empty()) throw UsageError(fmt::format("unknown variant '{}': {} has no variants", word, info.name));
    const auto group = std::find_if(info.variants.begin(), info.variants.end(), [&word](const VariantGroup& g) {
      return std::find(g.words.begin(), g.words.end(), word) != g.words.end();
    });
    if (group == info.variants.end()) {
      throw UsageError(fmt::format("unknown variant '{}' of {}{}; known: {}", word, info.name,
                                   isa::did_you_mean(word, known), fmt::join(groups, ", and ")));
    }
    const auto index = static_cast<std::size_t>(group - info.variants.begin());
    if (!given[index].empty()) {
      throw UsageError(
          fmt::format("variant '{}': '{}' and '{}' exclude each other; keep one", words, given[index], word));
    }
    chosen[index] = given[index] = word;
  }
  return chosen;
}

std::string shape_text(const Operator& op, const Shape& shape) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) continue;  // as its help says
    words.push_back(fmt::format("{}={}", op.info().dimensions[i].name, shape[i]));
  }
  return joined(words, " ");
}

}  // namespace mtsim::scenarios
