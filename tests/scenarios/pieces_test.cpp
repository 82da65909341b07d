// SPDX-License-Identifier: Apache-2.0
// A few of many equal pieces are simulated (CaseOptions::skip_pieces) and compared with the whole run.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "scenarios/operator_runner.h"

namespace mtsim::scenarios {
namespace {

OperatorOutcome run(const std::string& variant, std::int64_t heads, std::int64_t seq, bool skip) {
  ::setenv("MTSIM_MEMO", "off", 0);  // nothing learnt by another process
  static OperatorRunner runner(sim::Machine::load("mt3000"));
  OperatorRequest request;
  request.op = &require_operator("attention");
  request.spec = {{1, heads, 0, seq, 0, 128, 0, 0}, DType::f32, parse_variant(*request.op, variant), ""};
  request.options.skip_pieces = skip;
  return runner.run(request);
}

}  // namespace

TEST_CASE("heads that are not simulated take what the last simulated ones take", "[pieces]") {
  const std::string variant =
      GENERATE("mt", "mt,paper", "flash", "flash,paper", "unfused", "unfused,paper", "mt,causal");
  const std::int64_t seq = GENERATE(512, 1000, 2560), heads = GENERATE(19, 20);
  INFO(variant << " " << heads << " heads of " << seq);
  const OperatorOutcome all = run(variant, heads, seq, false), few = run(variant, heads, seq, true);
  CHECK(all.pieces == heads);
  CHECK(all.simulated_pieces == heads);
  CHECK(few.pieces == heads);
  CHECK(few.simulated_pieces == 4 + heads % 2);
  CHECK(few.launch.cycles == all.launch.cycles);
  CHECK(few.launch.bytes.read == all.launch.bytes.read);
  CHECK(few.launch.bytes.written == all.launch.bytes.written);
  CHECK(few.launch.dma_transfers == all.launch.dma_transfers);
  REQUIRE(few.launch.cores.size() == all.launch.cores.size());
  for (std::size_t core = 0; core < few.launch.cores.size(); ++core) {
    CHECK(few.launch.cores[core].total() == few.launch.cycles);
    CHECK(few.launch.cores[core].kernel_calls == all.launch.cores[core].kernel_calls);
    CHECK(few.launch.cores[core].packets == all.launch.cores[core].packets);
  }
}

}  // namespace mtsim::scenarios
