// SPDX-License-Identifier: Apache-2.0
#include "sim/config/machine.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "sim/config/machine_files.h"
#include "tests/sim/config/support.h"

using namespace mtsim;
using namespace mtsim::sim;
using namespace mtsim::sim::test;

namespace {

/// What a what-if over mt3000 says.
std::string error_of_what_if(const std::string& text) {
  return error_of([&] { Machine::parse("extends: mt3000\n" + text, "w.yaml"); });
}

std::string error_of_set(const std::string& set) {
  return error_of([&] { Machine::load("mt3000", {set}); });
}

std::string mt3000_text() { return read_text_file(Machine::load("mt3000").path()); }

/// mt3000.yaml with one piece of its text replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = mt3000_text();
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of_edit(const std::string& from, const std::string& to) {
  const auto text = edited(from, to);
  return error_of([&] { Machine::parse(text, "m.yaml"); });
}

const MachineNumber& number(const Machine& machine, const std::string& key) {
  const auto& numbers = machine.numbers();
  const auto found = std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.key == key; });
  REQUIRE(found != numbers.end());
  return *found;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("mt3000 loads with the numbers of the paper", "[machine]") {
  const auto machine = Machine::load("mt3000");
  const auto& config = machine.config();
  CHECK(config.name == "mt3000");
  CHECK(config.core.clock_ghz == 1.8);
  CHECK(config.core.sm_bytes == 64 * 1024);
  CHECK(config.core.am_bytes == 768 * 1024);
  CHECK(config.cluster.cores == 24);
  CHECK(config.cluster.gsm_bytes == 6 * 1024 * 1024);
  CHECK(config.ddr.memory_model == "bandwidth");
  CHECK(config.dma.channels == 16);
  CHECK(config.dma.broadcast_factor == 0.9);
  CHECK(config.pipeline == isa::Pipeline());
  CHECK(config.peak_gmac_s(2) == Approx(4147.2));  // / 1024 = the paper's 4.05 T in FP32
  CHECK(config.peak_gmac_s(4) == Approx(8294.4));
  CHECK(config.cycles_per_us() == Approx(1800));
  CHECK(config.milliseconds(1'800'000) == Approx(1));
}

TEST_CASE("every number of mt3000 has one line with a source, and lies in its plausible range", "[machine]") {
  const auto machine = Machine::load("mt3000");
  CHECK(machine.numbers().size() == 32);
  std::set<std::string> keys;
  for (const auto& line : machine.numbers()) {
    INFO(line.key);
    CHECK(keys.insert(line.key).second);
    CHECK_FALSE(line.value.empty());
    CHECK_FALSE(line.source.empty());
    CHECK_FALSE(line.overridden);
    if (line.key == "ddr.memory_model" || line.key == "core.absent_units") continue;
    CHECK_FALSE(line.unit.empty());
    CHECK(line.range_low <= machine.get(line.key));
    CHECK(machine.get(line.key) <= line.range_high);
  }
}

TEST_CASE("every shipped machine loads by its name", "[machine]") {
  const auto names = machine_names();
  CHECK(std::count(names.begin(), names.end(), "mt3000") == 1);
  for (const auto& name : names) CHECK(Machine::load(name).config().name == name);
}

TEST_CASE("an unknown machine is refused with the shipped ones", "[machine]") {
  const auto text = error_of([] { Machine::load("mt300"); });
  CHECK(contains(text, "error: unknown machine 'mt300'; shipped machines: "));
  CHECK(contains(text, "mt3000"));
  CHECK(contains(text, "; did you mean 'mt3000'?"));
  CHECK(contains(error_of([] { Machine::load("./none.yaml"); }), "cannot read './none.yaml': No such file"));
}

