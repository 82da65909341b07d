// SPDX-License-Identifier: Apache-2.0
// mtsim explore: what it ranks, simulates, explains and keeps. And run --perturb.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;
using mtsim::test::mpirun_command;
using nlohmann::json;

namespace {

const std::string k_small =
    "explore gemm --m 600 --n 700 --k 900 --dtype f16 --only m1=6:9 --only n1=128:256 --only k2=96:128 ";

json explored(const Folder& folder, const std::string& arguments) {
  const CommandResult result = folder.mtsim(arguments + " --json out.json");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return json::parse(folder.read("out.json"));
}

}  // namespace

TEST_CASE("no point is faster than its bound, and the bound is near", "[explore]") {
  const Folder folder;
  for (const std::string dtype : {"f16", "f32"}) {
    for (const std::string dataflow : {"large_m", "w_stationary"}) {
      CAPTURE(dtype, dataflow);
      // What starts and ends has little share.
      const std::string shape = dataflow == "large_m" ? "--m 900 --n 1000 --k 1100" : "--m 4096 --n 3072 --k 1024";
      const json result =
          explored(folder, "explore gemm " + shape + " --machine mt3000 --top 60 --only m1=5:6:12 --dtype " + dtype +
                               " --dataflow " + dataflow);
      CHECK(result.at("bound").at("faster_than_bound") == 0);
      // W that has one buffer comes in behind rounds that do not hide it all, which the bound does not know.
      CHECK(result.at("bound").at("median_ratio") < (dataflow == "large_m" ? 1.5 : 1.7));
      CHECK(result.at("points").size() >= 60);
      double before = 0;
      for (const json& point : result.at("points")) {
        if (point.at("cut")) continue;
        CHECK(point.at("latency_ms") >= before);
        before = point.at("latency_ms");
      }
    }
  }
}

TEST_CASE("rows that cost DDR time are in the bound, those of X too", "[explore]") {
  const Folder folder;
  const json result = explored(folder,
                               "explore gemm --m 2048 --n 128 --k 2048 --machine mt3000-rowcost --top 30 --only m1=6 "
                               "--only n1=128 --dataflow large_m");
  CHECK(result.at("bound").at("faster_than_bound") == 0);
  CHECK(result.at("bound").at("most_ratio") < 1.5);
}

TEST_CASE("every point's command gives its latency and bytes again", "[explore]") {
  const Folder folder;
  const json result = explored(folder, k_small + "--top 40 --set ddr.bandwidth_gb_s=60");
  const json& points = result.at("points");
  for (const std::size_t index : {std::size_t{0}, points.size() / 2, points.size() - 1}) {
    std::string command = points[index].at("command");
    REQUIRE(command.starts_with("mtsim op gemm "));
    CHECK_THAT(command, Contains("--set ddr.bandwidth_gb_s=60"));
    const CommandResult again = folder.mtsim(command.substr(6) + " --json -");
    INFO(command << "\n" << again.err);
    REQUIRE(again.exit_code == 0);
    CHECK(again.json().at("latency_ms").get<double>() ==
          Approx(points[index].at("latency_ms").get<double>()).epsilon(1e-9));
    CHECK(again.json().at("memory").at("am_bytes") == points[index].at("memory").at("am_bytes"));
  }
}

TEST_CASE("what does not fit is counted by equation with the bytes, neighbours have two counters each", "[explore]") {
  const Folder folder;
  const json result =
      explored(folder, k_small + "--top 20 --set core.am_bytes=200000 --set core.sm_bytes=30000 --machine mt3000");
  std::set<std::string> equations;
  for (const json& killed : result.at("killed")) {
    equations.insert(killed.at("equation"));
    CHECK(killed.at("needed_bytes") > killed.at("available_bytes"));
    const CommandResult refused = folder.mtsim(
        "op gemm --m 600 --n 700 --k 900 --dtype f16 --set core.am_bytes=200000 --set "
        "core.sm_bytes=30000 --variant " +
        std::string(killed.at("nearest").get<std::string>().find("m2=") == std::string::npos ? "large_m"
                                                                                             : "w_stationary") +
        " --tile " + killed.at("nearest").get<std::string>());
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, Contains("eq. " + killed.at("equation").get<std::string>()));
    CHECK_THAT(refused.err, Contains(std::to_string(killed.at("needed_bytes").get<std::int64_t>()) + " bytes"));
  }
  CHECK(equations.contains("(7)"));
  CHECK(equations.contains("(6)"));
  int explained = 0;
  for (const json& neighbour : result.at("neighbours")) {
    if (neighbour.contains("why_not")) {
      CHECK_THAT(neighbour.at("why_not").get<std::string>(), Contains("bytes"));
      continue;
    }
    const std::string why = neighbour.at("why");
    INFO(neighbour.dump());
    CHECK(why.find(" -> ") != why.rfind(" -> "));
    ++explained;
  }
  CHECK(explained >= 4);
}

