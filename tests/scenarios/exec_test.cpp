// SPDX-License-Identifier: Apache-2.0
// mtsim exec: one microkernel on one core, from a spec.
#include <bit>
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

constexpr const char* k_scale = R"(; Y[32 n] = a * X[32 n], FP32
.param x, R10, pointer am
.param y, R12, pointer am
.param a, R14, value
.param n, R16, count
        SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1 | SBALE2 R14, R14, R14
        SVBCAST.M1 R14, VR0 | VMOVI.M1 0, VR1 | SMOV R16, R1
        SMOVI24 16, R2
        SMVAGA.M1 R2, OR0
        SNOP 1
loop:   VLDW *AR0++[OR0], VR2 | SADD.M1 -1, R1, R1
        SNOP 8
        VFMULAS32.M1 VR2, VR0, VR1, VR3 | [R1] SBR loop
        SNOP 5
        VSTW VR3, *AR1++[OR0]
        SBR R63
        SNOP 6
)";

constexpr const char* k_scale_spec = R"(program: k.s
registers: {R10: 0, R12: 0x1000, R14: "f32:1.5", R16: 4}
memory:
  - {space: am, address: 0, file: x.bin}
dump:
  - {space: am, address: 0x1000, bytes: 512, file: y.bin}
max_cycles: 1000000
)";

/// 128 FP32 values 0, 1, 2, ...
std::vector<float> ramp() {
  std::vector<float> values(128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

/// Runs packets with a spec that has these lines behind `program`, as JSON.
nlohmann::json exec(const Folder& folder, const std::string& packets, const std::string& spec, int exit_code = 0) {
  folder.write("k.s", packets);
  folder.write("k.yaml", "program: k.s\n" + spec);
  const CommandResult result = folder.mtsim("exec k.yaml --json -");
  INFO(result.err);
  REQUIRE(result.exit_code == exit_code);
  return result.json();
}

}  // namespace

TEST_CASE("exec computes values and counts every cycle", "[exec]") {
  const Folder folder;
  folder.write("k.s", k_scale);
  folder.write("k.yaml", k_scale_spec);
  folder.write_values("x.bin", ramp());
  const CommandResult result = folder.mtsim("exec k.yaml --json result.json");
  REQUIRE(result.exit_code == 0);

  const auto y = folder.read_values<float>("y.bin");
  REQUIRE(y.size() == 128);
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == 1.5F * static_cast<float>(i));

  const auto json = nlohmann::json::parse(folder.read("result.json"));
  CHECK(json.at("status") == "done");
  CHECK(json.at("fault").is_null());
  CHECK(json.at("packets") == 5 + 4 * 5 + 2);
  CHECK(json.at("idles") == 4 * (7 + 4) + 5);
  CHECK(json.at("cycles") == 76);
  CHECK(json.at("instructions") == 3 + 3 + 1 + 1 + 4 * (2 + 2 + 1) + 1);  // SNOP is none
  CHECK(json.at("units").size() == 11);
  CHECK(json.at("units").at("VMAC1") == 5);  // VMOVI and four VFMULAS32
  CHECK(json.at("units").at("SBR") == 5);
  CHECK(json.at("utilisation").at("SBR") == Approx(5.0 / 76));
  CHECK(json.at("utilisation").at("VMAC") == Approx(5.0 / 76 / 3));
  CHECK(json.at("macs") == 128);
  CHECK(json.at("assumed").at("instructions").empty());
  CHECK(json.at("assumed").at("packet_rules").empty());
  CHECK_FALSE(json.at("notes").empty());

  CHECK_THAT(result.out, Contains("cycles"));
  CHECK_THAT(result.out, Contains("VLDST2"));
}