TEST_CASE("MTSIM_MACHINES adds a folder of machines", "[machine]") {
  Folder folder;
  folder.write("fast.yaml", "extends: mt3000\nddr: {bandwidth_gb_s: 60}\n");
  REQUIRE(::setenv("MTSIM_MACHINES", folder.path("").c_str(), 1) == 0);
  const auto names = machine_names();
  const auto bandwidth = Machine::load("fast").config().ddr.bandwidth_gb_s;
  ::unsetenv("MTSIM_MACHINES");
  CHECK(std::count(names.begin(), names.end(), "fast") == 1);
  CHECK(bandwidth == 60);
}

TEST_CASE("an installation uses its own machines before those of the source tree", "[machine]") {
  Folder prefix;
  namespace fs = std::filesystem;
  const fs::path executable = fs::path(prefix.path("bin")) / "mtsim";
  const auto before = machine_folders(executable);
  REQUIRE(before.size() == 1);  // nothing installed: the source tree alone
  const fs::path installed = fs::path(prefix.path("share")) / "mtsim" / "machines";
  fs::create_directories(installed);
  CHECK(machine_folders(executable) == std::vector<fs::path>{installed, before[0]});
  REQUIRE(::setenv("MTSIM_MACHINES", "/mine", 1) == 0);
  const auto with_variable = machine_folders(executable);
  ::unsetenv("MTSIM_MACHINES");
  CHECK(with_variable == std::vector<fs::path>{"/mine", installed, before[0]});
}

TEST_CASE("a what-if is a base and the few values that differ", "[machine]") {
  const auto machine = Machine::parse(
      "extends: mt3000\n"
      "ddr: {bandwidth_gb_s: 60}\n"
      "dma:\n"
      "  start_us: {value: 0.2, source: published, from: \"a data sheet\", range: [0.1, 0.3]}\n"
      "latencies: {VLDW: 8, SADDA_AR8_15: 3}\n",
      "dir/what_if.yaml");
  const auto base = Machine::load("mt3000");
  CHECK(machine.config().name == "what_if");
  CHECK(machine.path() == "dir/what_if.yaml");
  CHECK(machine.config().ddr.bandwidth_gb_s == 60);
  CHECK(machine.config().core.clock_ghz == base.config().core.clock_ghz);
  CHECK(machine.config().pipeline.str() == "VLDW=8 SADDA_AR8_15=3");

  const auto& bandwidth = number(machine, "ddr.bandwidth_gb_s");
  CHECK(bandwidth.value == "60");
  CHECK(bandwidth.unit == "GB/s");
  CHECK(bandwidth.overridden);
  CHECK(bandwidth.provenance == Provenance::assumed);
  CHECK(bandwidth.source == "set in what_if.yaml (mt3000: " + number(base, "ddr.bandwidth_gb_s").value + ")");
  CHECK(bandwidth.range_low == number(base, "ddr.bandwidth_gb_s").range_low);

  const auto& start = number(machine, "dma.start_us");
  CHECK(start.overridden);
  CHECK(start.provenance == Provenance::published);
  CHECK(start.source == "a data sheet");
  CHECK(start.range_low == 0.1);
  CHECK_FALSE(number(machine, "core.clock_ghz").overridden);

  CHECK(number(machine, "latencies.VLDW").value == "8");
  CHECK(number(machine, "latencies.VLDW").source == "set in what_if.yaml (mt3000: 9)");
  CHECK(machine.get("latencies.VLDW") == 8);
  CHECK(machine.get("latencies.SVBCAST") == 4);
}

TEST_CASE("a what-if may extend another file beside it", "[machine]") {
  Folder folder;
  folder.write("a.yaml", "extends: mt3000\nname: first\ncluster: {cores: 12}\nlatencies: {VLDW: 8}\n");
  const auto machine = Machine::load(folder.write("b.yaml", "extends: ./a.yaml\nlatencies: {VLDW: 7, SLDH: 6}\n"));
  CHECK(machine.config().name == "b");
  CHECK(machine.config().cluster.cores == 12);
  CHECK(machine.config().pipeline.str() == "VLDW=7 SLDH=6");
  CHECK(number(machine, "latencies.VLDW").source == "set in b.yaml (first: 8)");
  CHECK(machine.numbers().size() == 34);
}

