// SPDX-License-Identifier: Apache-2.0
// What holds for every operator there is, in this process on one cluster.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "isa/diagnostic.h"
#include "scenarios/operands.h"
#include "scenarios/operator_runner.h"
#include "scenarios/regress.h"

namespace mtsim::scenarios {
namespace {

sim::Machine machine(const std::vector<std::string>& sets = {}) { return sim::Machine::load("mt3000", sets); }

OperatorRunner& runner() {
  ::setenv("MTSIM_MEMO", "off", 0);  // nothing learnt by another process
  static OperatorRunner the_runner(machine());
  the_runner.set_machine(machine());
  return the_runner;
}

/// A dimension nobody gives a value for takes one of these, so that shapes are odd and unlike each other. Heads have
/// 128 elements.
Shape odd_shape(const Operator& op, int size) {
  static constexpr std::int64_t k_sizes[][4] = {{1, 1, 1, 1}, {7, 129, 35, 3}, {29, 515, 130, 5}};
  static constexpr std::int64_t k_heads[] = {1, 3, 5};
  Shape shape;
  std::size_t next = 0;
  for (const Dimension& dimension : op.info().dimensions) {
    const std::int64_t chosen = dimension.name == "heads" ? k_heads[size] : k_sizes[size][next++ % 4];
    shape.push_back(dimension.value.value_or(chosen));
  }
  return shape;
}

OperatorRequest request(const Operator& op, DType dtype, int size, const std::string& variant = "") {
  OperatorRequest r;
  r.op = &op;
  r.spec = {odd_shape(op, size), dtype, parse_variant(op, variant), ""};
  if (variant == "decode") {  // of one token, whose context is odd
    const auto& dimensions = op.info().dimensions;
    const auto seq =
        std::find_if(dimensions.begin(), dimensions.end(), [](const Dimension& d) { return d.name == "seq"; });
    const auto at = static_cast<std::size_t>(seq - dimensions.begin());
    REQUIRE(dimensions.at(at + 1).name == "context");
    r.spec.shape[at + 1] = std::exchange(r.spec.shape[at], 1);
  }
  return r;
}

/// The default, and each word that is not and that the type has.
std::vector<std::string> variants(const Operator& op, DType dtype) {
  std::vector<std::string> words = {""};
  for (const VariantGroup& group : op.info().variants)
    words.insert(words.end(), group.words.begin() + 1, group.words.end());
  std::erase_if(words, [&](const std::string& word) { return dtype == DType::f32 && word.ends_with("_sums"); });
  return words;
}

std::string text(const OperatorRequest& r) {
  return fmt::format("{} {} {} {}", r.op->info().name, shape_text(*r.op, r.spec.shape), to_string(r.spec.dtype),
                     fmt::join(r.spec.variant, ","));
}

}  // namespace

TEST_CASE("every operator is right on odd shapes in every variant and takes the same cycles in both depths",
          "[operators]") {
  const int size = GENERATE(0, 1, 2);
  for (const Operator* op : operators()) {
    for (const DType dtype : op->info().dtypes) {
      for (const std::string& variant : variants(*op, dtype)) {
        OperatorRequest r = request(*op, dtype, size, variant);
        INFO(text(r));
        r.options = {.depth = sim::Depth::functional, .memo = false, .verify = true};
        const OperatorOutcome functional = runner().run(r);
        for (const auto& finding : functional.launch.findings) FAIL_CHECK(finding.message);
        for (const auto& note : functional.launch.notes) CHECK(note.kind != "not-covered");
        REQUIRE(functional.verification);
        INFO("worst error / bound " << functional.verification->worst_ratio);
        CHECK(functional.verification->passed());

        r.options = {.depth = sim::Depth::timing};
        CHECK(runner().run(r).launch.cycles == functional.launch.cycles);
      }
    }
  }
}

TEST_CASE("the values of every operator do not depend on how fast memory and cores meet", "[operators]") {
  const auto sets = GENERATE(values<std::vector<std::string>>(
      {{"ddr.bandwidth_gb_s=1"}, {"ddr.bandwidth_gb_s=2000", "dma.start_us=0"}, {"cluster.port_bandwidth_gb_s=0.5"}}));
  INFO(sets.front());
  for (const Operator* op : operators()) {
    for (const DType dtype : op->info().dtypes) {
      OperatorRequest r = request(*op, dtype, 2);
      INFO(text(r));
      r.options = {.depth = sim::Depth::functional, .verify = true};
      OperatorRunner& other = runner();
      other.set_machine(machine(sets));
      CHECK(other.run(r).passed());
    }
  }
}

TEST_CASE(
    "on a machine with fewer units and other latencies scheduled kernels stay right and hand schedules are refused",
    "[operators][whatif]") {
  OperatorRunner& whatif = runner();
  whatif.set_machine(sim::Machine::load("whatif_two_vmacs", {}));
  // By hand: add, which bias calls too, and the large microkernels of the GEMM, which attention multiplies with.
  const auto by_hand = [](const std::string_view op, const std::string& variant) {
    if (variant == "naive") return false;
    return op == "add" || op == "attention" || op == "bias" || (op == "gemm" && variant != "out_in") ||
           op == "linear_rope";
  };
  for (const Operator* op : operators()) {
    for (const DType dtype : op->info().dtypes) {
      for (const std::string& variant : variants(*op, dtype)) {
        OperatorRequest r = request(*op, dtype, 1, variant);
        r.options = {.depth = sim::Depth::functional, .verify = true};
        const std::string what = fmt::format("{} {} {}", op->info().name, to_string(dtype), variant);
        INFO(what);
        try {
          const OperatorOutcome outcome = whatif.run(r);
          CHECK(outcome.passed());
          CHECK_FALSE(by_hand(op->info().name, variant));
        } catch (const isa::IsaError& error) {
          CHECK_THAT(error.what(), Catch::Contains("is scheduled for VFMULAS32=6 and this machine has 8") ||
                                       Catch::Contains("is scheduled for a machine with VMAC3"));
          CHECK(by_hand(op->info().name, variant));
        }
      }
    }
  }
}

TEST_CASE("an operator allocates no more than it plans, but for the alignment", "[operators]") {
  constexpr std::int64_t k_alignment = 16 * 256;  // of each buffer
  for (const Operator* op : operators()) {
    const OperatorOutcome outcome = runner().run(request(*op, op->info().dtypes.front(), 2));
    INFO(text(outcome.request));
    for (const auto& core : outcome.launch.cores) {
      CHECK(core.am_bytes <= outcome.plan.at("memory").at("am_bytes").get<std::int64_t>() + k_alignment);
      CHECK(core.sm_bytes <= outcome.plan.at("memory").at("sm_bytes").get<std::int64_t>() + k_alignment);
    }
    CHECK(outcome.launch.gsm_bytes <= outcome.plan.at("memory").at("gsm_bytes").get<std::int64_t>() + k_alignment);
  }
}

TEST_CASE("every microkernel and every operator has a regression case", "[operators]") {
  std::set<std::string_view> programs, names;
  std::vector<RegressFile> files;
  for (const std::string& path : regress_paths({MTSIM_SOURCE "/tests/regress"}))
    files.push_back(load_regress_file(path));
  for (const RegressFile& file : files) {
    for (const RegressCase& the_case : file.cases) {
      if (the_case.microkernel) programs.insert(the_case.microkernel->program);
      if (the_case.request) names.insert(the_case.request->op->info().name);
    }
  }
  for (const std::string_view name : kernels::names()) {
    INFO("add a case with 'program: " << name << "' to a file of tests/regress");
    CHECK(programs.contains(name));
  }
  for (const Operator* op : operators()) {
    INFO("add a case with 'operator: " << op->info().name << "' to a file of tests/regress");
    CHECK(names.contains(op->info().name));
  }
}

TEST_CASE("FP16 on the host is IEEE: every code comes back, ties go to even, subnormals stay", "[operands]") {
  for (int code = 0; code < 0x10000; ++code) {
    const auto bits = static_cast<std::uint16_t>(code);
    const bool is_nan = (bits & 0x7C00) == 0x7C00 && (bits & 0x3FF) != 0;
    if ((is_nan ? 0x7E00 : bits) != to_f16(from_f16(bits))) FAIL_CHECK(fmt::format("code {:#06x}", bits));
  }
  CHECK(to_f16(1 + 0x1p-11) == 0x3C00);  // half way: the even one
  CHECK(to_f16(1 + 3 * 0x1p-11) == 0x3C02);
  CHECK(to_f16(0x1p-25) == 0);
  CHECK(to_f16(0x1.000001p-25) == 1);
  CHECK(to_f16(65519.99) == 0x7BFF);
  CHECK(to_f16(65520) == 0x7C00);
  CHECK(to_f16(-65520) == 0xFC00);
}

}  // namespace mtsim::scenarios
