// SPDX-License-Identifier: Apache-2.0
// Scheduled linear assembly computes what the same instructions compute one after the other. The reference is the text
// itself: one instruction a packet, each drained before the next, so that no schedule can be right by accident.
#include <catch2/catch.hpp>

#include <map>
#include <random>
#include <sstream>

#include "bench_core.h"
#include "isa/checker.h"
#include "isa/reschedule.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

// Linear code and the registers its names stand for when it is executed one by one.
struct LinearText {
  std::vector<std::pair<std::string, std::string>> names;  // name -> register of the reference
  std::vector<std::string> lines;                          // instructions, labels ("loop:"), directives
  bool independent = false;

  void declare(const std::string& name, const std::string& reg) { names.emplace_back(name, reg); }

  std::string linear() const {
    std::ostringstream text;
    text << k_parameters << ".linear\n" << (independent ? ".independent\n" : "");
    for (const auto& [name, reg] : names)
      text << ".reg " << reg.substr(0, reg.find_first_of("0123456789")) << ", " << name << "\n";
    for (const std::string& line : lines) text << line << "\n";
    text << "SBR R63\n.endlinear\n";
    return text.str();
  }

  // One instruction a packet, then as many idle cycles as the slowest result needs.
  std::string one_by_one() const {
    std::ostringstream text;
    text << k_parameters;
    for (const std::string& line : lines) {
      if (line[0] == '.') continue;
      const std::size_t colon = line.find(':');
      if (colon != std::string::npos && line.find(' ') > colon) {
        text << line.substr(0, colon + 1) << "\n";
        continue;
      }
      // A branch has just its delay slots: what would issue behind them is not part of the loop.
      const bool branch = line.find("SBR ") != std::string::npos;
      text << with_unit(with_registers(line)) << (branch ? "\nSNOP 6\n" : "\nSNOP 40\n");
    }
    text << "SBR R63\nSNOP 6\n";
    return text.str();
  }

  static inline const std::string k_parameters =
      ".param x, R10, pointer am\n.param y, R12, pointer am\n.param s, R14, pointer sm\n.param n, R16, count\n";

 private:
  std::string with_registers(const std::string& line) const {
    std::string out, word;
    const auto flush = [&] {
      for (const auto& [name, reg] : names) {
        if (name == word) word = reg;
      }
      for (const auto& [name, reg] :
           std::map<std::string, std::string>{{"x", "R10"}, {"y", "R12"}, {"s", "R14"}, {"n", "R16"}}) {
        if (name == word) word = reg;
      }
      out += word;
      word.clear();
    };
    for (const char c : line) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_') {
        word += c;
      } else {
        flush();
        out += c;
      }
    }
    flush();
    return out;
  }

  static std::string with_unit(const std::string& line) {
    const std::size_t start = line[0] == '[' ? line.find(']') + 2 : 0;
    const std::size_t end = line.find(' ', start);
    const isa::Row* row = isa::find_row(line.substr(start, end - start));
    REQUIRE(row != nullptr);
    const bool mac = (row->units & (isa::units::VMAC | isa::units::SMAC)) != 0;
    return line.substr(0, end) + (mac ? ".M1" : "") + line.substr(end);
  }
};

// A random counted loop: loads, broadcasts, arithmetic on carried and local values, predicates, stores.
class RandomLoop {
 public:
  explicit RandomLoop(unsigned seed) : m_random(seed) {}

  LinearText text(int trip_minimum) {
    LinearText out;
    for (const auto& [name, reg] : std::map<std::string, std::string>{{"px", "AR0"},
                                                                      {"py", "AR1"},
                                                                      {"ps", "AR8"},
                                                                      {"k", "R0"},
                                                                      {"even", "R1"},
                                                                      {"sum", "R20"},
                                                                      {"t", "R21"},
                                                                      {"w", "R22"},
                                                                      {"w1", "R25"},
                                                                      {"w0", "R24"}})
      out.declare(name, reg);
    for (int i = 0; i < k_accumulators; ++i) out.declare(acc(i), "VR" + std::to_string(40 + i));
    for (int i = 0; i < k_pairs; ++i) {
      out.declare("a" + std::to_string(2 * i), "VR" + std::to_string(2 * i));
      out.declare("a" + std::to_string(2 * i + 1), "VR" + std::to_string(2 * i + 1));
    }
    for (int i = 0; i < k_temporaries; ++i) out.declare(temporary(i), "VR" + std::to_string(20 + i));
    out.independent = chance(2);
    out.lines = {"SMVAGA x, px", "SMVAGA y, py", "SMVAGA s, ps", "SADD 0, n, k", "SMOVI24 1, even", "SMOVI24 0, sum"};
    for (int i = 0; i < k_accumulators; ++i) out.lines.push_back("VMOVI " + std::to_string(i) + ", " + acc(i));
    out.lines.push_back("loop:");
    if (trip_minimum > 1) out.lines.push_back(".trip " + std::to_string(trip_minimum));
    body(out);
    out.lines.push_back("[k] SBR loop");
    for (int i = 0; i < k_accumulators; ++i)
      out.lines.push_back("VSTW " + acc(i) + ", *+py[" + std::to_string(16 * i) + "]");
    out.lines.push_back("SSTW sum, *ps");
    return out;
  }

