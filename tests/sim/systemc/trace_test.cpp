// SPDX-License-Identifier: Apache-2.0
// What the trace writers put down is what the launch did.
#include "sim/trace.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/config/yaml.h"
#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

constexpr std::int64_t k_bytes = 1024;
constexpr Pointer k_ddr_start{Space::ddr, -1, 0};

/// Two cores load, compute and store three times, with a barrier at the end.
LaunchResult run(Observer* observer) {
  Cluster& cluster = fresh({.observer = observer});
  const Kernel copy = load(cluster, k_copy_kernel);
  return cluster.launch(
      [&](Dsp& dsp) {
        const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
        for (int i = 0; i < 3; ++i) {
          dsp.dma_wait(dsp.dma_p2p(k_ddr_start, {4, 256, 256}, x, {4, 256, 0}));
          dsp.call(copy, {x, y, Pointer{Space::sm, static_cast<std::int16_t>(dsp.thread_id()), 0}, 8});
          const Pointer out = k_ddr_start + 65536 * (1 + dsp.thread_id());
          dsp.dma_wait(dsp.dma_p2p(y, {1, k_bytes, 0}, out, {1, k_bytes, 0}));
        }
        dsp.group_barrier(0);
      },
      2);
}

struct TempFile {
  std::string path = std::filesystem::temp_directory_path() / ("mtsim_trace_" + std::to_string(::getpid()));
  ~TempFile() { std::remove(path.c_str()); }
  std::string text() const {
    std::ifstream file(path);
    std::ostringstream out;
    out << file.rdbuf();
    return out.str();
  }
};

struct Slice {
  std::string name;
  std::int64_t from = 0, cycles = 0;
  nlohmann::json arguments;
};

struct Trace {
  std::map<std::pair<int, int>, std::vector<Slice>> slices;  // by process and track
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::string, std::vector<std::pair<std::int64_t, double>>> counters;
};

Trace traced(TraceWindow window, LaunchResult* result = nullptr, std::vector<std::string>* notes = nullptr) {
  TempFile file;
  TraceWriter writer(file.path, window, 1000);
  const LaunchResult launched = run(&writer);
  writer.finish();
  if (result != nullptr) *result = launched;
  if (notes != nullptr) *notes = writer.notes();
  const auto cycles = [](const nlohmann::json& us) { return std::llround(1000 * us.get<double>()); };
  Trace trace;
  const auto json = nlohmann::json::parse(file.text());
  for (const auto& event : json.at("traceEvents")) {
    const std::string phase = event.at("ph");
    const int process = event.at("pid");
    if (phase == "X") {
      trace.slices[{process, event.at("tid")}].push_back(
          {event.at("name"), cycles(event.at("ts")), cycles(event.at("dur")), event.at("args")});
    } else if (phase == "C") {
      trace.counters[event.at("name")].emplace_back(cycles(event.at("ts")), event.at("args").begin().value());
    } else if (event.at("name") == "thread_name") {
      trace.names[{process, event.at("tid")}] = event.at("args").at("name");
    }
  }
  return trace;
}

}  // namespace

TEST_CASE("the tracks of the cores hold every cycle under its name", "[trace]") {
  LaunchResult result;
  const Trace trace = traced({}, &result);
  for (int core = 0; core < 2; ++core) {
    const auto& slices = trace.slices.at({core + 1, 0});
    CHECK(trace.names.at({core + 1, 0}) == "core");
    std::map<std::string, std::int64_t> sums;
    std::int64_t at = 0;
    for (const Slice& slice : slices) {
      CHECK(slice.from == at);  // none missing, none overlaps
      at = slice.from + slice.cycles;
      sums[slice.name] += slice.cycles;
    }
    CHECK(at + of(result.cores[core], CycleClass::idle_tail) == result.cycles);
    CHECK(sums["bench"] == of(result.cores[core], CycleClass::busy));
    for (const CycleClass c : {CycleClass::call, CycleClass::dma_issue, CycleClass::dma_wait, CycleClass::barrier,
                               CycleClass::launch, CycleClass::scalar_assumed}) {
      CHECK(sums[std::string(name(c))] == of(result.cores[core], c));
    }
  }
}