TEST_CASE("machines that extend each other in a circle are refused", "[machine]") {
  Folder folder;
  const auto a = folder.write("a.yaml", "extends: b.yaml\n");
  folder.write("b.yaml", "extends: ./a.yaml\n");
  CHECK(error_of([&] { Machine::load(a); }) == folder.path("b.yaml") +
                                                   ":1:10: error: 'extends': machines extend each other in a circle: "
                                                   "a.yaml -> b.yaml -> a.yaml; one of them must stand alone");
  const auto self = folder.write("self.yaml", "extends: self.yaml\n");
  CHECK(contains(error_of([&] { Machine::load(self); }), "self.yaml -> self.yaml"));
}

TEST_CASE("a base that does not exist is refused where it is named", "[machine]") {
  CHECK(contains(error_of([] { Machine::parse("extends: mt3001\n", "w.yaml"); }),
                 "w.yaml:1:10: error: 'extends': unknown machine 'mt3001'; shipped machines: "));
  CHECK(contains(error_of([] { Machine::parse("extends: none.yaml\n", "w.yaml"); }),
                 "w.yaml:1:10: error: 'extends': cannot read 'none.yaml': No such file"));
  CHECK(
      contains(error_of([] { Machine::parse("extends:\n", "w.yaml"); }), "'extends': expected a value, found nothing"));
}

TEST_CASE("each wrong key or value of a what-if has one clear message", "[machine]") {
  CHECK(contains(
      error_of_what_if("ddr: {bandwith_gb_s: 60}"),
      "w.yaml:2:7: error: unknown key 'bandwith_gb_s' in 'ddr'; known keys: bytes, overhead_bytes, bandwidth_gb_s, "
      "row_cost_ns, memory_model; did you mean 'bandwidth_gb_s'?"));
  CHECK(contains(error_of_what_if("drd: {bytes: 60}"), "w.yaml:2:1: error: unknown key 'drd'; known keys: "));
  CHECK(error_of_what_if("cluster: {cores: 024}") ==
        "w.yaml:2:18: error: 'cluster.cores': expected an integer, found '024'; a leading zero may mean octal; write "
        "'24'");
  CHECK(error_of_what_if("cluster: {cores: 24, cores: 12}") ==
        "w.yaml:2:22: error: duplicate key 'cores' in 'cluster'; first at line 2; remove one");
  CHECK(error_of_what_if("cluster: {cores: 1.5}") ==
        "w.yaml:2:18: error: 'cluster.cores': expected an integer, found '1.5'");
  CHECK(contains(error_of_what_if("cluster: {cores: \"24\"}"), "remove the quotes"));
  CHECK(contains(error_of_what_if("cluster: {cores: yes}"), "'cluster.cores': expected an integer, found 'yes'"));
  CHECK(contains(error_of_what_if("cluster: {cores: [24]}"), "'cluster.cores': expected a value, found a list"));
  CHECK(contains(error_of_what_if("cluster: 24"), "w.yaml:2:10: error: 'cluster': expected a mapping, found '24'"));
  CHECK(contains(error_of_what_if("cluster: {cores:}"), "'cluster.cores': expected a value, found nothing"));
  CHECK(contains(error_of_what_if("ddr: {bandwidth_gb_s: {unit: GB/s}}"), "'ddr.bandwidth_gb_s': missing key 'value'"));
  CHECK(error_of_what_if("ddr: {bandwidth_gb_s: {value: 60, unit: MB/s}}") ==
        "w.yaml:2:41: error: 'ddr.bandwidth_gb_s.unit': expected GB/s, found 'MB/s'; give the value in GB/s");
  CHECK(contains(error_of_what_if("ddr: {bandwidth_gb_s: {value: 60, source: fited}}"),
                 "unknown source 'fited'; a number is paper, published, assumed or fitted; did you mean 'fitted'?"));
  CHECK(contains(error_of_what_if("ddr: {bandwidth_gb_s: {value: 60, range: [4, 3]}}"), "ends before it starts"));
  CHECK(contains(error_of_what_if("ddr: {bandwidth_gb_s: {value: 60, range: [4]}}"), "expected two numbers, found 1"));
  CHECK(contains(error_of_what_if("ddr: {bandwidth_gb_s: {value: 60, range: 4}}"), "expected a list, found '4'"));
  CHECK(contains(error_of_what_if("ddr: {bandwidth_gb_s: {value: 60, rnge: [3, 4]}}"), "did you mean 'range'?"));
  CHECK(contains(error_of_what_if("ddr: {memory_model: {value: bandwidth, unit: name}}"), "unknown key 'unit'"));
  CHECK(contains(error_of_what_if("name: \"\""), "'name': expected a name, found ''"));
}

