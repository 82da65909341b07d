// SPDX-License-Identifier: Apache-2.0
// mtsim schedule --html: the file, the data in it, and what is refused. tests/scenarios/browser looks at it in a
// browser.
#include <catch2/catch.hpp>

#include <map>
#include <set>

#include "tests/scenarios/command.h"

namespace mtsim::test {
namespace {

using nlohmann::json;

const std::string k_gemm = source("kernels/gemm/gemm_f32_6x128.s");
const std::string k_axpy = source("scenarios/examples/axpy.s");

std::size_t count_of(const std::string& text, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

json data_of(const std::string& html) {
  const std::string_view start = "<script type=\"application/json\" id=\"data\">";
  const std::size_t first = html.find(start);
  REQUIRE(first != std::string::npos);
  const std::size_t from = first + start.size();
  return json::parse(html.substr(from, html.find("</script>", from) - from));
}

/// The data of the page that `mtsim schedule ARGUMENTS --html f.html` writes.
json page_of(const Folder& folder, const std::string& arguments) {
  const CommandResult result = folder.mtsim("schedule " + arguments + " --html f.html");
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return data_of(folder.read("f.html"));
}

json hazards_of(const json& schedule) {
  json hazards = json::array();
  for (const json& finding : schedule["findings"]) {
    if (finding["hazard"]) hazards.push_back(finding);
  }
  return hazards;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const std::size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), with);
}

const char* k_latency =
    ".param word, R10, pointer sm\n"
    "  SMVAGA.M1 R10, AR8 | SMOVI24 1, R2\n"
    "  SADD.M1 R2, R2, R3\n"
    "  SLDW *AR8, R2\n"
    "  SNOP 6\n"
    "  SSTW R2, *+AR8[1]\n"
    "  SBR R63\n"
    "  SNOP 6\n";
const char* k_latency_spec =
    "program: k.s\n"
    "memory:\n"
    "  - {space: sm, address: 0, fill: 0x2a, bytes: 8}\n";

}  // namespace

TEST_CASE("the page of the 6x128 kernel has Table I's sixteen cycles, with both bounds", "[page]") {
  const Folder folder;
  const CommandResult result = folder.mtsim("schedule " + k_gemm + " --html f.html");
  CHECK(result.exit_code == 0);
  CHECK(result.out == "f.html: 70 packets, 1 loop, 0 hazards; open it in a browser\n");
  const json page = data_of(folder.read("f.html"));
  REQUIRE(page["schedules"].size() == 1);
  CHECK(page["run"].is_null());
  const json& schedule = page["schedules"][0];
  REQUIRE(schedule["units"].size() == 11);

  std::vector<std::string> kinds;
  for (const json& part : schedule["parts"]) kinds.push_back(part["kind"]);
  CHECK(kinds == std::vector<std::string>{"prologue", "loop", "epilogue", "prologue"});
  const json& part = schedule["parts"][1];
  CHECK(part["last"].get<int>() - part["first"].get<int>() == 16);
  std::map<int, int> by_unit;
  for (const json& cell : schedule["cells"]) {
    if (cell["packet"] >= part["first"] && cell["packet"] < part["last"]) ++by_unit[cell["unit"].get<int>()];
  }
  CHECK(by_unit == std::map<int, int>{{0, 12}, {1, 3}, {2, 12}, {3, 12}, {4, 1}, {5, 16}, {6, 16}, {7, 16}, {9, 4}});

  const json& loop = schedule["loops"].at(0);
  CHECK(loop["interval"] == 16);
  CHECK(loop["report"]["resource_bound"] == 16);
  CHECK(loop["report"]["recurrence_bound"] == 12);
  CHECK(loop["report"]["resources"][0]["name"] == "VMAC");
  CHECK(hazards_of(schedule).empty());
}