TEST_CASE("an exploration that was killed goes on, computes nothing twice and ends with the same file", "[explore]") {
  const Folder folder;
  const std::string command = k_small + "--top 400 --jobs 1 --machine mt3000 ";
  const json whole = explored(folder, command + "--csv whole.csv");
  CHECK_FALSE(folder.has("whole.csv.journal"));
  // Killed as soon as a few more points are in the journal, also in the middle of a line.
  std::ptrdiff_t done = 0;
  for (const int more : {1, 2, 5, 10, 30}) {
    const CommandResult killed = folder.shell(
        fmt::format("(exec {} {} --csv part.csv >/dev/null) & run=$!; until [ $(cat part.csv.journal 2>/dev/null | wc "
                    "-l) -gt {} ] || ! kill -0 $run; do sleep 0.01; done; kill -KILL $run; wait $run",
                    MTSIM_COMMAND, command, done + more));
    CHECK(killed.exit_code != 0);
    REQUIRE(folder.has("part.csv.journal"));
    const std::string journal = folder.read("part.csv.journal");
    const std::ptrdiff_t lines = std::count(journal.begin(), journal.end(), '\n') - 1;
    CHECK(lines >= done);
    done = lines;
    folder.write("part.csv.journal", journal + "{\"point\":\"cut sho");
  }
  CHECK(done >= 1);
  const json result = explored(folder, command + "--csv part.csv");
  CHECK(folder.read("part.csv") == folder.read("whole.csv"));
  const std::int64_t all = whole.at("computed_points");
  CHECK(result.at("computed_points").get<std::int64_t>() == all - done);
  CHECK_FALSE(folder.has("part.csv.journal"));
}

TEST_CASE("any number of ranks ends with the same file and computes no point twice", "[explore][mpi]") {
  const Folder folder;
  const std::string command = k_small + "--top 100 --jobs 1 --machine mt3000 ";
  const json alone = explored(folder, command + "--csv alone.csv");
  CHECK(alone.at("host").at("processes") == 1);
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const CommandResult result = folder.mpirun(ranks, command + "--csv ranks.csv --json out.json");
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    const json together = json::parse(folder.read("out.json"));
    CHECK(together.at("host").at("processes") == ranks);
    CHECK(together.at("computed_points") == alone.at("computed_points"));
    CHECK(folder.read("ranks.csv") == folder.read("alone.csv"));
  }
}

TEST_CASE("a rank that dies ends the run and loses nothing that was finished", "[explore][mpi]") {
  const Folder folder;
  const std::string command = k_small + "--top 400 --jobs 1 --machine mt3000 ";
  const json whole = explored(folder, command + "--csv whole.csv");
  // The last rank dies as soon as some points are in the journal.
  const CommandResult killed = folder.shell(
      fmt::format("(exec {} -n 3 {} {} --csv part.csv) & run=$!; "
                  "until [ $(cat part.csv.journal 2>/dev/null | wc -l) -gt 3 ]; do sleep 0.02; done; "
                  "for rank in $(cat /proc/$run/task/*/children); do last=$rank; done; kill -KILL $last; wait $run",
                  mpirun_command(), MTSIM_COMMAND, command));
  INFO(killed.err);
  CHECK(killed.exit_code != 0);
  CHECK_THAT(killed.err, Contains("exited on signal 9"));
  const std::string journal = folder.read("part.csv.journal");
  const std::ptrdiff_t done = std::count(journal.begin(), journal.end(), '\n') - 1;
  REQUIRE(done > 0);
  const CommandResult rest = folder.mpirun(2, command + "--csv part.csv --json out.json");
  REQUIRE(rest.exit_code == 0);
  const json result = json::parse(folder.read("out.json"));
  CHECK(result.at("computed_points").get<std::int64_t>() == whole.at("computed_points").get<std::int64_t>() - done);
  CHECK(folder.read("part.csv") == folder.read("whole.csv"));
}