TEST_CASE("a value outside its plausible range is a what-if, an impossible one is refused", "[machine]") {
  CHECK(Machine::load("mt3000", {"ddr.bandwidth_gb_s=400"}).config().ddr.bandwidth_gb_s == 400);
  CHECK(
      error_of_what_if("ddr: {bandwidth_gb_s: 0}") ==
      "w.yaml:2:23: error: 'ddr.bandwidth_gb_s': no machine has 0 GB/s; a possible value is at least 0.001 and at most "
      "100000");
  for (const char* text :
       {"core: {clock_ghz: -1.8}", "core: {sm_bytes: 0}", "core: {am_bytes: -1}", "core: {call_cycles: -1}",
        "cluster: {cores: 0}", "cluster: {cores: 65}", "cluster: {launch_us: -1}", "cluster: {barrier_us: -0.1}",
        "ddr: {bytes: 0}", "ddr: {row_cost_ns: -1}", "dma: {channels: 0}", "dma: {start_us: -1}",
        "dma: {broadcast_rendezvous_us: -6}", "dma: {broadcast_factor: 0}"})
    CHECK(contains(error_of_what_if(text), "no machine has "));
}

TEST_CASE("latencies are overridden by mnemonic", "[machine]") {
  CHECK(error_of_what_if("latencies: {VLWD: 8}") ==
        "w.yaml:2:13: error: 'latencies': unknown mnemonic 'VLWD'; did you mean 'VLDW'?");
  CHECK(contains(error_of_what_if("latencies: {vldw: 8}"), "unknown mnemonic 'vldw'; write 'VLDW'"));
  CHECK(contains(error_of_what_if("latencies: {VSTW: 8}"), "'VSTW' has no latency"));
  CHECK(contains(error_of_what_if("latencies: {SNOP: 2}"), "'SNOP' has no latency"));
  CHECK(contains(error_of_what_if("latencies: {VLDW: 0}"), "'latencies.VLDW': no machine has a latency of 0 cycles"));
  CHECK(contains(error_of_what_if("latencies: {VLDW: 64}"), "at most 63"));
  CHECK(contains(error_of_what_if("latencies: {VLDW: 08}"), "octal"));
  CHECK(contains(error_of_what_if("latencies: {VLDW: fast}"), "expected an integer, found 'fast'"));
  CHECK(contains(error_of_what_if("latencies: {VLDW: [8]}"), "expected a value, found a list"));
  CHECK(contains(error_of_what_if("latencies: [VLDW]"), "'latencies': expected a mapping, found a list"));
  CHECK(contains(error_of_what_if("latencies: {VLDW: {value: 8, unit: us}}"), "expected cycles, found 'us'"));
  const auto machine = Machine::parse(
      "extends: mt3000\nlatencies: {VLDW: {value: 8, unit: cycles, source: published, from: a table}}", "w.yaml");
  CHECK(number(machine, "latencies.VLDW").provenance == Provenance::published);
  CHECK(number(machine, "latencies.VLDW").source == "a table");
}

