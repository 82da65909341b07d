// SPDX-License-Identifier: Apache-2.0
// Programs of random packets, for tests that two ways of running one agree.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "bench_core.h"

namespace mtsim::sim {

// Random packets over few registers, so that reads and writes in flight meet all the time; a counted loop with work in
// its delay slots around them.
class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : m_random(seed) {}

  std::string text() {
    std::string out = " SMOVI 3, R20\n SMOVI 8, R21\n SMVAGA.M1 R21, OR0\n| SMVAGA.M2 R21, OR8\n SNOP 1\nloop:\n";
    const int length = pick(4, 14);
    for (int i = 0; i < length; ++i) out += packet();
    out += " SSUB.M1 1, R20, R20\n SLT 0, R20, R5\n [R5] SBR loop\n";
    for (int i = 0; i < 6; ++i) out += pick(0, 3) == 0 ? " SNOP 1\n" : packet();
    for (int i = 0; i < 3; ++i) out += packet();
    return out + k_return;
  }

 private:
  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(m_random); }
  std::string v() { return "VR" + std::to_string(pick(0, 5)); }
  std::string vpair() {
    const int low = 2 * pick(0, 2);
    return "VR" + std::to_string(low + 1) + ":VR" + std::to_string(low);
  }
  std::string r() { return "R" + std::to_string(pick(10, 14)); }
  std::string predicate() { return pick(0, 5) == 0 ? (pick(0, 1) ? "[R1] " : "[!R1] ") : ""; }

  std::string packet() {
    std::vector<std::string> ops;
    if (pick(0, 1)) ops.push_back("VFMULAS32.M1 " + v() + ", " + v() + ", " + v() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back("VMOV.M2 " + v() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back("VBALE2 " + v() + ", " + v() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back(predicate() + "VLDDW *AR0++[OR0], " + vpair());
    if (pick(0, 3) == 0) ops.push_back("VSTW " + v() + ", *AR0");
    if (pick(0, 2) == 0) ops.push_back("SVBCAST.M1 " + r() + ", " + v());
    if (pick(0, 2) == 0) ops.push_back(predicate() + "SADD.M2 " + r() + ", " + r() + ", " + r());
    if (pick(0, 2) == 0) ops.push_back("SBALE2 " + r() + ", " + r() + ", " + r());
    if (pick(0, 2) == 0) ops.push_back(predicate() + "SLDW *AR8++[OR8], " + (pick(0, 2) == 0 ? "R1" : r()));
    if (pick(0, 6) == 0 && ops.empty()) ops.push_back("SADDA.M1 16, AR0, AR0");
    if (ops.empty()) return " SNOP " + std::to_string(pick(1, 4)) + "\n";
    std::string out;
    for (std::size_t i = 0; i < ops.size(); ++i) out += (i ? "| " : " ") + ops[i] + "\n";
    return out;
  }

  std::mt19937 m_random;
};

}  // namespace mtsim::sim
