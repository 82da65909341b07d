// SPDX-License-Identifier: Apache-2.0
// Which bytes a call reads and writes, which of its reads matter, and which results lack a value.
#include "sim/core/footprint.h"

#include <catch2/catch.hpp>

#include "bench_core.h"

using namespace mtsim;
using namespace mtsim::sim;

namespace {

const std::string k_parameters = ".param from, R10, pointer am\n.param to, R12, pointer am\n.param n, R16, count\n";
const std::string k_addresses = " SMVAGA.M1 R10, AR0\n| SMVAGA.M2 R12, AR1\n SNOP 2\n";

DecodedProgram decode_text(const std::string& body) {
  return {isa::assemble(k_parameters + k_addresses + body + " SBR R63\n SNOP 6\n", "footprint.s"), {}};
}

CallTrace traced(const DecodedProgram& program, std::uint64_t n = 0) {
  const std::uint64_t arguments[] = {0, 0, n};
  CallTrace call = trace(program, arguments);
  REQUIRE(call.profile.result.status == RunStatus::done);
  return call;
}

std::vector<PointerFootprint> footprint_of(const std::string& body, std::uint64_t n = 0) {
  const DecodedProgram program = decode_text(body);
  return footprint(program, traced(program, n));
}

using Blocks = std::vector<Block>;
using Ranges = std::vector<ByteRange>;

Ranges results(const std::string& body, const Ranges& undefined_from, const Ranges& undefined_to = {}) {
  const DecodedProgram program = decode_text(body);
  const std::vector<Ranges> undefined = {undefined_from, undefined_to, {}};
  return propagate(program, traced(program), undefined)[1];
}

}  // namespace

TEST_CASE("ranges fold into rows, and only equal ranges at equal distances are one block", "[core][footprint]") {
  CHECK(fold({{0, 8}, {8, 16}, {4, 12}}) == Blocks{{0, 16, 1, 0}});
  CHECK(fold({{200, 208}, {0, 8}, {100, 108}}) == Blocks{{0, 8, 3, 100}});
  CHECK(fold({{0, 8}, {100, 108}, {300, 308}}) == Blocks{{0, 8, 2, 100}, {300, 8, 1, 0}});
  CHECK(fold({{0, 8}, {100, 104}}) == Blocks{{0, 8, 1, 0}, {100, 4, 1, 0}});
}

TEST_CASE("blocks overlap where a row of one meets a row of the other", "[core][footprint]") {
  const Block left{0, 64, 4, 256}, right{64, 64, 4, 256};
  CHECK(overlap(left, right) == -1);
  CHECK(overlap(left, {63, 2, 1, 0}) == 63);
  CHECK(overlap(left, {64, 192, 1, 0}) == -1);
  CHECK(overlap(right, {300, 100, 1, 0}) == 320);
  CHECK(overlap(left, {0, 8, 3, 320}) == 0);
  CHECK(overlap({64, 8, 3, 100}, left) == 264);    // rows 64, 164 miss, 264 lies in row 1
  CHECK(overlap(left, {1024, 64, 4, 256}) == -1);  // behind the last row
  CHECK(overlap(left, {-256, 64, 2, 256}) == 0);   // its second row is the first
}

TEST_CASE("a load that no store, predicate or address needs is dead", "[core][footprint]") {
  const auto touched =
      footprint_of(" VLDW *AR0, VR0\n VLDW *+AR0[16], VR1\n VLDW *+AR0[32], VR0\n SNOP 9\n VSTW VR0, *AR1\n");
  CHECK(touched[0].reads == Blocks{{256, 128, 1, 0}});
  CHECK(touched[0].dead_reads == Blocks{{0, 256, 1, 0}});
  CHECK(touched[1].writes == Blocks{{0, 128, 1, 0}});
  CHECK(touched[1].reads.empty());
}

TEST_CASE("what is stored before a load lands is the old value", "[core][footprint]") {
  const auto touched = footprint_of(" VLDW *AR0, VR0\n SNOP 7\n VSTW VR0, *AR1\n");
  CHECK(touched[0].reads.empty());
  const auto later = footprint_of(" VLDW *AR0, VR0\n SNOP 8\n VSTW VR0, *AR1\n");
  CHECK(later[0].reads == Blocks{{0, 128, 1, 0}});
}

TEST_CASE("a load of what the call has stored through the same pointer is no read", "[core][footprint]") {
  // Scratch: written, read back, and its neighbour read that nobody wrote.
  const auto touched = footprint_of(
      " VLDW *AR0, VR0\n SNOP 9\n VSTW VR0, *AR1\n VLDW *AR1, VR1\n VLDW *+AR1[8], VR2\n SNOP 9\n"
      " VSTW VR1, *+AR1[32]\n VSTW VR2, *+AR1[48]\n");
  CHECK(touched[1].reads == Blocks{{128, 64, 1, 0}});
  CHECK(touched[1].dead_reads.empty());
  // A store behind the load feeds it nothing.
  CHECK(footprint_of(" VLDW *AR1, VR0\n SNOP 9\n VSTW VR0, *AR1\n")[1].reads == Blocks{{0, 128, 1, 0}});
}