TEST_CASE("issue slots are taken away by name", "[machine]") {
  const auto machine = Machine::parse("extends: mt3000\ncore: {absent_units: [VMAC3, VLDST2]}\n", "w.yaml");
  CHECK(machine.config().pipeline.str() == "-VMAC3 -VLDST2");
  CHECK(number(machine, "core.absent_units").value == "[VMAC3, VLDST2]");
  CHECK(number(machine, "core.absent_units").source == "set in w.yaml (mt3000: [])");
  CHECK(error_of_what_if("core: {absent_units: [VMAC3, VMAC4]}") ==
        "w.yaml:2:30: error: 'core.absent_units[1]': unknown unit 'VMAC4'; did you mean 'VMAC1'?");
  CHECK(contains(error_of_what_if("core: {absent_units: [VPU]}"), "unknown unit 'VPU'; the units are SMAC1, SMAC2, "));
  CHECK(contains(error_of_what_if("core: {absent_units: [SIEU]}"),
                 "'core.absent_units': no machine lacks SIEU; SIEU cannot be taken away: SLT would have no slot"));
  CHECK(contains(error_of_what_if("core: {absent_units: [VMAC1, VMAC2, VMAC3]}"), "no slot to issue to"));
  CHECK(contains(error_of_what_if("core: {absent_units: VMAC3}"), "expected a list, found 'VMAC3'"));
  CHECK(contains(error_of_what_if("core: {absent_units: [[VMAC3]]}"), "expected a value, found a list"));
  CHECK(
      contains(error_of_edit("{value: [], ", "{value: 3, "), "'core.absent_units.value': expected a list, found '3'"));
}

TEST_CASE("--set takes issue slots away and gives them back", "[machine]") {
  for (const char* text : {"core.absent_units=VMAC3,SMAC2", "core.absent_units=[VMAC3, SMAC2]"}) {
    CHECK(Machine::load("mt3000", {text}).config().pipeline.str() == "-SMAC2 -VMAC3");
  }
  CHECK(Machine::load("whatif_two_vmacs", {"core.absent_units=[]"}).config().pipeline.str() == "VFMULAS32=8 VLDW=12");
  CHECK(contains(error_of_set("core.absent_units=VMAC3,,VMAC2"), "unknown unit ''"));
  CHECK(contains(error_of_set("core.absent_units=[VLDST3]"), "unknown unit 'VLDST3'; did you mean 'VLDST1'?"));
}

TEST_CASE("the peak counts the vector multipliers that are there", "[machine]") {
  const auto machine = Machine::load("whatif_two_vmacs");
  CHECK(machine.config().pipeline.str() == "VFMULAS32=8 VLDW=12 -VMAC3");
  CHECK(machine.config().peak_gmac_s(2) == Approx(4147.2 * 2 / 3));
}

TEST_CASE("a machine that stands alone says everything about every number", "[machine]") {
  CHECK(Machine::parse(mt3000_text(), "m.yaml").config().name == "mt3000");
  CHECK(contains(error_of_edit("source: fitted,    range: [30, 34]", "source: fitted"),
                 "'ddr.bandwidth_gb_s': missing key 'range'"));
  CHECK(contains(error_of_edit("unit: GHz,    source", "source"), "'core.clock_ghz': missing key 'unit'"));
  CHECK(contains(error_of_edit("name: mt3000\n", ""), "missing key 'name'"));
  CHECK(contains(error_of_edit("unit: GHz", "unit: MHz"), "'core.clock_ghz.unit': expected GHz, found 'MHz'"));
  const auto bare = error_of([] { Machine::parse("name: m\nddr: {bandwidth_gb_s: 60}\n", "m.yaml"); });
  CHECK(contains(bare,
                 "m.yaml:2:23: error: 'ddr.bandwidth_gb_s': expected {value, unit, source, from, range}, found '60'; "
                 "a machine that extends no other says where each number comes from"));
  CHECK(contains(bare, "missing key 'core'"));
  CHECK(contains(bare, "'ddr': missing key 'bytes'"));
}