TEST_CASE("an operand chain goes from the loads of one stream to the arithmetic", "[page]") {
  const Folder folder;
  const json schedule = page_of(folder, k_gemm)["schedules"][0];
  std::vector<std::string> names;
  for (const json& chain : schedule["chains"]) names.push_back(chain["name"]);
  CHECK(names == std::vector<std::string>{"", "x through AR8", "w through AR0", "y through AR1", "x through AR9",
                                          "w through AR2"});
  // Row 0 of the loop adds X1[.][k even], which AR8 loaded; row 8 the odd one.
  std::map<int, std::set<int>> chains;
  for (const json& cell : schedule["cells"]) {
    if (cell["operation"] == "VFMULAS32") chains[cell["packet"].get<int>()].insert(cell["chain"].get<int>());
  }
  CHECK(chains[16] == std::set<int>{1});
  CHECK(chains[24] == std::set<int>{4});
}

TEST_CASE("an arrow says how long a result takes and when it is read", "[page]") {
  const Folder folder;
  folder.write("k.s", k_latency);
  const json schedule = page_of(folder, "k.s")["schedules"][0];
  // [producer, consumer, register, latency, distance, next pass]; the load is cell 3, the store cell 5.
  const json& arrows = schedule["arrows"];
  CHECK(std::find(arrows.begin(), arrows.end(), json{3, 5, "R2", 7, 7, false}) != arrows.end());
  CHECK(std::find(arrows.begin(), arrows.end(), json{-1, 0, "R10", 0, 0, false}) != arrows.end());
}

TEST_CASE("a kernel with an SNOP removed or shortened shows its hazard with a sentence", "[page]") {
  const Folder folder;
  folder.write("k.s", k_latency);
  folder.write("shorter.s", replaced(k_latency, "SNOP 6\n  SSTW", "SNOP 5\n  SSTW"));
  folder.write("axpy.s", replaced(folder.read(k_axpy), "  SNOP 1\n", ""));
  CHECK(hazards_of(page_of(folder, "k.s")["schedules"][0]).empty());
  CHECK(hazards_of(page_of(folder, k_axpy)["schedules"][0]).empty());

  const json shorter = hazards_of(page_of(folder, "shorter.s")["schedules"][0]);
  REQUIRE(shorter.size() == 1);
  CHECK(shorter[0]["message"] == "SSTW (line 6) reads the old R2: the result of SLDW (line 4) lands 1 cycle later");
  CHECK(shorter[0]["cells"] == json{5});

  const json removed = hazards_of(page_of(folder, "axpy.s")["schedules"][0]);
  REQUIRE_FALSE(removed.empty());
  CHECK_THAT(removed[0]["message"].get<std::string>(), Catch::Contains("reads the old OR0"));
  CHECK(removed[0]["cells"].size() == 1);
}

TEST_CASE("of the copies of a repeated line only those that read early are marked", "[page]") {
  const Folder folder;
  folder.write("k.s",
               "SLDW *AR8, R2 | SADD.M1 R2, R2, R4\n"
               ".rept 8, i\n"
               "SADD R2, R3, R3\n"
               ".endr\n"
               "SSTW R3, *AR8 | SADD.M1 R4, R4, R5\nSBR R63\nSNOP 6\n");
  json cells;
  for (const json& hazard : hazards_of(page_of(folder, "k.s")["schedules"][0])) {
    if (hazard["code"] == "read-in-flight") cells = hazard["cells"];
  }
  CHECK(cells == json{2, 3, 4, 5, 6, 7});  // one to six cycles behind the load
}

TEST_CASE("what the scheduler reads early on purpose is no hazard", "[page]") {
  const Folder folder;
  const json schedule = page_of(folder, source("kernels/softmax/softmax.s"))["schedules"][0];
  CHECK(hazards_of(schedule).empty());
  int kernels = 0;
  for (const json& part : schedule["parts"]) kernels += part["kind"] == "loop" ? 1 : 0;
  CHECK(kernels == 6);
}

TEST_CASE("the page is one file that needs no other, whatever the source holds", "[page]") {
  const Folder folder;
  const std::string evil = "</script><script>alert(1)</script><!-- <b>&";
  folder.write("@DATA@<b>.s", replaced(k_latency, "R3\n", "R3 ; " + evil + "\n") + "; \xff no UTF-8\n");
  const json page = page_of(folder, "'@DATA@<b>.s'");
  const std::string html = folder.read("f.html");
  CHECK(count_of(html, "<script") == 2);
  CHECK(count_of(html, "</script>") == 2);
  CHECK(count_of(html, "<b>.s") == 0);
  CHECK_THAT(html, Catch::Contains("<title>@DATA@&lt;b&gt; "));
  CHECK(page["schedules"][0]["packets"][1]["comment"] == evil);
  for (const char* outside : {"src=", "href=\"http", "@import", "url(", "fetch(", "XMLHttpRequest"}) {
    INFO(outside);
    CHECK(count_of(html, outside) == 0);
  }
}

