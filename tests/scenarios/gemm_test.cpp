// SPDX-License-Identifier: Apache-2.0
// mtsim op gemm: one operator on one cluster.
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

TEST_CASE("a verified GEMM reports latency, rate, stalls that close, bytes and error", "[gemm]") {
  const CommandResult result = Folder().mtsim("op gemm --m 61 --n 129 --k 251 --dtype f32 --verify --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const auto json = result.json();
  CHECK(json.at("op") == "gemm");
  CHECK(json.at("shape") == nlohmann::json{{"m", 61}, {"n", 129}, {"k", 251}});
  CHECK(json.at("depth") == "functional");
  CHECK(json.at("verified") == true);
  CHECK(json.at("max_error").get<double>() > 0);
  CHECK(json.at("max_error").get<double>() <= json.at("error_bound").get<double>());
  CHECK(json.at("findings").empty());

  const double cycles = json.at("cycles"), latency_ms = json.at("latency_ms");
  CHECK(latency_ms == Approx(cycles / 1.8e6));
  CHECK(json.at("gmac_s").get<double>() == Approx(61.0 * 129 * 251 / latency_ms / 1e6));
  CHECK(json.at("gflop_s").get<double>() == Approx(2 * json.at("gmac_s").get<double>()));
  CHECK(json.at("utilisation").get<double>() == Approx(json.at("gmac_s").get<double>() / (2304 * 1.8)));

  double closed = json.at("busy").at("cycles_sum");
  for (const auto& [name, stall] : json.at("stalls").items()) closed += stall.at("cycles_sum").get<double>();
  CHECK(closed == 24 * cycles);
  CHECK(json.at("stalls").contains("broadcast_step"));
  CHECK(json.at("bytes").at("ddr->gsm").at("read").get<int>() >= 61 * 251 * 4);
  CHECK(json.at("machine").at("name") == "mt3000");
  CHECK_FALSE(json.at("assumed").at("machine").empty());
  CHECK(json.at("host").at("wall_s").get<double>() > 0);
}

TEST_CASE("both depths, with and without the memo, give the same cycles", "[gemm]") {
  const Folder folder;
  const std::string shape = "op gemm --m 130 --n 200 --k 300 --json - ";
  const auto timing = folder.mtsim(shape + "--depth timing").json();
  const auto functional = folder.mtsim(shape + "--depth functional").json();
  const auto no_memo = folder.mtsim(shape + "--depth timing --no-memo").json();
  for (const char* key : {"cycles", "stalls", "bytes", "kernels"}) {
    CHECK(functional.at(key) == timing.at(key));
    CHECK(no_memo.at(key) == timing.at(key));
  }
}

TEST_CASE("variants, tiles and machine numbers change the run", "[gemm]") {
  const Folder folder;
  const auto json =
      folder.mtsim("op gemm --m 48 --n 512 --k 512 --variant paper,large_m --tile mg=48,k2=128 --json -").json();
  CHECK(json.at("variant") == "paper");
  CHECK(json.at("dataflow") == "large_m");
  CHECK(json.at("tile").at("k2") == 128);
  const auto small = folder.mtsim("op gemm --m 24 --n 512 --k 512 --variant small_m --json -").json();
  CHECK(small.at("dataflow") == "small_m");
  const auto fast =
      folder.mtsim("op gemm --m 24 --n 512 --k 512 --variant small_m --set ddr.bandwidth_gb_s=320 --json -").json();
  CHECK(fast.at("cycles").get<double>() < small.at("cycles").get<double>());
  CHECK_THAT(folder.mtsim("op gemm --m 48 --n 512 --k 512").out, Contains("GMAC/s") && Contains("broadcast_step"));
}

TEST_CASE("the errors of FP16 sums are those of docs/kernel-writers.md", "[gemm]") {
  // Percent of the results' rms. Operands are uniform, so that other seeds and sizes give these within a few percent.
  const auto [options, percent] = GENERATE(table<std::string, double>({{"--variant f16_sums", 0.94},
                                                                       {"--tile k_promote=256", 0.24},
                                                                       {"", 0.17},
                                                                       {"--tile k_promote=64", 0.12},
                                                                       {"--tile k_promote=32", 0.087},
                                                                       {"--variant f32_sums", 0.145}}));
  const Folder folder;
  const auto json = folder.mtsim("op gemm --m 24 --n 2048 --k 4096 --dtype f16 --verify --json - " + options).json();
  const double measured = 100 * json.at("rms_error").get<double>() / json.at("rms_reference").get<double>();
  CAPTURE(options, measured);
  CHECK(measured == Approx(percent).epsilon(0.05));
}

TEST_CASE("what cannot run is refused with exit 2", "[gemm]") {
  struct Case {
    std::string arguments, message;
  };
  const auto [arguments, message] = GENERATE(values<Case>({
      {"--m 64 --n 64 --k 64 --dtype f23", "unknown dtype 'f23'; use f32 or f16"},
      {"--m 0 --n 64 --k 64", "--m: 0 is too small; at least 1"},
      {"--m 64 --n -3 --k 64", "--n: -3 is too small"},
      {"--m 1000000 --n 1000000 --k 4", "DDR has 21474836480 (ddr.bytes)"},
      {"--m 9000000000000000000 --n 9000000000000000000 --k 9000000000000000000", "DDR has"},
      {"--m 64 --n 64 --k 64 --variant medium", "unknown variant 'medium'"},
      {"--m 64 --n 64 --k 64 --depth deep", "unknown depth 'deep'"},
      {"--m 64 --n 64 --k 64 --depth timing --verify", "--verify needs functional depth"},
      {"--m 4096 --n 4096 --k 4096 --tile n2=4096", "bytes"},
      {"--m 64 --n 64 --k 64 --tile kk=4", "unknown key 'kk'"},
      {"--m 64 --n 64 --k 64 --set cluster.core=4", "cluster.cores"},
      {"--m 64 --n 64 --k 64 --machine none.yaml", "none.yaml"},
  }));
  INFO(arguments);
  const CommandResult result = Folder().mtsim("op gemm " + arguments);
  INFO(result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, Contains(message));
}