TEST_CASE("--set changes one number and says so", "[machine]") {
  const auto machine = Machine::load(
      "mt3000", {"ddr.bandwidth_gb_s=60", "latencies.VLDW=8", "cluster.cores=0x10", "ddr.memory_model=banks"});
  CHECK(machine.config().ddr.bandwidth_gb_s == 60);
  CHECK(machine.config().pipeline.str() == "VLDW=8");
  CHECK(machine.config().cluster.cores == 16);
  CHECK(machine.config().ddr.memory_model == "banks");
  CHECK(number(machine, "cluster.cores").source == "--set (mt3000: 24)");
  CHECK(number(machine, "cluster.cores").overridden);
  CHECK(number(machine, "latencies.VLDW").source == "--set (mt3000: 9)");
}

TEST_CASE("a wrong --set is refused with the text and what to write", "[machine]") {
  CHECK(error_of_set("ddr.bandwith_gb_s=60") ==
        "error: --set ddr.bandwith_gb_s=60: unknown key 'ddr.bandwith_gb_s'; did you mean 'ddr.bandwidth_gb_s'?");
  CHECK(contains(error_of_set("bandwidth_gb_s=60"), "did you mean 'ddr.bandwidth_gb_s'?"));
  CHECK(contains(error_of_set("speed=60"), "unknown key 'speed'; known keys: core.clock_ghz, "));
  CHECK(contains(error_of_set("ddr.bandwidth_gb_s"), "no '='; write key=value"));
  CHECK(contains(error_of_set("ddr.bandwidth_gb_s="), "expected a number, found ''"));
  CHECK(contains(error_of_set("cluster.cores=010"), "write '10'"));
  CHECK(contains(error_of_set("cluster.cores=65"), "at least 1 and at most 64"));
  CHECK(contains(error_of_set("latencies.VLWD=8"), "unknown mnemonic 'VLWD'; did you mean 'VLDW'?"));
  CHECK(contains(error_of_set("latencies.VLDW=0"), "no machine has a latency of 0 cycles"));
  const auto both = error_of([] { Machine::load("mt3000", {"a=1", "cluster.cores=x"}); });
  CHECK(contains(both, "--set a=1: "));
  CHECK(contains(both, "--set cluster.cores=x: "));
}

TEST_CASE("get and set take the keys of --set", "[machine]") {
  auto machine = Machine::load("mt3000");
  machine.set("dma.channels", "8");
  CHECK(machine.get("dma.channels") == 8);
  CHECK(machine.get("latencies.SADDA_AR8_15") == 2);
  CHECK(contains(error_of([&] { machine.set("dma.chanels", "8"); }), "did you mean 'dma.channels'?"));
  CHECK(contains(error_of([&] { machine.get("dma.chanels"); }), "did you mean 'dma.channels'?"));
  CHECK(contains(error_of([&] { machine.get("ddr.memory_model"); }), "is not a number"));
  CHECK(contains(error_of([&] { machine.get("latencies.VLWD"); }), "did you mean 'VLDW'?"));
}

TEST_CASE("the fingerprint follows everything that decides timing and nothing else", "[machine]") {
  const auto base = Machine::load("mt3000");
  CHECK(base.fingerprint() == Machine::load("mt3000").fingerprint());
  CHECK(base.fingerprint() == Machine::parse("extends: mt3000\nname: other\n", "w.yaml").fingerprint());
  CHECK(base.fingerprint() == Machine::load("mt3000", {"latencies.VLDW=9"}).fingerprint());
  std::set<std::uint64_t> seen = {base.fingerprint()};
  for (const auto& line : base.numbers()) {
    INFO(line.key);
    auto machine = base;
    const bool is_bytes = line.unit == "B";
    machine.set(line.key, line.key == "ddr.memory_model"    ? "other"
                          : line.key == "core.absent_units" ? "VMAC3"
                          : is_bytes                        ? "4096"
                          : line.unit == "flag"             ? "1"
                                                            : "61");
    CHECK(seen.insert(machine.fingerprint()).second);
  }
  CHECK(seen.insert(Machine::load("mt3000", {"latencies.VLDW=8"}).fingerprint()).second);
  CHECK(seen.insert(Machine::load("mt3000", {"latencies.SADDA_AR8_15=3"}).fingerprint()).second);
}