TEST_CASE("a byte read twice is live when one of the reads is", "[core][footprint]") {
  const auto touched = footprint_of(" VLDW *AR0, VR1\n VLDW *+AR0[8], VR0\n SNOP 9\n VSTW VR0, *AR1\n");
  CHECK(touched[0].reads == Blocks{{64, 128, 1, 0}});
  CHECK(touched[0].dead_reads == Blocks{{0, 64, 1, 0}});
}

TEST_CASE("strided accesses are rows, and stores of every other half lane touch no more than that",
          "[core][footprint]") {
  const auto touched = footprint_of(
      " SMVAGA.M1 R16, OR0\n SNOP 2\n VLDW *AR0++[OR0], VR0\n VLDW *AR0++[OR0], VR2\n VLDW *AR0++[OR0], VR4\n SNOP 9\n"
      " VSTW VR0, *AR1\n VSTW VR2, *+AR1[16]\n VSTDW0M16 VR5:VR4, *+AR1[32]\n",
      64);
  CHECK(touched[0].reads == Blocks{{0, 128, 3, 512}});
  CHECK(touched[1].writes == Blocks{{0, 256, 1, 0}, {512, 16, 16, 32}});
}

TEST_CASE("results lack a value where the lanes they come from do", "[core][footprint]") {
  const std::string load = " VLDW *AR0, VR0\n VLDW *+AR0[16], VR1\n SNOP 9\n";
  const std::string store = " SNOP 6\n VSTW VR2, *AR1\n";
  CHECK(results(load + " VFMULAS32.M1 VR0, VR1, VR1, VR2\n" + store, {{4, 8}}) == Ranges{{4, 8}});
  CHECK(results(load + " VFMULAS32.M1 VR0, VR1, VR1, VR2\n" + store, {{128 + 6, 128 + 10}}) == Ranges{{4, 12}});
  CHECK(results(load + " VFMULAD.M1 VR0, VR1, VR1, VR2\n" + store, {{4, 8}}) == Ranges{{0, 8}});
  CHECK(results(load + " VFMULAH16.M1 VR0, VR1, VR1, VR2\n" + store, {{4, 6}}) == Ranges{{4, 6}});
  CHECK(results(load + " VBALE2 VR0, VR1, VR2\n" + store, {{4, 8}}) == Ranges{});
  CHECK(results(load + " VBALE2 VR0, VR1, VR2\n" + store, {{0, 4}, {128 + 8, 128 + 12}}) == Ranges{{0, 4}, {12, 16}});
  CHECK(results(load + " VBALE2H VR0, VR1, VR2\n" + store, {{4, 8}}) == Ranges{{0, 4}});
  CHECK(results(load + " VMOVI 0, VR2\n" + store, {{0, 256}}) == Ranges{});
  // Halves and words: packs, conversions, and FP16 products in FP32 sums.
  CHECK(results(load + " VBALE4L VR0, VR1, VR2\n" + store, {{2, 4}, {4, 8}}) == Ranges{{4, 6}});
  CHECK(results(load + " VFEXTH16HL VR0, VR2\n" + store, {{4, 6}}) == Ranges{{0, 8}});
  CHECK(results(load + " VFEXTH16HL VR0, VR2\n" + store, {{0, 4}, {6, 8}}) == Ranges{});
  CHECK(results(load + " VFSPHP16 VR0, VR1, VR2\n" + store, {{4, 8}, {128, 132}}) == Ranges{{2, 6}});
}

TEST_CASE("a lane that goes through the exchange and scalar registers to all lanes takes its lack along",
          "[core][footprint]") {
  const std::string text =
      " VLDW *AR0, VR0\n SNOP 8\n VMVCGC.M1 VR0, SVR0\n SNOP 2\n SMVCCG.M1 SVR3, R20\n SNOP 1\n"
      " SVBCAST.M1 R20, VR1\n SNOP 3\n VSTW VR1, *AR1\n";
  CHECK(results(text, {{24, 32}}) == Ranges{{0, 128}});
  CHECK(results(text, {{0, 24}, {32, 128}}) == Ranges{});
}

TEST_CASE("a load that spreads its lanes over a pair", "[core][footprint]") {
  const std::string text = " VLDDW0M2 *AR0, VR1:VR0\n SNOP 9\n VSTW VR0, *AR1\n";
  const auto touched = footprint_of(text);
  CHECK(touched[0].reads == Blocks{{0, 8, 16, 16}});
  CHECK(touched[0].dead_reads == Blocks{{8, 8, 16, 16}});
  CHECK(results(text, {{16, 24}}) == Ranges{{8, 16}});
}

TEST_CASE("a value stored and loaded again in one call keeps its lack", "[core][footprint]") {
  CHECK(results(" VLDW *AR0, VR0\n SNOP 9\n VSTW VR0, *AR1\n VLDW *AR1, VR3\n SNOP 9\n VSTW VR3, *+AR1[16]\n", {{0, 4}},
                {{0, 512}}) == Ranges{{0, 4}, {128, 132}});
}
