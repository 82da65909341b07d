// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "support.h"

using namespace mtsim::isa;

TEST_CASE("closest finds a typo and nothing farther away", "[isa][diagnostic]") {
  constexpr std::array<std::string_view, 4> k_names = {"VFMULAS32", "VLDW", "SADD", "SADDA"};
  CHECK(closest("VFMULAS23", k_names) == "VFMULAS32");
  CHECK(closest("vldww", k_names) == "VLDW");
  CHECK(closest("SADDB", k_names) == "SADD");
  CHECK(closest("XYZ", k_names).empty());
  CHECK(closest("", k_names).empty());
  CHECK(closest(std::string(500, 'V'), k_names).empty());
  CHECK(did_you_mean("VLDQ", k_names) == "; did you mean 'VLDW'?");
  CHECK(did_you_mean("frobnicate", k_names).empty());
}

TEST_CASE("a place leaves out what is unknown", "[isa][diagnostic]") {
  CHECK(Place{"k.s", 12, 7}.str() == "k.s:12:7");
  CHECK(Place{"k.s", 12, 0}.str() == "k.s:12");
  CHECK(Place{"k.s", 0, 7}.str() == "k.s");
  CHECK(Place{}.str().empty());
}

TEST_CASE("a diagnostic reads as place, severity, message, suggestion", "[isa][diagnostic]") {
  const Diagnostic diagnostic{Severity::warning, {"k.s", 3, 1}, "what", "what to do", "code"};
  CHECK(diagnostic.str() == "k.s:3:1: warning: what; what to do");
  CHECK(Diagnostic{Severity::fatal, {"k.s"}, "what"}.str() == "k.s: error: what");
  CHECK(std::string(to_string(Severity::note)) == "note");
  CHECK(std::string(to_string(Severity::fatal)) == "fatal");
}

TEST_CASE("an IsaError prints every finding on its own line", "[isa][diagnostic]") {
  const IsaError error({{Severity::fatal, {"a"}, "one"}, {Severity::fatal, {"b"}, "two"}});
  CHECK(std::string(error.what()) == "a: error: one\nb: error: two");
  CHECK(error.diagnostics().size() == 2);
}