 private:
  static constexpr int k_accumulators = 3, k_pairs = 3, k_temporaries = 4;
  static std::string acc(int i) { return "acc" + std::to_string(i); }
  static std::string temporary(int i) { return "t" + std::to_string(i); }
  int below(int bound) { return static_cast<int>(m_random() % static_cast<unsigned>(bound)); }
  bool chance(int one_in) { return below(one_in) == 0; }

  std::string value() { return m_values[static_cast<std::size_t>(below(static_cast<int>(m_values.size())))]; }

  void body(LinearText& out) {
    auto& lines = out.lines;
    m_values = {acc(0), acc(1), acc(2)};
    const bool in_place = chance(3);
    lines.push_back("SLDDW *ps++[1], w1:w0");
    const int loads = 1 + below(k_pairs);
    for (int i = 0; i < loads; ++i) {
      const std::string low = "a" + std::to_string(2 * i), high = "a" + std::to_string(2 * i + 1);
      lines.push_back(i + 1 < loads
                          ? "VLDDW *+px[" + std::to_string(16 * (i + 1)) + "], " + high + ":" + low
                          : "VLDDW *px++[" + std::to_string(in_place ? 0 : 16 * loads) + "], " + high + ":" + low);
      m_values.push_back(low);
      m_values.push_back(high);
    }
    const int count = 3 + below(14);
    for (int i = 0; i < count; ++i) operation(lines);
    if (in_place) {
      lines.push_back("VSTW " + value() + ", *px++[" + std::to_string(16 * loads) + "]");
    } else {
      lines.push_back("VSTW " + value() + ", *py++[16]");
    }
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(lines.size()) - below(3), "SSUB 1, k, k");
    if (chance(3)) lines.push_back("SADD k, sum, sum");
  }

  void operation(std::vector<std::string>& lines) {
    const std::string to = chance(3) ? acc(below(k_accumulators)) : temporary(below(k_temporaries));
    switch (below(8)) {
      case 0: lines.push_back("VFMULAS32 " + value() + ", " + value() + ", " + value() + ", " + to); break;
      case 1: {
        const std::string a = acc(below(k_accumulators));
        lines.push_back("VFMULAS32 " + value() + ", " + value() + ", " + a + ", " + a);
        return;
      }
      case 2: lines.push_back("VBALE2 " + value() + ", " + value() + ", " + to); break;
      case 3: lines.push_back("SVBCAST " + std::string(chance(2) ? "w0" : "w1") + ", " + to); break;
      case 4: lines.push_back("VMOV " + value() + ", " + to); break;
      case 5:
        lines.push_back("SLT w0, sum, t");
        lines.push_back("SADD t, sum, sum");
        return;
      case 6:
        lines.push_back("SEQ 0, even, even");
        lines.push_back(std::string(chance(2) ? "[even]" : "[!even]") + " SADD w1, sum, sum");
        return;
      default: lines.push_back("VBALE2H " + value() + ", " + value() + ", " + to); break;
    }
    m_values.push_back(to);
  }

  std::mt19937 m_random;
  std::vector<std::string> m_values;
};

// Memories after a run with n iterations.
struct Outcome {
  RunResult result;
  std::vector<std::byte> sm, am;
};

Outcome run(const isa::Program& program, const isa::Pipeline& pipeline, int n, unsigned seed) {
  BenchCore core;
  std::mt19937 random(seed);
  for (std::size_t i = 0; i < core.am.size(); i += 4)
    core.poke(core.am, i, static_cast<float>(static_cast<int>(random() % 64) - 32) / 16);
  for (std::size_t i = 0; i < core.sm.size(); i += 4)
    core.poke(core.sm, i, static_cast<float>(static_cast<int>(random() % 64) - 32) / 16);
  core.r(10) = 0;
  core.r(12) = 0x40000;
  core.r(14) = 64;
  core.r(16) = static_cast<std::uint64_t>(n);
  Outcome outcome;
  outcome.result = core.run(program, {}, pipeline);
  outcome.sm = core.sm;
  outcome.am = core.am;
  return outcome;
}

