// SPDX-License-Identifier: Apache-2.0
#include "kernels/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <tuple>
#include <utility>

#include "isa/assembler.h"
#include "isa/diagnostic.h"
#include "kernels/embedded.h"

namespace mtsim::kernels {
namespace {

bool is_microkernel(const EmbeddedSource& source) { return !source.name.ends_with(".inc"); }

const EmbeddedSource& embedded(std::string_view name) {
  for (const EmbeddedSource& source : embedded_sources()) {
    if (source.name == name && is_microkernel(source)) return source;
  }
  const std::vector<std::string_view> known = names();
  throw KernelError(
      fmt::format("no microkernel '{}'{}; known: {}", name, isa::did_you_mean(name, known), fmt::join(known, ", ")));
}

}  // namespace

const isa::Program& program(std::string_view name, const isa::Pipeline& pipeline, const Defines& defines) {
  static std::map<std::tuple<std::string_view, std::string, Defines>, isa::Program> assembled;
  const EmbeddedSource& source = embedded(name);
  auto key = std::tuple(std::string_view(source.name), pipeline.str(), defines);
  auto found = assembled.find(key);
  if (found == assembled.end()) {
    isa::Program program = isa::assemble(source.text, std::string(source.path),
                                         {.defines = defines, .pipeline = pipeline, .include = included_source});
    found = assembled.emplace(std::move(key), std::move(program)).first;
  }
  return found->second;
}

std::string_view source(std::string_view name) { return embedded(name).text; }

std::vector<std::string_view> names() {
  std::vector<std::string_view> result;
  for (const EmbeddedSource& source : embedded_sources()) {
    if (is_microkernel(source)) result.push_back(source.name);
  }
  return result;
}

std::string included_source(const std::string& path) {
  for (const EmbeddedSource& source : embedded_sources()) {
    if (source.path == path) return std::string(source.text);
  }
  throw isa::IsaError({{isa::Severity::fatal,
                        {},
                        fmt::format("cannot include '{}': no such file", path),
                        "the path is relative to the file with the .include",
                        "include"}});
}

}  // namespace mtsim::kernels