TEST_CASE("a recorded run holds what exec computes, cycle by cycle", "[page]") {
  const Folder folder;
  folder.write("k.s", k_latency);
  folder.write("k.yaml", k_latency_spec);
  const json run = page_of(folder, "k.s --run k.yaml")["run"];
  CHECK(run["status"] == "done");
  CHECK(run["cut"] == false);
  CHECK(run["cycles"] == folder.mtsim("exec k.yaml --json -").json()["cycles"]);
  CHECK(run["memory"] == json{{{"space", "sm"}, {"address", 0}, {"data", "2a2a2a2a2a2a2a2a"}}});
  REQUIRE(run["steps"].size() == 7);
  const json& load = run["steps"][2];
  CHECK(load["c"] == 2);
  CHECK(load["i"][0][0] == "R2");
  CHECK(load["i"][0][1] == 9);  // lands
  CHECK(load["i"][0][2] == "2a2a2a2a2a2a2a2a");
  CHECK(run["steps"][3]["l"] == json{load["i"][0][4]});
  CHECK(run["steps"][4]["s"] == json{{"sm", 8, "2a2a2a2a2a2a2a2a"}});
}

TEST_CASE("a long run is cut and says so", "[page]") {
  const Folder folder;
  const std::string axpy = source("scenarios/examples/axpy.yaml");
  const json run = page_of(folder, k_axpy + " --run " + axpy + " --run-cycles 20")["run"];
  CHECK(run["cut"] == true);
  CHECK(run["recorded"].get<int>() >= 20);
  CHECK(run["recorded"].get<int>() < 30);  // the packet that reaches it may idle
  CHECK(run["cycles"] == 75);              // of the whole run
  CHECK(run["status"] == "done");
  const json whole = page_of(folder, k_axpy + " --run " + axpy)["run"];
  CHECK(whole["cut"] == false);
  CHECK(whole["cycles"] == 75);
  CHECK(whole["recorded"] == 75);
}

TEST_CASE("a page holds at most 256 KB of the memory a run starts with, and says what it lacks", "[page]") {
  const Folder folder;
  folder.write("k.s", k_latency);
  folder.write("k.yaml", std::string(k_latency_spec) + "  - {space: am, address: 0, fill: 1, bytes: 300000}\n");
  const json run = page_of(folder, "k.s --run k.yaml")["run"];
  CHECK(run["memory"][1]["data"].get<std::string>().size() == 2 * (256 * 1024 - 8));
  CHECK(run["memory_left_out"] == 300000 - (256 * 1024 - 8));
}

TEST_CASE("a run that faults ends in the page with the fault", "[page]") {
  const Folder folder;
  folder.write("k.s", "SMOVI 0x7fffffff, R1\nSMVAGA.M1 R1, AR8\nSNOP 1\nSLDW *AR8, R2\nSBR R63\nSNOP 6\n");
  folder.write("k.yaml", "program: k.s\n");
  const CommandResult made = folder.mtsim("schedule k.s --html f.html --run k.yaml");
  CHECK(made.exit_code == 1);
  CHECK_THAT(made.out, Catch::Contains("\nfault: k.s:4:1: core 0, cycle 3, pc 3: alignment fault: "));
  const json run = data_of(folder.read("f.html"))["run"];
  CHECK(run["status"] == "fault");
  CHECK(run["fault"]["kind"] == "alignment");
  CHECK(run["fault"]["cycle"] == 3);
  CHECK(run["fault"]["pc"] == 3);
  CHECK(run["fault"]["packet"] == "SLDW *AR8, R2");
  CHECK_THAT(made.out, Catch::Contains(run["fault"]["message"].get<std::string>()));
  CHECK(folder.mtsim("schedule k.s --html f.html --run k.yaml --json -").json()["fault"]["pc"] == 3);
}