void check_clean(const isa::Program& program, const isa::Pipeline& pipeline) {
  for (const isa::Diagnostic& diagnostic : isa::check(program, pipeline)) {
    const bool dead_value = diagnostic.code == "overwritten-unused";  // random code computes values nothing reads
    if (diagnostic.severity == isa::Severity::note && diagnostic.code != "assumed-shape") continue;
    if (dead_value || diagnostic.message.find("post-modify") == 0) continue;
    UNSCOPED_INFO(diagnostic.str());
    CHECK(false);
  }
}

// Loops within a loop: pointers and sums live from one to the next and around, values land where loops begin.
LinearText random_nest(unsigned seed) {
  std::mt19937 random(seed);
  const auto any = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
  LinearText text;
  text.independent = any(2) == 0;  // it loads from X and stores to Y
  for (const auto& [name, reg] : std::map<std::string, std::string>{
           {"p0", "AR0"}, {"p1", "AR1"}, {"p2", "AR2"}, {"py", "AR3"}, {"k", "R0"}, {"o", "R1"}})
    text.declare(name, reg);
  for (int i = 0; i < 3; ++i) text.declare("sum" + std::to_string(i), "VR" + std::to_string(40 + i));
  for (int i = 0; i < 4; ++i) text.declare("v" + std::to_string(i), "VR" + std::to_string(50 + i));
  const auto pointer = [&] { return "p" + std::to_string(any(3)); };
  const auto sum = [&] { return "sum" + std::to_string(any(3)); };
  text.lines = {"SMVAGA x, p0",  "SMVAGA x, p1",  "SMVAGA x, p2", "SMVAGA y, py",
                "VMOVI 0, sum0", "VMOVI 0, sum1", "SADD 0, n, o", "VMOVI 0, sum2"};
  text.lines.push_back("outer:");
  const int loops = 1 + any(3);
  for (int loop = 0; loop < loops; ++loop) {
    if (any(2) == 0) text.lines.push_back("SMVAGA x, " + pointer());
    text.lines.push_back("SMOVI24 " + std::to_string(4 + any(3)) + ", k");
    text.lines.push_back("loop" + std::to_string(loop) + ":");
    text.lines.emplace_back(".trip 4");
    const int loads = 1 + any(3);
    for (int i = 0; i < loads; ++i) {
      const std::string v = "v" + std::to_string(i), total = sum();
      text.lines.push_back("VLDW *" + pointer() + "++[16], " + v);
      if (any(2) == 0) text.lines.push_back("VFMULAS32 " + v + ", " + sum() + ", " + total + ", " + total);
      if (any(2) == 0) text.lines.push_back("VSTW " + (any(2) == 0 ? v : total) + ", *py++[16]");
    }
    text.lines.emplace_back("SSUB 1, k, k");
    text.lines.push_back("[k] SBR loop" + std::to_string(loop));
  }
  text.lines.insert(text.lines.end(), {"SSUB 1, o, o", "[o] SBR outer", "VSTW sum0, *+py[0]", "VSTW sum1, *+py[16]",
                                       "VSTW sum2, *+py[32]"});
  return text;
}

}  // namespace

TEST_CASE("a value that lives longer than the interval gets a copy", "[core][linear]") {
  // a0 is read when it lands and again three FMA later: 18 cycles, and seven VLDW slots a row would allow 8.
  LinearText text;
  text.independent = true;
  text.declare("px", "AR0");
  text.declare("py", "AR1");
  text.declare("k", "R0");
  for (const std::string name : {"a", "b", "c", "d"}) text.declare(name, "VR" + std::to_string(name[0] - 'a'));
  text.lines = {"SMVAGA x, px",      "SMVAGA y, py",         "SADD 0, n, k",         "loop:",
                "VLDW *px++[16], a", "VFMULAS32 a, a, a, b", "VFMULAS32 b, b, a, c", "VFMULAS32 c, c, a, d",
                "VSTW d, *py++[16]", "SSUB 1, k, k",         "[k] SBR loop"};
  const isa::Program program = isa::assemble(text.linear(), "linear.s");
  const isa::LoopReport& report = program.linear_loops.at(0);
  CAPTURE(isa::print(report));
  CHECK(report.interval == 7);
  CHECK(report.copies >= 1);
  const isa::Program reference = isa::assemble(text.one_by_one(), "reference.s");
  for (const int n : {1, 3, 12}) CHECK((run(program, {}, n, 7).am == run(reference, {}, n, 7).am));
}

