// SPDX-License-Identifier: Apache-2.0
// mtsim run and fit: a grid of shapes beside a paper's numbers.
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

constexpr const char* k_two_cells = R"(name: two
title: Two cells
machine: mt3000
operator: gemm
dtype: f32
variant: paper
grid:
  m: 96
  n: [128, 256]
  k: 256
paper:
  source: a table
  latency_ms:
    96: [0.05, 0.10]
notes:
  - {n: 256, note: why this one differs}
)";

}  // namespace

TEST_CASE("a scenario compares every cell with the paper, signed", "[run]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  const CommandResult result = folder.mtsim("run two.yaml --json result.json");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(folder.read("result.json"));
  REQUIRE(json.at("cases").size() == 2);
  double sum = 0, worst = 0;
  for (const auto& cell : json.at("cases")) {
    const double predicted = cell.at("metrics").at("latency_ms"), paper = cell.at("paper").at("latency_ms");
    const double error = cell.at("error_percent").at("latency_ms");
    CHECK(error == Approx(100 * (predicted / paper - 1)));
    CHECK(cell.at("metrics").at("gmac_s").get<double>() > 0);
    sum += std::abs(error);
    if (std::abs(error) > std::abs(worst)) worst = error;
  }
  CHECK(json.at("cases")[1].at("case") == nlohmann::json{{"m", 96}, {"n", 256}, {"k", 256}});
  CHECK(json.at("cases")[1].at("notes") == nlohmann::json{"why this one differs"});
  CHECK(json.at("cases")[0].at("notes").empty());
  CHECK(json.at("summary").at("latency_ms").at("mape_percent").get<double>() == Approx(sum / 2));
  CHECK(json.at("summary").at("latency_ms").at("worst_percent").get<double>() == Approx(worst));
  CHECK(json.at("machine").at("numbers").contains("ddr.bandwidth_gb_s"));
  CHECK(json.at("assumed").contains("instructions"));
  CHECK(json.at("host").at("wall_s").get<double>() > 0);
  CHECK_THAT(result.out,
             Contains("paper") && Contains("simulated") && Contains("error %") && Contains("mean absolute error"));
  CHECK_THAT(result.out, Contains("note (n=256): why this one differs"));
}

TEST_CASE("cases of one scenario are what each gives alone", "[run]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  const auto json = folder.mtsim("run two.yaml --json -").json();
  const auto alone = folder.mtsim("op gemm --m 96 --n 256 --k 256 --variant paper --json -").json();
  CHECK(json.at("cases")[1].at("metrics").at("cycles") == alone.at("cycles"));
}

TEST_CASE("--set changes machine and scenario keys", "[run]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  const auto json =
      folder.mtsim("run two.yaml --set ddr.bandwidth_gb_s=64 --set 'n=[256, 384]' --set depth=functional --json -")
          .json();
  REQUIRE(json.at("cases").size() == 2);
  CHECK(json.at("depth") == "functional");
  CHECK(json.at("machine").at("numbers").at("ddr.bandwidth_gb_s").at("value") == 64);
  CHECK(json.at("cases")[0].at("paper").at("latency_ms") == 0.10);
  CHECK(json.at("cases")[1].at("case").at("n") == 384);
  CHECK(json.at("cases")[1].at("paper").empty());
  CHECK(json.at("summary").at("latency_ms").at("cases") == 1);
}

TEST_CASE("a second variant stands beside without changing the comparison", "[run]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  const auto plain = folder.mtsim("run two.yaml --json -").json();
  const auto both = folder.mtsim("run two.yaml --set beside=best --json -").json();
  CHECK(both.at("summary") == plain.at("summary"));
  CHECK(both.at("cases")[0].at("beside").at("variant") == "best");
  CHECK(both.at("cases")[0].at("beside").at("latency_ms").get<double>() > 0);
}

TEST_CASE("element types are an axis: a table each, a summary each and one of all", "[run]") {
  const Folder folder;
  std::string text = k_two_cells;
  text.replace(text.find("dtype: f32"), 10, "dtype: [f32, f16]\ntables: dtype\nfit: {dtype: f32}");
  text.replace(text.find("    96: [0.05, 0.10]"), 20, "    f32: {96: [0.05, 0.10]}\n    f16:\n      96: [0.04, 0.06]");
  folder.write("two.yaml", text);
  const CommandResult result = folder.mtsim("run two.yaml --json result.json");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = nlohmann::json::parse(folder.read("result.json"));
  REQUIRE(json.at("cases").size() == 4);
  CHECK(json.at("cases")[2].at("case") == nlohmann::json{{"m", 96}, {"n", 128}, {"k", 256}, {"dtype", "f16"}});
  CHECK(json.at("cases")[2].at("paper").at("latency_ms") == 0.04);
  CHECK(json.at("cases")[2].at("metrics").at("latency_ms") < json.at("cases")[0].at("metrics").at("latency_ms"));
  CHECK(json.at("tables") == "dtype");
  CHECK(json.at("summary").at("latency_ms").at("cases") == 4);
  CHECK(json.at("table_summary").at("f16").at("latency_ms").at("cases") == 2);
  CHECK_THAT(result.out, Contains("dtype = f16") && Contains("2 cells") && Contains("4 cells"));
  const auto page = folder.mtsim("report fidelity result.json");
  CHECK_THAT(page.out, Contains("dtype = f32") && Contains("dtype = f16") && Contains("All tables:"));
  CHECK_THAT(folder.mtsim("fit two.yaml --parameters ddr.bandwidth_gb_s").err, Contains("fitting 2 cells"));
}

