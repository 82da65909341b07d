// SPDX-License-Identifier: Apache-2.0
#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

// "" when the timing is static, else the reason.
std::string dependence(const std::string& text) {
  std::string why;
  return timing_is_static(assemble(text, "k.s"), &why) ? "" : why;
}

}  // namespace

TEST_CASE("a loop over a count is static", "[isa][timing]") {
  CHECK(dependence(".param n, R12, count\n"
                   "  SSHFLR 1, R12, R0\n"
                   "loop: SSUB.M1 1, R0, R0\n"
                   "  [R0] SBR loop\n"
                   "  SNOP 6\n"
                   "  SBR R63\n"
                   "  SNOP 6\n")
            .empty());
  CHECK(dependence("SMOVI24 5, R3\n SLT R3, R3, R0\nl: [R0] SBR l\n SNOP 6\n").empty());
  CHECK(dependence("SNOP 1\n SBR R63\n SNOP 6").empty());
}

TEST_CASE("a loaded value in a condition is not", "[isa][timing]") {
  CHECK_THAT(dependence("  SLDW *AR8, R5\n  SNOP 6\n  SADD 1, R5, R6\n  SLT R6, R63, R0\nl: [R0] SBR l\n SNOP 6\n"),
             Contains("k.s:5:9: the condition R0 of SBR depends on R5, loaded by SLDW at k.s:1:3"));
}

TEST_CASE("a lane of a vector in a condition is not, whatever the vector holds", "[isa][timing]") {
  CHECK_THAT(dependence(" VMOVI 1, VR0\n VMVCGC.M1 VR0, SVR0\n SNOP 2\n SMVCCG.M1 SVR3, R0\n SNOP 1\n"
                        "l: [R0] SBR l\n SNOP 6\n"),
             Contains("SVR3, taken from a vector by VMVCGC at k.s:2:2"));
}

TEST_CASE("a pointer or a plain value in a condition is not", "[isa][timing]") {
  CHECK_THAT(dependence(".param p, R10, pointer sm\n SADD 0, R10, R0\nl: [R0] SBR l\n SNOP 6\n"),
             Contains("R10, the parameter 'p' that is not a count"));
  CHECK_THAT(dependence(".param v, R10, value\n SADD 0, R10, R0\nl: [R0] SBR l\n SNOP 6\n"), Contains("'v'"));
  CHECK_THAT(dependence(".param p, R10, pointer am\n SMVAGA.M1 R10, AR0\n SNOP 1\n SMVAAG.M1 AR0, R4\n SNOP 1\n"
                        " SLT R4, R63, R0\nl: [R0] SBR l\n SNOP 6\n"),
             Contains("'p'"));
}

TEST_CASE("a register that nobody set is not", "[isa][timing]") {
  CHECK_THAT(dependence(" SADD 0, R7, R0\nl: [R0] SBR l\n SNOP 6\n"),
             Contains("R7, which SADD at k.s:1:2 reads before anything is written to it"));
  CHECK_THAT(dependence("l: [R0] SBR l\n SMOVI24 0, R0\n SNOP 5\n"), Contains("R0, which SBR at k.s:1:9 reads"));
}

TEST_CASE("a condition decided under a tainted predicate is tainted", "[isa][timing]") {
  CHECK_THAT(dependence("  SLDW *AR8, R1\n SMOVI24 0, R0\n SNOP 6\n  [R1] SMOVI24 1, R0\nl: [R0] SBR l\n SNOP 6\n"),
             Contains("R1, loaded by SLDW"));
}

TEST_CASE("data that never meets a condition does not matter", "[isa][timing]") {
  CHECK(dependence(".param p, R10, pointer sm\n SMVAGA.M1 R10, AR8\n SMOVI24 3, R0\nl: SLDW *AR8++[OR8], R9\n"
                   "| SSUB.M1 1, R0, R0\n [R0] SBR l\n SNOP 6\n")
            .empty());
}

TEST_CASE("a jump to an address in a register is not static, the return is", "[isa][timing]") {
  CHECK_THAT(dependence("SBR R5\n SNOP 6"), Contains("k.s:1:1: SBR R5"));
  CHECK(dependence("SBR R63\n SNOP 6").empty());
}

TEST_CASE("a footprint is static when addresses come from pointers, counts and immediates", "[isa][static]") {
  CHECK(footprint_is_static(
      assemble(".param p, R10, pointer am\n.param n, R12, count\n SMVAGA.M1 R10, AR0\n| SMVAGA.M2 R12, OR0\n SNOP 2\n"
               " VLDW *AR0++[OR0], VR0\n SADDA.M1 8, AR0, AR1\n SNOP 3\n VSTW VR0, *AR1\n SBR R63\n SNOP 6\n",
               "k.s")));
}

TEST_CASE("a loaded index, a value parameter and an address nobody set make the footprint depend on data",
          "[isa][static]") {
  const auto why = [](const std::string& text) {
    std::string reason;
    CHECK_FALSE(footprint_is_static(assemble(text + " SBR R63\n SNOP 6\n", "k.s"), &reason));
    return reason;
  };
  CHECK_THAT(why(".param p, R10, pointer sm\n SMVAGA.M1 R10, AR8\n SNOP 1\n SLDW *AR8, R20\n SNOP 6\n"
                 " SMVAGA.M1 R20, OR8\n SNOP 1\n SLDW *+AR8[OR8], R21\n"),
             Catch::Contains("k.s:8") && Catch::Contains("OR8") && Catch::Contains("loaded by SLDW at k.s:4"));
  CHECK_THAT(why(".param p, R10, value\n SMVAGA.M1 R10, AR8\n SNOP 1\n SLDW *AR8, R20\n"),
             Catch::Contains("'p' that is not a pointer or count"));
  CHECK_THAT(why(" VLDW *AR0, VR0\n"), Catch::Contains("AR0"));
}