TEST_CASE("a fault behind the recording is told as well, and so is the limit of the spec", "[page]") {
  const Folder folder;
  folder.write("k.s", "SMOVI24 0xF000, R2\nSMVAGA.M1 R2, AR8\nSNOP 1\nloop: SSTW R2, *AR8++[1] | SBR loop\nSNOP 6\n");
  folder.write("k.yaml", "program: k.s\n");
  const CommandResult made = folder.mtsim("schedule k.s --html f.html --run k.yaml --run-cycles 10");
  CHECK(made.exit_code == 1);
  CHECK_THAT(made.out, Catch::Contains(", a run of 3588 cycles, the first 10 recorded; ") &&
                           Catch::Contains("cycle 3587, pc 3: address fault"));
  folder.write("k.yaml", "program: k.s\nmax_cycles: 50\n");
  CHECK(folder.mtsim("schedule k.s --html f.html --run k.yaml").exit_code == 1);
  CHECK(data_of(folder.read("f.html"))["run"]["status"] == "max_cycles");
}

TEST_CASE("a result that nobody reads is a warning and no hazard", "[page]") {
  const Folder folder;
  folder.write("k.s", "SMOVI24 1, R2\nSMOVI24 2, R2\nSMVAGA.M1 R10, AR8\nSNOP 1\nSSTW R2, *AR8\nSBR R63\nSNOP 6\n");
  const CommandResult made = folder.mtsim("schedule k.s --html f.html");
  const json schedule = data_of(folder.read("f.html"))["schedules"][0];
  CHECK_THAT(made.out, Catch::Contains(", 1 hazard, 1 warning;"));
  int found = 0;
  for (const json& finding : schedule["findings"]) {
    if (finding["code"] != "overwritten-unused") continue;
    ++found;
    CHECK(finding["hazard"] == false);
    CHECK(finding["severity"] == "warning");
    CHECK(finding["place"] == "line 1");
  }
  CHECK(found == 1);
}

TEST_CASE("two schedules stand side by side, hand against hand and hand against scheduler", "[page]") {
  const Folder folder;
  folder.write("k.s", k_latency);
  const json hands = page_of(folder, k_axpy + " --compare k.s")["schedules"];
  REQUIRE(hands.size() == 2);
  CHECK(hands[0]["name"] == "axpy");
  CHECK(hands[1]["name"] == "k");
  folder.write("one.s", "SBR R63\nSNOP 6\n");
  CHECK(
      folder.mtsim("schedule k.s --html f.html --compare one.s").out ==
      "f.html: 7 packets, 0 loops, 0 hazards; beside it one.s: 2 packets, 0 loops, 0 hazards; open it in a browser\n");

  const std::string naive = source("kernels/naive/gemm_naive.s");
  const CommandResult doctor = folder.mtsim("schedule --reschedule " + naive + " --html f.html");
  CHECK(doctor.exit_code == 0);
  const json both = data_of(folder.read("f.html"))["schedules"];
  REQUIRE(both.size() == 2);
  CHECK(both[0]["loops"][0]["interval"] == 19);
  CHECK(both[1]["role"] == "the scheduler's");
  CHECK(both[1]["loops"][0]["interval"] == 7);
  CHECK(both[1]["loops"][0]["report"]["recurrence_bound"] == 6);
  CHECK(hazards_of(both[1]).empty());
  // What --reschedule prints is the same with and without a page.
  const std::string plain = folder.mtsim("schedule --reschedule " + naive).out;
  CHECK(doctor.out.substr(0, plain.size()) == plain);
  CHECK(doctor.out.substr(plain.size(), 8) == "f.html: ");
}

TEST_CASE("a loop the scheduler cannot take over is shown as it is, with the reason", "[page]") {
  const Folder folder;
  folder.write("by_two.s", replaced(folder.read(k_axpy), "SADD.M1 -1,", "SADD.M1 -2,"));
  const json both = page_of(folder, "--reschedule by_two.s")["schedules"];
  CHECK(both[1]["loops"] == both[0]["loops"]);
  CHECK_THAT(both[1]["remarks"].at(0).get<std::string>(), Catch::Contains("how often the loop runs is not known"));
}