TEST_CASE("any operator can be a scenario, its dimensions are the axes", "[run]") {
  const Folder folder;
  folder.write("add.yaml",
               "name: add\ntitle: Residual add\nmachine: mt3000\noperator: add\ndtype: [f32, f16]\n"
               "grid:\n  m: 64\n  n: [256, 4096]\nrows: n\ncolumns: dtype\n");
  const CommandResult result = folder.mtsim("run add.yaml --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = result.json();
  REQUIRE(json.at("cases").size() == 4);
  CHECK(json.at("cases")[1].at("case") == nlohmann::json{{"m", 64}, {"n", 256}, {"dtype", "f16"}});
  CHECK_FALSE(json.at("cases")[1].at("metrics").contains("gmac_s"));
  CHECK(json.at("cases")[1].at("metrics").at("ddr_gb_s").get<double>() > 0);
  CHECK_THAT(folder.mtsim("run add.yaml").out, Contains("GB/s") && Contains("f16"));
}

TEST_CASE("a scenario can have an axis of variants, and says what one gains over the others", "[run]") {
  const Folder folder;
  const std::string text =
      "name: three\ntitle: Three ways\nmachine: mt3000\noperator: attention\ndtype: f32\nvariant: paper\nbeside: best\n"
      "skip_pieces: true\n"
      "grid:\n  heads: [6, 8]\n  seq: [100, 200]\n  head_dim: 64\n  variant: [unfused, flash, mt]\n"
      "rows: heads\ncolumns: seq\ntables: variant\n"
      "paper:\n  source: a table\n  speedup_figure: a figure\n  speedup_of: mt\n"
      "  latency_ms:\n    unfused: {6: [2, 4]}\n    mt: {6: [1, 1]}\n";
  folder.write("three.yaml", text);
  const CommandResult result = folder.mtsim("run three.yaml --json result.json");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("variant = unfused") && Contains("variant paper, timing depth"));
  CHECK_THAT(result.out, Contains("a figure: times as fast is mt, paper / simulated; mean deviation"));
  const auto json = nlohmann::json::parse(folder.read("result.json"));
  CHECK(json.at("variant") == "paper");
  REQUIRE(json.at("cases").size() == 12);
  const auto& unfused = json.at("cases")[1];
  const auto& mt = json.at("cases")[9];
  CHECK(unfused.at("case").at("variant") == "unfused");
  CHECK(mt.at("case").at("variant") == "mt");
  CHECK(mt.at("case").at("seq") == 200);
  CHECK(mt.at("beside").at("variant") == "best");
  const auto& speedups = json.at("speedups");
  REQUIRE(speedups.at("cases").size() == 8);
  CHECK(speedups.at("cases")[1].at("paper") == 4);
  CHECK(speedups.at("cases")[1].at("simulated").get<double>() ==
        Approx(unfused.at("metrics").at("latency_ms").get<double>() / mt.at("metrics").at("latency_ms").get<double>()));
  CHECK_FALSE(speedups.at("cases")[2].contains("paper"));
  CHECK(json.at("table_summary").at("mt").at("latency_ms").at("cases") == 2);
  CHECK_THAT(folder.mtsim("run three.yaml --set variant=mt").out, Contains("variant = mt"));

  const auto complaint = [&](const std::string& from, const std::string& to) {
    std::string wrong = text;
    wrong.replace(wrong.find(from), from.size(), to);
    folder.write("wrong.yaml", wrong);
    const CommandResult bad = folder.mtsim("run wrong.yaml");
    CHECK(bad.exit_code == 2);
    return bad.err;
  };
  CHECK_THAT(complaint("[unfused, flash, mt]", "[unfused, flush, mt]"),
             Contains("unknown variant 'flush'") && Contains("known: automatic, mt, flash, unfused, decode"));
  CHECK_THAT(complaint("tables: variant\n", ""), Contains("variant has 3 values but is neither rows nor columns"));
  CHECK_THAT(complaint("variant: [unfused, flash, mt]", "variant: [unfused, flash]"), Contains("there is no table mt"));
}

TEST_CASE("an unknown --set key names both sets of keys", "[run]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  const CommandResult result = folder.mtsim("run two.yaml --set ddr.bandwith_gb_s=60");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("did you mean 'ddr.bandwidth_gb_s'?"));
  CHECK_THAT(result.err, Contains("scenario keys: m, n, k, depth"));
  CHECK_THAT(result.err, Contains("machine keys: core.clock_ghz"));
  CHECK(folder.mtsim("run two.yaml --set n=0").exit_code == 2);
  CHECK(folder.mtsim("run two.yaml --set 'k=[1, 2]'").exit_code == 2);
  CHECK(folder.mtsim("run two.yaml --set dtype=f8").exit_code == 2);
}

