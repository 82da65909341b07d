// SPDX-License-Identifier: Apache-2.0
// GCC extended asm in the idioms of published MT-3000 kernels (the kernels here are our own).
#include "isa/importer.h"

#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

std::string import_errors(const std::string& text) {
  std::string errors;
  for (const Diagnostic& diagnostic : import_c(text, "blas.c").diagnostics) errors += diagnostic.str() + "\n";
  return errors;
}

std::string body_of(const std::string& asm_statement) {
  const auto bodies = import_c("void f(void) {\n" + asm_statement + "\n}\n", "blas.c").bodies;
  REQUIRE(bodies.size() == 1);
  return bodies[0].text;
}

}  // namespace

TEST_CASE("a kernel in the published idioms imports and assembles unchanged", "[isa][importer]") {
  const std::string source = R"SRC(
#include <hthread_device.h>
#define UNUSED(x) asm(x)
/* Scales n vectors. "quotes" and { braces in comments } */
static inline __attribute__((always_inline)) void scale(const float *x, float *y, long n, long alpha)
{
    register long bound asm("R40") = n;   // not an asm statement
    char c = '"'; const char *s = "}{";
    __asm__ __volatile__ (
        // 地址 addresses
        "   SMVAGA.M1  %0, AR0          \t\n"
        "|  SMVAGA.M2  %1, AR2          \t\n"   // both
        "|  SBALE2     %3, %3, R20      \t\n"
        /* two
           lines */
        "   SVBCAST.M1 R20, VR0         \t\n"
        "|  SMOVI24    16, R21          \t\n"
        "   SMVAGA.M1  R21, OR0         ;; step\t\n"
        "|  SMOV       %2, R1           \t\n"
        "   VMOVI      0, VR4           \t\n"
        "scale_loop:                    \t\n"
        "   VLDW       *AR0++[OR0], VR2 \t\n"
        "|  SSUB.M1    1, R1, R1        \t\n"
        "   SNOP       8                \t\n"
        "   VFMULAS32.M1 VR2, VR0, VR4, VR3 \t\n"
        "   [R1] SBR   scale_loop       \t\n"
        "[!R1] | SADD.M1 0, R1, R1      \t\n"
        "   SNOP       4                \t\n"
        "   VSTW       VR3, *AR2++[OR0] \t\n"
        "   SNOP 1                      \t\n"
        "   SBR        R63              \t\n"
        "   SNOP       6                \t\n"
        :
        : "r"(x), "r"(y), "r"(n), "r"(alpha)
        : "memory", "R1"
    );
}
)SRC";
  const auto bodies = import_c(source, "blas.c").bodies;
  REQUIRE(bodies.size() == 1);
  CHECK(bodies[0].name == "scale");
  CHECK(bodies[0].place.line == 9);
  CHECK(bodies[0].place.column == 5);
  const Program program = assemble(bodies[0].text, "scale.s");
  REQUIRE(program.parameters.size() == 4);
  CHECK(program.parameters[0].name == "x");
  CHECK(program.parameters[3].name == "alpha");
  CHECK(program.parameters[3].reg == Register{RegisterFile::R, 16});
  CHECK(program.parameters[0].kind == ParameterKind::value);
  REQUIRE(program.packets.size() == 13);
  CHECK(print(program.packets[0]) == "SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR2 | SBALE2 R16, R16, R20");
  CHECK(program.labels.at("scale_loop") == 4);
  CHECK_THAT(bodies[0].text, Contains("%0") && Contains("; 地址 addresses"));
  CHECK_THAT(bodies[0].text, Contains("; both"));
}

TEST_CASE("bodies are named after their function, further ones numbered", "[isa][importer]") {
  const auto bodies = import_c(
                          "extern \"C\" {\n"
                          "int first(int a) { if (a) asm(\"SNOP 1\"); else asm volatile (\"SNOP 2\"); return 0; }\n"
                          "struct S { int x; };\n"
                          "void second(struct S s) { { __asm (\"SNOP 3\\n\" ); } }\n"
                          "}\n"
                          "int table[] = { 1, 2 };\n"
                          "void declared(void) asm(\"other_name\");\n"
                          "void barrier(void) { asm volatile(\"\" ::: \"memory\"); }\n",
                          "blas.c")
                          .bodies;
  REQUIRE(bodies.size() == 3);
  CHECK(bodies[0].name == "first");
  CHECK(bodies[1].name == "first_2");
  CHECK(bodies[2].name == "second");
  CHECK(assemble(bodies[2].text, "s").packets.size() == 1);
}

TEST_CASE("outputs come before inputs and a read-write operand counts once", "[isa][importer]") {
  const Program program =
      assemble(body_of("asm(\"SADD %0, %1, %2\" : \"=r\"(sum), \"+r\"(p->count) : [in] \"r\"(v[3]) : );"), "k.s");
  REQUIRE(program.parameters.size() == 3);
  CHECK(program.parameters[0].name == "sum");
  CHECK(program.parameters[1].name == "count");
  CHECK(program.parameters[2].name == "in");
  CHECK(print(program.packets[0]) == "SADD R10, R12, R14");
}

TEST_CASE("an operand tied to another shares its register", "[isa][importer]") {
  const Program program = assemble(body_of("asm(\"SADD %1, %2, %0\" : \"=r\"(a) : \"0\"(b), \"r\"(c));"), "k.s");
  CHECK(program.parameters.size() == 2);
  CHECK(print(program.packets[0]) == "SADD R10, R12, R10");
}

