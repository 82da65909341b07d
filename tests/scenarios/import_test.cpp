// SPDX-License-Identifier: Apache-2.0
// From a C file with inline assembly to a run: the way published kernels come in.
#include <catch2/catch.hpp>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

// The idioms of published kernels: quoted lines with \t\n, comments between lines and inside, outputs before inputs,
// two bodies in one function, complementary predicates, a loop branch whose last delay slot holds the way out.
constexpr const char* k_source = R"(
#include <stdint.h>
// asm in a comment is no body: asm("SNOP 1");
static const char *text = "asm(";

/* Y[i] = X[i] for n vectors of 128 bytes */
void copy_vectors(double *to, double *from, long n) {
  __asm__ __volatile__(
      "        SMVAGA.M1   %1, AR0       \t\n"
      "|       SMVAGA.M2   %0, AR1       \t\n"
      "|       SMOVI24     16, R3        \t\n"
      // the count is tested one pass ahead
      "        SMVAGA.M1   R3, OR0  ;; step of 128 bytes \t\n"
      "|       SADD.M2     -1, %2, R0    \t\n"
      "        SNOP        1             \t\n"
      "copy_loop:                        \t\n"
      "        VLDW        *AR0++[OR0], VR0 \t\n"
      "        SNOP        2             \t\n"
      "[R0]    SBR         copy_loop     \t\n"
      "        SNOP        5             \t\n"
      "        VSTW        VR0, *AR1++[OR0] \t\n"
      "[!R0]|  SBR         R63           \t\n"
      "|       SADD.M1     -1, R0, R0    \t\n"
      "        SNOP        6             \t\n"
      : "+r"(to)
      : "r"(from), "r"(n)
      : "memory");
  asm volatile("SBR R63\n\tSNOP 6\n");
}
)";

}  // namespace

TEST_CASE("import writes a file per asm body and exec runs it unchanged", "[import]") {
  const Folder folder;
  folder.write("blas.c", k_source);
  const CommandResult import = folder.mtsim("import blas.c -o imported --json -");
  INFO(import.err);
  REQUIRE(import.exit_code == 0);
  const auto files = import.json().at("files");
  REQUIRE(files.size() == 2);
  CHECK(files[0].at("name") == "copy_vectors");
  CHECK(files[1].at("name") == "copy_vectors_2");
  const std::string text = folder.read("imported/copy_vectors.s");
  CHECK_THAT(text, Contains("%1"));
  CHECK_THAT(text, Contains(".param"));

  std::vector<double> values(3 * 16);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.5 * static_cast<double>(i);
  folder.write_values("x.bin", values);
  folder.write("run.yaml", R"(program: imported/copy_vectors.s
operands: [R20, R22, R24]
registers: {R20: 0x400, R22: 0x80, R24: 3}
memory:
  - {space: am, address: 0x80, file: x.bin}
dump:
  - {space: am, address: 0x400, bytes: 512, file: y.bin}
)");
  const CommandResult run = folder.mtsim("exec run.yaml --json -");
  INFO(run.err << run.out);
  REQUIRE(run.exit_code == 0);
  CHECK(run.json().at("cycles") == 3 + 3 * 10 + 6);
  auto expected = values;
  expected.resize(4 * 16);  // nothing is written behind the third vector
  CHECK(folder.read_values<double>("y.bin") == expected);
}

TEST_CASE("imported files check clean of errors", "[import]") {
  const Folder folder;
  folder.write("blas.c", k_source);
  REQUIRE(folder.mtsim("import blas.c -o imported").exit_code == 0);
  const CommandResult check = folder.mtsim("check imported/copy_vectors.s --json -");
  INFO(check.out << check.err);
  CHECK(check.exit_code == 0);
  CHECK(check.json().at("errors") == 0);
}

TEST_CASE("a C file without inline assembly, or with a broken string, is refused with its place", "[import]") {
  const Folder folder;
  folder.write("plain.c", "int main(void) { return 0; }\n");
  const CommandResult plain = folder.mtsim("import plain.c -o out");
  CHECK(plain.exit_code == 2);
  CHECK_THAT(plain.err, Contains("plain.c: has no asm body"));
  folder.write("broken.c", "void f(void) {\n  asm(\"SNOP 1\\n\n\");\n}\n");
  const CommandResult broken = folder.mtsim("import broken.c -o out");
  CHECK(broken.exit_code == 2);
  CHECK_THAT(broken.err, Contains("broken.c:2:"));
}
