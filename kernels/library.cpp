// SPDX-License-Identifier: Apache-2.0
#include "kernels/library.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

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
  struct Assembled {
    isa::Pipeline pipeline;
    Defines defines;
    std::unique_ptr<isa::Program> program;
  };
  static std::map<std::string_view, std::vector<Assembled>> by_name;
  const auto known = by_name.find(name);
  if (known != by_name.end()) {
    for (const Assembled& one : known->second) {
      if (one.defines == defines && one.pipeline == pipeline) return *one.program;
    }
  }
  const EmbeddedSource& source = embedded(name);
  auto program = std::make_unique<isa::Program>(isa::assemble(
      source.text, std::string(source.path), {.defines = defines, .pipeline = pipeline, .include = included_source}));
  program->keep();
  return *by_name[source.name].emplace_back(Assembled{pipeline, defines, std::move(program)}).program;
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