TEST_CASE("operands by name, escaped percent signs and unique labels", "[isa][importer]") {
  const std::string text =
      body_of("asm(\"l%=: SADD %[n], R1, R1 ;; 50%% of it\\n\" \"SBR l%=\" : : [n] \"r\"((long)(a + b)));");
  CHECK_THAT(text, Contains("l0: SADD %0, R1, R1 ;; 50% of it") && Contains("SBR l0"));
  CHECK(assemble(text, "k.s").parameters[0].name == "n");
}

TEST_CASE("operands of one name and without a name get their own", "[isa][importer]") {
  const Program program = assemble(body_of("asm(\"SADD %0, %1, R1\" : : \"r\"(a[0]), \"r\"(a[1]), \"r\"(3));"), "k.s");
  REQUIRE(program.parameters.size() == 3);
  CHECK(program.parameters[0].name == "a");
  CHECK(program.parameters[1].name == "a_2");
  CHECK(program.parameters[2].name == "operand2");
}

TEST_CASE("basic asm is taken as it stands", "[isa][importer]") {
  CHECK_THAT(body_of("asm(\"SLT R11, %1, R0\\n\\tSNOP 1\");"), Contains("SLT R11, %1, R0\n\tSNOP 1\n"));
}

TEST_CASE("escapes and continued strings", "[isa][importer]") {
  CHECK_THAT(body_of("asm(\"SNOP\\x20\\061 \\\n; \\\"q\\\"\\\\\");"), Contains("SNOP 1 ; \"q\"\\"));
}

TEST_CASE("malformed C is refused with the place", "[isa][importer]") {
  CHECK_THAT(import_errors("void f() { asm(\"SNOP 1\n\"); }"), Contains("blas.c:1:16: error: the string does not end"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP 1\" }"), Contains("blas.c:1:25") && Contains("got '}'"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP 1\""), Contains("blas.c:1:15") && Contains("not closed"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP 1\" : : \"r\"(a "),
             Contains("blas.c:1:15") && Contains("not closed"));
  CHECK_THAT(import_errors("void f() { /* "), Contains("blas.c:1:12: error: the comment does not end"));
  CHECK_THAT(import_errors("void f() { asm(\"\\q\"); }"), Contains("blas.c:1:17") && Contains("unknown escape '\\q'"));
  CHECK_THAT(import_errors("void f() { "), Contains("blas.c:1:10: error: '{' is not closed"));
  CHECK_THAT(import_errors("}"), Contains("blas.c:1:1: error: '}' without '{'"));
}

TEST_CASE("asm that cannot be imported says why", "[isa][importer]") {
  CHECK_THAT(import_errors("void f() { asm(MACRO(x) \"SNOP 1\"); }"),
             Contains("got 'MACRO'") && Contains("preprocessor"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP 1\\n\"\n#ifdef X\n\"SNOP 2\"\n#endif\n); }"), Contains("blas.c:2:1"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP %1\" : : \"r\"(a)); }"), Contains("uses %1 but has 1 operands"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP %[nn]\" : : [n] \"r\"(a)); }"), Contains("%[nn]"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP %0\" : : \"i\"(4)); }"), Contains("\"i\" does not allow a register"));
  CHECK_THAT(import_errors("void f() { asm goto (\"SNOP 1\" : : : : l); }"), Contains("asm goto is not supported"));
  CHECK_THAT(import_errors("void f() { asm(\"SNOP %q\" : : \"r\"(a)); }"), Contains("'%q'"));
}

TEST_CASE("a bad body does not keep the others from being imported", "[isa][importer]") {
  const Import import = import_c(
      "void a() { asm(\"SNOP 1\"); }\n"
      "void b(int n) { asm(\"SNOP %1\" : : \"r\"(n)); asm(\"SNOP 2\"); }\n"
      "void c() { asm(\"SNOP 3\n\"); }\n"
      "void d() { asm goto (\"SNOP 1\" : : : : l); }\n"
      "void e() { asm(\"SNOP 4\"); }\n",
      "blas.c");
  std::string names, places;
  for (const ImportedBody& body : import.bodies) names += body.name + " ";
  for (const Diagnostic& diagnostic : import.diagnostics) places += std::to_string(diagnostic.place.line) + " ";
  CHECK(names == "a b_2 e ");
  CHECK(places == "2 3 4 ");
}

TEST_CASE("a percent sign in front of an operand is refused with the place in C", "[isa][importer]") {
  CHECK_THAT(import_errors("void f(int a) { asm(\"SADD.M1 %%9, R1, R1\" : \"=r\"(a)); }"),
             Contains("blas.c:1:17") && Contains("'%%9'"));
  CHECK_THAT(import_errors("void f(int a) { asm(\"SADD.M1 %%[zz], R1, R1\" : \"=r\"(a)); }"), Contains("blas.c:1:17"));
  CHECK(import_errors("void f(int a) { asm(\"SADD.M1 10%%9, R1, R1\" : \"=r\"(a)); }").empty());
}

TEST_CASE("a string that does not end says what to do", "[isa][importer]") {
  CHECK_THAT(import_errors("void f() { asm(\"SNOP 1\n\"); }"), Contains("close it with \""));
}