TEST_CASE("the channels' tracks hold every transfer with its path, bytes and source line", "[trace]") {
  LaunchResult result;
  const Trace trace = traced({}, &result);
  const auto& slices = trace.slices.at({1, 10});
  CHECK(trace.names.at({1, 10}) == "channel 0");
  REQUIRE(slices.size() == 6);
  CHECK(slices[0].name == "dma_p2p ddr->am 1024 B");
  CHECK(slices[0].arguments.at("rows") == 4);
  CHECK(slices[0].arguments.at("from") == "ddr+0x0");
  CHECK_THAT(slices[0].arguments.at("at").get<std::string>(), Catch::Contains("systemc/trace_test.cpp:"));
  CHECK(slices[1].name == "dma_p2p am->ddr 1024 B");
  for (std::size_t i = 1; i < slices.size(); ++i) CHECK(slices[i].from >= slices[i - 1].from + slices[i - 1].cycles);
}

TEST_CASE("the counters show the DDR in use while bytes cross it", "[trace]") {
  const Trace trace = traced({});
  const auto& ddr = trace.counters.at("DDR busy");
  CHECK(ddr.front().second == 0);
  CHECK(ddr.back().second == 0);
  CHECK(std::any_of(ddr.begin(), ddr.end(), [](const auto& sample) { return sample.second == 100; }));
  // Percent of the DDR times cycles is what moved: 2 cores, 6 transfers of 1024 bytes at 10 bytes a cycle.
  double busy = 0;
  for (std::size_t i = 1; i < ddr.size(); ++i)
    busy += ddr[i - 1].second * static_cast<double>(ddr[i].first - ddr[i - 1].first);
  CHECK(busy / 100 == Approx(2 * 6 * 1024 / k_ddr).margin(12));  // transfers end on whole cycles
}

TEST_CASE("a window keeps what meets it, and a small one has the packets", "[trace]") {
  const Trace all = traced({0, 20'000});
  const auto& calls = all.slices.at({1, 0});
  const auto call = std::find_if(calls.begin(), calls.end(), [](const Slice& s) { return s.name == "bench"; });
  REQUIRE(call != calls.end());
  const TraceWindow window{call->from, call->from + call->cycles};
  const Trace trace = traced(window);
  for (const auto& [track, slices] : trace.slices) {
    for (const Slice& slice : slices) CHECK(window.meets(slice.from, slice.from + slice.cycles));
  }
  CHECK(trace.slices.at({1, 0}).size() == 1);
  const auto& packets = trace.slices.at({1, 1});
  std::int64_t at = call->from;
  for (const Slice& packet : packets) {
    CHECK(packet.from == at);
    at += packet.cycles;
  }
  CHECK(at == call->from + call->cycles);
  CHECK(packets[0].name == "SMAC1 SMAC2");
  CHECK_THAT(packets[0].arguments.at("text").get<std::string>(), Catch::Contains("SMVAGA.M1 R10, AR0"));
  std::vector<std::string> notes;
  CHECK(traced({0, 20'001}, nullptr, &notes).slices.count({1, 1}) == 0);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::Contains("at most 20000 cycles"));
}

TEST_CASE("a trace changes nothing that is simulated", "[trace]") {
  LaunchResult with;
  traced({}, &with);
  const LaunchResult without = run(nullptr);
  CHECK(with.cycles == without.cycles);
  CHECK(with.findings.size() == without.findings.size());
}

TEST_CASE("the DDR's requests are all in its trace", "[trace][ddr]") {
  TempFile file;
  DramTraceWriter writer(file.path);
  run(&writer);
  writer.finish();
  std::istringstream lines(file.text());
  std::string line;
  std::getline(lines, line);
  CHECK(line == "cycle,core,channel,kind,address,rows,row_bytes,pitch_bytes");
  std::map<char, int> count;
  std::string first;
  while (std::getline(lines, line)) {
    if (first.empty()) first = line;
    ++count[line.find(",R,") != std::string::npos ? 'R' : 'W'];
  }
  CHECK(count['R'] == 6);
  CHECK(count['W'] == 6);
  CHECK_THAT(first, Catch::EndsWith(",0,R,0x0,4,256,512"));  // either core's
}

TEST_CASE("a window that is none, and a file that cannot be written, are refused", "[trace]") {
  CHECK(parse_trace_window("100:200", 1000).from == 100);
  CHECK(parse_trace_window("1.5us:2us", 1000).from == 1500);
  CHECK(parse_trace_window("1.5us:2us", 1000).to == 2000);
  CHECK(parse_trace_window(":200", 1000).from == 0);
  CHECK(parse_trace_window("100:", 1000).to == INT64_MAX);
  for (const char* text : {"100", "a:b", "5:5", "9:5", "-1:5", "1x:5", "1ms:5ms"}) {
    CHECK_THROWS_AS(parse_trace_window(text, 1000), ConfigError);
  }
  CHECK_THROWS_WITH(TraceWriter("/no/such/folder/t.json", {}, 1000), Catch::Contains("/no/such/folder/t.json"));
}
