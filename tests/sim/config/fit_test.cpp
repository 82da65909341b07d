// SPDX-License-Identifier: Apache-2.0
// write_fitted: one number of a machine file changes and every other byte stays.
#include <catch2/catch.hpp>
#include <sstream>

#include "sim/config/machine.h"
#include "tests/sim/config/support.h"

using namespace mtsim::sim;
using namespace mtsim::sim::test;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A what-if after a fit of its ddr.bandwidth_gb_s.
std::string fitted(const std::string& text, double value, const std::string& source) {
  Folder folder;
  const auto path = folder.write("m.yaml", text);
  write_fitted(path, "ddr.bandwidth_gb_s", value, source);
  return read_text_file(path);
}

}  // namespace

TEST_CASE("a fit of mt3000 changes the two lines of its number", "[machine][fit]") {
  Folder folder;
  const auto before = read_text_file(Machine::load("mt3000").path());
  const auto path = folder.write("m.yaml", before);
  write_fitted(path, "ddr.bandwidth_gb_s", 31.375, "28 cells, mean error 8.1 % \"signed\"");
  const auto machine = Machine::load(path);
  CHECK(machine.config().ddr.bandwidth_gb_s == 31.375);
  for (const auto& number : machine.numbers()) {
    if (number.key != "ddr.bandwidth_gb_s") continue;
    CHECK(number.provenance == Provenance::fitted);
    CHECK(number.source == "28 cells, mean error 8.1 % \"signed\"");
  }
  const auto old_lines = lines_of(before), new_lines = lines_of(read_text_file(path));
  REQUIRE(old_lines.size() == new_lines.size());
  int changed = 0;
  for (std::size_t i = 0; i < old_lines.size(); ++i) changed += old_lines[i] != new_lines[i];
  CHECK(changed == 2);
}

TEST_CASE("a fit keeps comments and columns", "[machine][fit]") {
  CHECK(fitted("extends: mt3000 # base\n"
               "ddr:   # memory\n"
               "  bandwidth_gb_s: {value: 32,     unit: GB/s, source: assumed,  range: [30, 34],  # why\n"
               "                   from: 'it''s'}  # end\n",
               31.25, "a fit") ==
        "extends: mt3000 # base\n"
        "ddr:   # memory\n"
        "  bandwidth_gb_s: {value: 31.25,  unit: GB/s, source: fitted,   range: [30, 34],  # why\n"
        "                   from: \"a fit\"}  # end\n");
  CHECK(
      fitted("extends: mt3000\nddr:\n  bandwidth_gb_s:\n    from: \"x\\\"y\"\n    source: paper # old\n    value: 30\n",
             32, "z") ==
      "extends: mt3000\nddr:\n  bandwidth_gb_s:\n    from: \"z\"\n    source: fitted # old\n    value: 32\n");
}

TEST_CASE("a fit that cannot be written leaves the file as it was", "[machine][fit]") {
  Folder folder;
  const auto error = [&](const std::string& text, const std::string& key, double value) {
    const auto path = folder.write("m.yaml", text);
    const auto message = error_of([&] { write_fitted(path, key, value, "s"); });
    CHECK(read_text_file(path) == text);
    return message;
  };
  CHECK(error("extends: mt3000\nddr: {bandwidth_gb_s: 32}\n", "ddr.bandwidth_gb_s", 31)
            .find("does not have it as {value") != std::string::npos);
  CHECK(error("extends: mt3000\n", "ddr.bandwidth_gb_s", 31).find("does not have it as") != std::string::npos);
  CHECK(error("extends: mt3000\nddr: {bandwidth_gb_s: {value: 32, source: fitted}}\n", "ddr.bandwidth_gb_s", 31)
            .find("m.yaml:2:23: cannot fit 'ddr.bandwidth_gb_s': it has no 'from'") != std::string::npos);
  CHECK(error("extends: mt3000\n", "ddr.bandwith_gb_s", 31).find("did you mean 'ddr.bandwidth_gb_s'?") !=
        std::string::npos);
  const std::string good = "extends: mt3000\nddr:\n  bandwidth_gb_s: {value: 32, source: fitted, from: \"a\"}\n";
  CHECK(error(good, "ddr.bandwidth_gb_s", -1).find("no machine has -1 GB/s") != std::string::npos);
  const std::string folded =
      "extends: mt3000\nddr:\n  bandwidth_gb_s:\n    value: 32\n    source: fitted\n    from: a\n      b\n";
  CHECK(error(folded, "ddr.bandwidth_gb_s", 31).find("on one line each") != std::string::npos);
  CHECK_FALSE(error_of([&] { write_fitted(folder.path("none.yaml"), "ddr.bandwidth_gb_s", 31, "s"); }).empty());
}