TEST_CASE("a page opens at the kernel when it is asked for the label of a .linear loop", "[page]") {
  const Folder folder;
  folder.write("k.s",
               ".linear\n.independent\n.reg AR, p, q\n.reg VR, a, b\n.reg R, n\nSMVAGA R10, p\nSMVAGA R12, q\n"
               "SMOVI24 9, n\nloop: VLDW *p++[16], a\nVFMULAS32 a, a, a, b\nVSTW b, *q++[16]\nSSUB 1, n, n\n"
               "[n] SBR loop\nSBR R63\n.endlinear\n");
  const json page = page_of(folder, "k.s loop");
  CHECK(page["part"] == "loop.kernel");
  CHECK(page["schedules"][0]["labels"].contains("loop.kernel"));
}

TEST_CASE("the JSON of schedule is the same with a page", "[page]") {
  const Folder folder;
  const std::string plain = folder.mtsim("schedule " + k_axpy + " --json -").out;
  CHECK(folder.mtsim("schedule " + k_axpy + " --json - --html f.html").out == plain);
}

TEST_CASE("what makes no page is refused and leaves the files alone", "[page]") {
  const Folder folder;
  folder.write("k.s", k_latency);
  folder.write("other.s", std::string(k_latency) + "SNOP 1\n");
  folder.write("k.yaml", k_latency_spec);
  folder.write("n.s", "SADD.M1 %0, %0, %0\nSBR R63\nSNOP 6\n");
  folder.write("n.yaml", "program: n.s\noperands: [R20]\n");
  for (const auto& [arguments, message] : std::vector<std::pair<std::string, std::string>>{
           {"--compare other.s", "--compare goes with --html"},
           {"--run k.yaml", "--run goes with --html"},
           {"--run-cycles 5", "--run-cycles goes with --html"},
           {"--html f.html --run-cycles 5", "--run-cycles goes with --run"},
           {"--html f.html --run k.yaml --run-cycles 0", "too small"},
           {"--html f.html --run k.yaml --run-cycles 60000", "at most 50000"},
           {"--html f.html --compare other.s --reschedule", "choose one"},
           {"--html -", "name a file"},
           {"--html ''", "--html"},
           {"--html none/f.html", "no folder 'none'"},
           {"--html .", "is no file name"},
           {"--html k.s", "would overwrite 'k.s'"},
           {"--html other.s --compare other.s", "would overwrite 'other.s'"},
           {"--html k.yaml --run k.yaml", "would overwrite 'k.yaml'"},
           {"--html f.html --reschedule -o f.html", "would overwrite what -o writes"},
           {"--html f.html --json f.html", "would overwrite what --json writes"},
           {"--html f.html --compare none.s", "none.s"},
           {"--html f.html --run none.yaml", "none.yaml"},
           {"--html f.html --run n.yaml", "it runs 'n.s' and not 'k.s'"},
           {"--html f.html lop", "no loop, region or label 'lop'"}}) {
    INFO(arguments);
    const CommandResult result = folder.mtsim("schedule k.s " + arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, Catch::Contains(message));
    CHECK_FALSE(folder.has("f.html"));
  }
  folder.write("part.inc.s", "SADD.M1 R2, R2, R3\n");
  folder.write("whole.s", ".include \"part.inc.s\"\nSBR R63\nSNOP 6\n");
  CHECK(folder.mtsim("schedule whole.s --html part.inc.s").exit_code == 2);
  CHECK(folder.read("part.inc.s") == "SADD.M1 R2, R2, R3\n");
  const CommandResult operands = folder.mtsim("schedule n.s --html f.html --run n.yaml");
  CHECK(operands.exit_code == 2);
  CHECK_THAT(operands.err, Catch::Contains("its packets differ"));
  CHECK(folder.mtsim("schedule n.s --operands R20 --html f.html --run n.yaml").exit_code == 0);
  CHECK(folder.read("k.s") == k_latency);
  CHECK(folder.read("k.yaml") == k_latency_spec);
}

}  // namespace mtsim::test