TEST_CASE("ranks that were asked for different things, or a wrong one, end with the reason", "[explore][mpi]") {
  const Folder folder;
  const std::string program = std::string(" -n 1 ") + MTSIM_COMMAND + " ";
  const CommandResult different =
      folder.shell(mpirun_command() + program + k_small + "--top 5 :" + program + k_small + "--top 6");
  CHECK(different.exit_code == 2);
  CHECK_THAT(different.err, Contains("all ranks have to run the same command"));
  const auto times = [](const std::string& text, const std::string& what) {
    int count = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
    return count;
  };
  for (const auto& [arguments, complaint] : {std::pair(k_small + "--only k3=5", "no such dimension"),
                                             {k_small + "--tops 5", "unknown option"},
                                             {k_small + "--csv none/a.csv", "none/a.csv"},
                                             {k_small + "--json none/a.json", "none/a.json"}}) {
    const CommandResult wrong = folder.mpirun(3, arguments);
    INFO(arguments << "\n" << wrong.err);
    CHECK(wrong.exit_code == 2);
    CHECK(times(wrong.err, complaint) == 1);
  }
  const CommandResult one = folder.shell(mpirun_command() + program + k_small + "--top 5 :" + program + k_small +
                                         "--top 5 --set ddr.bandwidth=3");
  CHECK(one.exit_code == 2);
  CHECK_THAT(one.err, Contains("rank 1: ") && Contains("ddr.bandwidth"));
  folder.write("a.csv.journal", "{}\n");
  const CommandResult other = folder.mpirun(2, k_small + "--top 5 --csv a.csv");
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, Contains("another exploration"));
}

TEST_CASE("what cannot be written is said, and what was found is printed all the same", "[explore]") {
  const Folder folder;
  const CommandResult full = folder.mtsim(k_small + "--top 3 --machine mt3000 --csv /dev/full");
  CHECK(full.exit_code == 2);
  CHECK_THAT(full.err, Contains("/dev/full") && Contains("No space left"));
  CHECK_THAT(full.out, Contains("run the best again: "));
  CHECK_FALSE(std::filesystem::exists("/dev/full.journal"));
  const CommandResult few = folder.shell(fmt::format("ulimit -n 20; {} {} --top 3 --jobs 40", MTSIM_COMMAND, k_small));
  CHECK(few.exit_code == 2);
  CHECK_THAT(few.err, Contains("ulimit -n") && Contains("--jobs"));
}

TEST_CASE("a journal of another exploration is refused and stays", "[explore]") {
  const Folder folder;
  folder.write("a.csv.journal", "{\"explore\":\"gemm\",\"format\":0}\n{}\n");
  const CommandResult result = folder.mtsim(k_small + "--top 5 --csv a.csv --machine mt3000");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("another exploration"));
  CHECK(folder.read("a.csv.journal").ends_with("{}\n"));
  for (const std::string foreign : {"precious\n", "precious"}) {
    folder.write("a.csv.journal", foreign);
    CHECK(folder.mtsim(k_small + "--top 5 --csv a.csv --machine mt3000").exit_code == 2);
    CHECK(folder.read("a.csv.journal") == foreign);
  }
}