TEST_CASE("scheduled random nests of loops give the bits of one instruction after the other", "[core][linear]") {
  isa::Pipeline slower;
  slower.override(isa::Mnemonic::VLDW, 12);
  slower.override(isa::Mnemonic::VFMULAS32, 8);
  for (unsigned seed = 0; seed < 60; ++seed) {
    const LinearText text = random_nest(seed);
    const std::string linear = text.linear();
    CAPTURE(seed, linear);
    const isa::Program reference = isa::assemble(text.one_by_one(), "reference.s");
    for (const isa::Pipeline& pipeline : {isa::Pipeline{}, slower}) {
      const isa::Program program =
          isa::assemble(linear, "linear.s", {.operands = {}, .defines = {}, .pipeline = pipeline});
      for (const int n : {1, 3}) {
        const Outcome expected = run(reference, {}, n, seed), got = run(program, pipeline, n, seed);
        REQUIRE(expected.result.status == RunStatus::done);
        REQUIRE(got.result.status == RunStatus::done);
        CHECK((got.am == expected.am));
      }
    }
  }
}

TEST_CASE("scheduled random loops give the bits of one instruction after the other", "[core][linear]") {
  isa::Pipeline slower;
  slower.override(isa::Mnemonic::VFMULAS32, 8);
  slower.override(isa::Mnemonic::VLDDW, 12);
  slower.remove(isa::Unit::VMAC3);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const int minimum = seed % 3 == 0 ? 1 : 6;
    const LinearText text = RandomLoop(seed).text(minimum);
    const std::string linear = text.linear();
    CAPTURE(seed, linear);
    const isa::Pipeline reference_pipeline;
    const isa::Program reference = isa::assemble(text.one_by_one(), "reference.s");
    for (const isa::Pipeline& pipeline : {isa::Pipeline{}, slower}) {
      const isa::Program program =
          isa::assemble(linear, "linear.s", {.operands = {}, .defines = {}, .pipeline = pipeline});
      check_clean(program, pipeline);
      REQUIRE(program.linear_loops.size() == 1);
      const isa::LoopReport& report = program.linear_loops[0];
      CAPTURE(isa::print(report));
      // Where one dependence cycle takes the whole iteration, overlapping gains nothing.
      CHECK((report.pipelined || report.interval == report.recurrence.cycles));
      // Of units and dependences of the loop as written: neither copies nor lifetimes excuse anything.
      CHECK(report.interval <= report.bound() + 1);
      for (const int n : {minimum, minimum + 1, 9}) {
        const Outcome expected = run(reference, reference_pipeline, n, seed);
        const Outcome got = run(program, pipeline, n, seed);
        REQUIRE(expected.result.status == RunStatus::done);
        REQUIRE(got.result.status == RunStatus::done);
        CHECK((got.am == expected.am));
        CHECK((got.sm == expected.sm));
        CHECK(got.result.cycles < expected.result.cycles);
      }
    }
  }
}

TEST_CASE("the doctor's loops give the bits of the packets they replace", "[core][reschedule]") {
  int replaced = 0, copies = 0;
  for (unsigned seed = 1; seed <= 40; ++seed) {
    const LinearText text = RandomLoop(seed).text(1);
    const isa::Program hand = isa::assemble(text.one_by_one(), "hand.s");
    const isa::Rescheduled result =
        isa::reschedule(hand, {}, {.allow_assumed = false, .independent = text.independent});
    REQUIRE(result.loops.size() == 1);
    const std::string report = isa::print(result.loops[0]);
    CAPTURE(seed, report);
    if (!result.loops[0].replaced) continue;
    ++replaced;
    copies += result.loops[0].report.copies;
    for (const int n : {1, 2, 9}) {
      const Outcome expected = run(hand, {}, n, seed), got = run(result.program, {}, n, seed);
      REQUIRE(got.result.status == RunStatus::done);
      CHECK((got.am == expected.am));
      CHECK((got.sm == expected.sm));
    }
  }
  UNSCOPED_INFO("replaced " << replaced << ", copies " << copies);
  CHECK(replaced >= 30);
  CHECK(copies > 0);
}
