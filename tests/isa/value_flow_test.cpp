// SPDX-License-Identifier: Apache-2.0
#include "isa/value_flow.h"

#include "tests/isa/support.h"

namespace mtsim::isa {
namespace {

struct Followed {
  explicit Followed(const std::string& text)
      : program(assemble(text, "k.s")), flow(follow_values(program, program.scheduled_for)) {}

  /// "1 -> 4 R2 7/8": packets, register, latency and distance; ~ where the path goes back. "-" is the caller.
  std::vector<std::string> uses_of(const std::string& reg) const {
    std::vector<std::string> found;
    for (const ValueUse& use : flow.uses) {
      if (use.reg.str() != reg) continue;
      found.push_back((use.producer.packet < 0 ? "-" : std::to_string(use.producer.packet)) + " -> " +
                      std::to_string(use.consumer.packet) + " " + std::to_string(use.latency) + "/" +
                      std::to_string(use.distance) + (use.wraps ? " ~" : ""));
    }
    return found;
  }
  std::vector<int> live(const std::string& reg) const {
    std::vector<int> packets;
    for (std::size_t p = 0; p < flow.live.size(); ++p) {
      if (flow.live[p].test(static_cast<std::size_t>(parse_register(reg)->flat())))
        packets.push_back(static_cast<int>(p));
    }
    return packets;
  }

  Program program;
  ValueFlow flow;
};

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a read inside a result's latency gets the value before it", "[value_flow]") {
  const Followed k(
      "SMOVI24 1, R2\n"
      "SLDW *AR8, R2\n"
      "SNOP 5\n"
      "SSTW R2, *+AR8[1]\n"  // 6 cycles after the load
      "SSTW R2, *+AR8[2]\n"
      "SBR R63\nSNOP 6\n");
  CHECK(k.uses_of("R2") == Lines{"0 -> 3 1/7", "1 -> 4 7/7"});
  CHECK(k.uses_of("AR8") == Lines{"- -> 1 0/1", "- -> 3 0/7", "- -> 4 0/8"});
  CHECK(k.flow.early.size() == 1);
  CHECK(k.flow.early.contains({{3, 0}, *parse_register("R2")}));
  CHECK(k.live("R2") == std::vector<int>{1, 2, 3, 4});
  CHECK(k.live("AR8") == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(k.flow.complete);
}

TEST_CASE("a result that lands later ends the value of one issued behind it", "[value_flow]") {
  const Followed k(
      "SLDW *AR8, R2\n"    // lands at 7
      "SMOVI24 1, R2\n"    // lands at 2
      "SADD R2, R2, R3\n"  // at 2: the 1
      "SNOP 4\n"
      "SADD R2, R2, R4\n"  // at 7: what was loaded
      "SBR R63\nSNOP 6\n");
  CHECK(k.uses_of("R2") == Lines{"0 -> 4 7/7", "1 -> 2 1/1"});
}

TEST_CASE("a value read in the next pass of a loop goes back", "[value_flow]") {
  const Followed k(
      "SMOVI24 3, R1\n"
      "loop: SSUB.M1 1, R1, R1 | [R1] SBR loop\n"
      "SADD.M1 R5, R6, R5\n"
      "SNOP 5\n"
      "SBR R63\nSNOP 6\n");
  CHECK(k.uses_of("R1") == Lines{"0 -> 1 1/1", "0 -> 1 1/1", "1 -> 1 1/7 ~", "1 -> 1 1/7 ~"});
  CHECK(k.uses_of("R5") == Lines{"- -> 2 0/2", "2 -> 2 1/7 ~"});
  CHECK(k.live("R6") == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a branch back into code that does not come round again is no next pass", "[value_flow]") {
  const Followed k(
      "SBR entry\nSNOP 6\n"
      "back: SADD R2, R2, R3 | SBR R63\nSNOP 6\n"
      "entry: SMOVI24 1, R2 | SBR back\nSNOP 6\n");
  CHECK(k.uses_of("R2") == Lines{"4 -> 2 1/7"});
}

TEST_CASE("a write under a predicate leaves the value before it readable", "[value_flow]") {
  const Followed k(
      "SMOVI24 1, R2\n"
      "[R0] SMOVI24 2, R2\n"
      "SADD R2, R2, R3\n"
      "SBR R63\nSNOP 6\n");
  CHECK(k.uses_of("R2") == Lines{"0 -> 2 1/2", "1 -> 2 1/1"});
}

}  // namespace mtsim::isa