TEST_CASE("the calibrated machines rank the best points, least regret first", "[explore]") {
  const Folder folder;
  const json result = explored(folder, k_small + "--top 20");
  CHECK(result.at("machines") == json({"mt3000", "mt3000-exposed", "mt3000-rowcost"}));
  const json& compared = result.at("compared");
  REQUIRE(compared.size() >= 12);
  std::vector<double> least(3, 1e9);
  for (const json& point : compared) {
    for (std::size_t m = 0; m < 3; ++m) least[m] = std::min(least[m], point.at("latency_ms")[m].get<double>());
  }
  double before = 0;
  for (const json& point : compared) {
    double regret = 0;
    for (std::size_t m = 0; m < 3; ++m) {
      regret = std::max(regret, point.at("latency_ms")[m].get<double>() / least[m] - 1);
      CHECK((point.at("rank")[m] == 1) == (point.at("latency_ms")[m].get<double>() == least[m]));
    }
    CHECK(point.at("regret").get<double>() == Approx(regret).margin(1e-12));
    CHECK(regret >= before);
    before = regret;
  }
}

TEST_CASE("explore refuses what it cannot look at, with the reason", "[explore]") {
  const Folder folder;
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"explore gemm --m 60 --n 70", "--k"},
           {k_small + "--only k3=5", "no such dimension"},
           {k_small + "--only k2=a", "no number from 1"},
           {k_small + "--only k2=0", "no number from 1"},
           {"explore gemm --m 9223372036854775807 --n 2 --k 2", "too large"},
           {k_small + "--only m1=40", "no microkernel has that"},
           {"explore gemm --m 60 --n 70 --k 80 --only m1=16 --only n1=256", "fits the registers"},
           {k_small + "--dataflow sideways", "no such dataflow"},
           {k_small + "--csv none/a.csv", "none"},
           {"explore gemm --m 60 --n 70 --k 80 --k-promote 64", "FP16"},
           {"explore gemm --m 60 --n 70 --k 80 --dtype f8", "f8"}}) {
    const CommandResult result = folder.mtsim(arguments);
    INFO(arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Contains(message));
  }
}

TEST_CASE("bands come from the plausible ranges, the same for a seed", "[perturb]") {
  const Folder folder;
  folder.write("one.yaml",
               "name: one\ntitle: One\nmachine: mt3000\noperator: gemm\ndtype: f32\ngrid:\n  m: 96\n  n: [128, 256]\n  "
               "k: 256\n");
  const json a = explored(folder, "run one.yaml --perturb 21 --seed 7"),
             b = explored(folder, "run one.yaml --perturb 21 --seed 7");
  const json other = explored(folder, "run one.yaml --perturb 21 --seed 8");
  CHECK(a.at("cases") == b.at("cases"));
  CHECK(a.at("cases") != other.at("cases"));
  for (const json& one : a.at("cases")) {
    const json& band = one.at("band").at("latency_ms");
    CHECK(band.at("low") < band.at("median"));
    CHECK(band.at("median") < band.at("high"));
    CHECK(band.at("low") < one.at("metrics").at("latency_ms"));
    CHECK(band.at("high") > one.at("metrics").at("latency_ms"));
  }
  const json& drawn = a.at("perturbation").at("drawn");
  CHECK(drawn.at("cluster.launch_us").at("range") == json({0.0, 60.0}));
  CHECK(drawn.at("ddr.bandwidth_gb_s").at("provenance") == "fitted");
  CHECK_FALSE(drawn.contains("core.sm_bytes"));
  CHECK_FALSE(drawn.contains("dma.broadcast_exposed"));
  CHECK_THAT(a.at("perturbation").at("provenance").get<std::string>(), Contains("fitted") && Contains("assumed"));
  for (const json& one : a.at("cases")) CHECK(one.at("band").at("latency_ms").at("value_is") == "inside");
}

TEST_CASE("a result outside its own band is said to be, with the ranges that push it there", "[perturb]") {
  const Folder folder;
  folder.write("one.yaml",
               "name: one\ntitle: One\nmachine: mt3000\noperator: add\ndtype: f32\ngrid: {m: [4096, 8192], n: 4096}\n");
  const CommandResult result = folder.mtsim("run one.yaml --perturb 21 --set ddr.bandwidth_gb_s=31.4");
  INFO(result.out << result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("provenance of the band: plausible ranges of "));
  CHECK_THAT(result.out, Contains("ddr.row_cost_ns 0 of 0-14"));
}