TEST_CASE("registers take integers, hex, FP32, FP64 and lanes", "[exec]") {
  const Folder folder;
  const auto json = exec(
      folder,
      "SSTDW R1:R0, *AR8 | VSTW VR1, *AR0\n"
      "SSTDW R3:R2, *+AR8[1] | VSTW VR2, *+AR0[16]\n"
      "SSTDW R5:R4, *+AR8[2] | VSTW VR3, *+AR0[32]\n"
      "SBR R63\nSNOP 6\n",
      "registers:\n"
      "  R0: -2\n  R1: 0xFFFFFFFFFFFFFFFE\n  R2: \"f32:1.5\"\n  R3: \"f64:-2.5\"\n  R4: 18446744073709551615\n"
      "  AR8: 0x100\n  AR0: 0x200\n"
      "  VR1: \"f32:0.25\"\n  VR2: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, \"f64:15\"]\n"
      "  VR3: [" +
          [] {
            std::string words;
            for (int i = 0; i < 32; ++i)
              words += (i > 0 ? ", " : "") + std::string("\"f32:") + std::to_string(i) + "\"";
            return words;
          }() +
          "]\n"
          "dump:\n  - {space: sm, address: 0x100, bytes: 48, file: r.bin}\n"
          "  - {space: am, address: 0x200, bytes: 384, file: v.bin}\n");
  CHECK(json.at("status") == "done");
  const auto r = folder.read_values<std::uint64_t>("r.bin");
  CHECK(r[0] == r[1]);
  CHECK(r[1] == 0xFFFF'FFFF'FFFF'FFFE);
  CHECK(r[2] == std::bit_cast<std::uint32_t>(1.5F));
  CHECK(r[3] == std::bit_cast<std::uint64_t>(-2.5));
  CHECK(r[4] == ~std::uint64_t{0});
  CHECK(r[5] == 0);  // not named: zero
  const auto words = folder.read_values<float>("v.bin");
  const auto lanes = folder.read_values<std::uint64_t>("v.bin");
  for (std::size_t i = 0; i < 32; ++i) CHECK(words[i] == 0.25F);
  for (std::uint64_t l = 0; l < 15; ++l) CHECK(lanes[16 + l] == l);
  CHECK(lanes[31] == std::bit_cast<std::uint64_t>(15.0));
  for (std::size_t i = 0; i < 32; ++i) CHECK(words[64 + i] == static_cast<float>(i));
  CHECK(json.at("assumed").at("instructions") == nlohmann::json{"SSTDW"});
}

TEST_CASE("memory is filled from files and bytes, zero elsewhere", "[exec]") {
  const Folder folder;
  folder.write("a.bin", "0123456789");
  exec(folder, "SBR R63\nSNOP 6\n",
       "memory:\n  - {space: sm, address: 8, file: a.bin, bytes: 4}\n  - {space: sm, address: 10, fill: 0x2a, bytes: "
       "1}\n"
       "dump:\n  - {space: sm, address: 0, bytes: 16, file: out.bin}\n");
  CHECK(folder.read("out.bin") == std::string(8, '\0') + "01*3" + std::string(4, '\0'));
}

TEST_CASE("operands name the registers of %n and entry the first packet", "[exec]") {
  const Folder folder;
  const auto json = exec(folder,
                         "first: SBR R63\nSNOP 6\n"
                         "second: SMVAGA.M1 %0, AR8\nSNOP 1\nSSTW %1, *AR8\nSBR R63\nSNOP 6\n",
                         "entry: second\noperands: [R20, R22]\nregisters: {R20: 64, R22: 7}\n"
                         "dump:\n  - {space: sm, address: 64, bytes: 8, file: out.bin}\n");
  CHECK(json.at("cycles") == 1 + 1 + 1 + 7);
  CHECK(folder.read_values<std::uint64_t>("out.bin") == std::vector<std::uint64_t>{7});
}

TEST_CASE("without operands %n is R10, R12, R14, ...", "[exec]") {
  const Folder folder;
  exec(folder, "SMVAGA.M1 %0, AR8\nSNOP 1\nSSTW %2, *AR8\nSBR R63\nSNOP 6\n",
       "registers: {R10: 16, R14: 9}\ndump:\n  - {space: sm, address: 16, bytes: 8, file: out.bin}\n");
  CHECK(folder.read_values<std::uint64_t>("out.bin") == std::vector<std::uint64_t>{9});
}

TEST_CASE("a fault ends the run with exit 1 and says where", "[exec]") {
  const Folder folder;
  const auto json =
      exec(folder, "SNOP 2\nSSTW R1, *AR8\nSBR R63\nSNOP 6\n",
           "registers: {AR8: 0x10000, R1: 5}\ndump:\n  - {space: sm, address: 0, bytes: 8, file: out.bin}\n", 1);
  CHECK(json.at("status") == "fault");
  const auto& fault = json.at("fault");
  CHECK(fault.at("kind") == "address");
  CHECK(fault.at("core") == 0);
  CHECK(fault.at("cycle") == 2);
  CHECK(fault.at("pc") == 1);
  CHECK_THAT(fault.at("packet").get<std::string>(), Contains("SSTW"));
  CHECK_THAT(fault.at("place").get<std::string>(), Contains("k.s:2:"));
  CHECK_THAT(fault.at("message").get<std::string>(), Contains("0x10000"));
  CHECK(folder.has("out.bin"));  // the state at the fault can be looked at
}

TEST_CASE("other faults have their names", "[exec]") {
  struct Case {
    std::string packets, kind;
  };
  const auto [packets, kind] = GENERATE(values<Case>({
      {"SLDW *AR8, R1\nSBR R63\nSNOP 6\n", "alignment"},
      {"SNOP 3\n", "end_of_program"},
      {"SBR R63\nSBR R63\nSNOP 6\n", "two_taken_branches"},
      {"SBR R5\nSNOP 6\n", "branch_target"},
  }));
  INFO(kind);
  const auto json = exec(Folder(), packets, "registers: {AR8: 4, R5: 12}\n", 1);
  CHECK(json.at("status") == "fault");
  CHECK(json.at("fault").at("kind") == kind);
}

TEST_CASE("an endless loop ends at max_cycles with exit 1", "[exec]") {
  const Folder folder;
  const auto json = exec(folder, "loop: SBR loop\nSNOP 6\n", "max_cycles: 1000\n", 1);
  CHECK(json.at("status") == "max_cycles");
  CHECK(json.at("fault").at("kind") == "runaway");
  CHECK(json.at("cycles").get<int>() >= 1000);
  CHECK(json.at("cycles").get<int>() <= 1007);
  CHECK_THAT(json.at("notes").dump(), Contains("endless loop"));
}

TEST_CASE("an endless loop without max_cycles ends too", "[exec]") {
  const auto json = exec(Folder(), "loop: SBR loop\nSNOP 6\n", "", 1);
  CHECK(json.at("status") == "max_cycles");
}

TEST_CASE("cycles are packets and idles whatever the branches cut", "[exec]") {
  // The branch of cycle 0 takes effect at cycle 7, in the middle of SNOP 9.
  const auto json = exec(Folder(), "SBR out\nSNOP 9\nSNOP 9\nout: SBR R63\nSNOP 6\n", "");
  CHECK(json.at("cycles") == 14);
  CHECK(json.at("packets") == 4);
  CHECK(json.at("idles") == 10);
}

TEST_CASE("--annotate counts issues and names the empty slots of each source line", "[exec]") {
  const Folder folder;
  folder.write("k.s", k_scale);
  folder.write("k.yaml", k_scale_spec);
  folder.write_values("x.bin", ramp());
  const auto json = folder.mtsim("exec k.yaml --annotate --json -").json();
  bool found = false;
  for (const auto& line : json.at("lines")) {
    if (line.at("line") != 13) continue;
    found = true;
    CHECK(line.at("issues") == 4);
    CHECK(line.at("empty_slots").size() == 9);
    CHECK_THAT(line.at("text").get<std::string>(), Contains("VFMULAS32"));
  }
  CHECK(found);
  const CommandResult text = folder.mtsim("exec k.yaml --annotate");
  CHECK_THAT(text.out, Contains("; Y[32 n] = a * X[32 n], FP32"));
  CHECK_THAT(text.out, Contains("empty: SMAC1 SMAC2 SIEU SLDST VMAC2 VMAC3 VIEU VLDST1 VLDST2"));
}

TEST_CASE("--annotate lists what .rept made of a line", "[exec]") {
  const Folder folder;
  folder.write("k.s", ".rept 3\nSADD.M1 1, R0, R0\n.endr\nSBR R63\nSNOP 6\n");
  folder.write("k.yaml", "program: k.s\n");
  const CommandResult result = folder.mtsim("exec k.yaml --annotate");
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.out, Contains("packet 2: SADD.M1 1, R0, R0"));
}

TEST_CASE("a machine with other latencies re-checks the hand schedule", "[exec]") {
  const Folder folder;
  folder.write("k.s", k_scale);
  folder.write("k.yaml", k_scale_spec);
  folder.write_values("x.bin", ramp());
  const CommandResult result = folder.mtsim("exec k.yaml --set latencies.VLDW=12");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("VR2"));
}

TEST_CASE("the examples of the repository run", "[exec]") {
  const CommandResult result =
      Folder().mtsim("exec " + mtsim::test::source("scenarios/examples/axpy.yaml") + " --json -");
  REQUIRE(result.exit_code == 0);
  CHECK(result.json().at("macs") == 128);
}