TEST_CASE("every mistake of a scenario is listed with its place", "[run]") {
  struct Case {
    std::string from, to;  // a change of the good scenario
    std::string message;
  };
  const auto [from, to, message] = GENERATE(values<Case>({
      {"operator: gemm", "operator: gem", "unknown operator 'gem'"},
      {"dtype: f32", "dtype: f8", "unknown dtype 'f8'"},
      {"dtype: f32", "dtype: [f32, f16]", "dtype has 2 values but is neither rows nor columns nor tables"},
      {"dtype: f32", "dtype: f32\ntables: n", "two of rows, columns and tables are the same axis"},
      {"title:", "titel:", "did you mean 'title'?"},
      {"machine: mt3000", "machine: [a]", "machine"},
      {"  m: 96", "  m: 0", "at least 1"},
      {"[128, 256]", "[128, 128]", "128 is given twice"},
      {"k: 256\n", "k: [256, 512]\n", "neither rows nor columns"},
      {"    96: [0.05, 0.10]", "    97: [0.05, 0.10]", "'97' is no value of the rows' axis m"},
      {"[0.05, 0.10]", "[0.05]", "1 numbers for 2 columns"},
      {"[0.05, 0.10]", "[0.05, 0]", "above 0"},
      {"latency_ms:", "latncy_ms:", "did you mean 'latency_ms'?"},
      {"n: 256, note", "n: 257, note", "no cell has n = 257"},
      {"variant: paper", "variant: papers", "unknown variant 'papers'"},
      {"grid:", "rows: n\ngrid:", "same axis"},
  }));
  INFO(to);
  std::string text = k_two_cells;
  text.replace(text.find(from), from.size(), to);
  const Folder folder;
  folder.write("two.yaml", text);
  const CommandResult result = folder.mtsim("run two.yaml");
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("two.yaml:") && Contains(message));
}

TEST_CASE("fit finds the bandwidth its targets were made with", "[run][fit]") {
  const Folder folder;
  std::string text = k_two_cells;
  folder.write("two.yaml", text);
  const auto target = folder.mtsim("run two.yaml --set ddr.bandwidth_gb_s=33 --json -").json();
  const std::string numbers = target.at("cases")[0].at("metrics").at("latency_ms").dump() + ", " +
                              target.at("cases")[1].at("metrics").at("latency_ms").dump();
  text.replace(text.find("0.05, 0.10"), 10, numbers);
  folder.write("two.yaml", text);
  const CommandResult fit = folder.mtsim("fit two.yaml --parameters ddr.bandwidth_gb_s --json -");
  INFO(fit.err);
  REQUIRE(fit.exit_code == 0);
  const auto json = fit.json();
  CHECK(json.at("parameters").at("ddr.bandwidth_gb_s").at("value").get<double>() == Approx(33).margin(0.25));
  CHECK(json.at("mape_percent").get<double>() < 0.5);
  CHECK(json.at("residuals").size() == 2);
  CHECK_THAT(fit.err, Contains("ddr.bandwidth_gb_s = "));
  CHECK(folder.mtsim("fit two.yaml --parameters ddr.bandwidth_gb_s --json -").out == fit.out);  // the same steps
}

TEST_CASE("fit --write stores value and residuals", "[run][fit]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  std::filesystem::copy_file(mtsim::test::source("sim/machines/mt3000.yaml"), folder.path("own.yaml"));
  const CommandResult fit = folder.mtsim("fit two.yaml --parameters ddr.bandwidth_gb_s --write own.yaml");
  INFO(fit.err);
  REQUIRE(fit.exit_code == 0);
  const auto stored =
      nlohmann::json::parse(folder.read("own.fit.json")).at("parameters").at("ddr.bandwidth_gb_s").at("value");
  const auto number = folder.mtsim("describe own.yaml --json -").json().at("numbers").at("ddr.bandwidth_gb_s");
  CHECK(number.at("value") == stored);
  CHECK(number.at("provenance") == "fitted");
  CHECK_THAT(number.at("source").get<std::string>(), Contains("a table"));
}

TEST_CASE("fit refuses what must stay a prediction", "[run][fit]") {
  const Folder folder;
  folder.write("two.yaml", k_two_cells);
  struct Case {
    std::string parameters, message;
  };
  for (const auto& [parameters, message] :
       std::vector<Case>{{"cluster.launch_us",
                          "only ddr.bandwidth_gb_s and dma.broadcast_rendezvous_us and ddr.row_cost_ns are fitted"},
                         {"ddr.bandwith_gb_s", "did you mean 'ddr.bandwidth_gb_s'?"},
                         {"ddr.bandwidth_gb_s,ddr.bandwidth_gb_s", "given twice"},
                         {"ddr.bandwidth_gb_s,", "empty word"}}) {
    INFO(parameters);
    const CommandResult result = folder.mtsim("fit two.yaml --parameters " + parameters);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains(message));
  }
}
