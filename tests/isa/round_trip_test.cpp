// SPDX-License-Identifier: Apache-2.0
// assemble(print(p)) is p, for what people write and for whatever the table allows.
#include <random>

#include <filesystem>
#include "isa/operands.h"

#include "isa/text_file.h"
#include "support.h"

using namespace mtsim::isa;
using Catch::Matchers::Contains;

namespace {

void check_round_trip(const std::string& text) {
  const Program program = assemble(text, "k.s");
  const std::string printed = print(program);
  INFO(printed);
  const Program again = assemble(printed, "k.s");
  CHECK(same_program(program, again));
  CHECK(print(again) == printed);
  CHECK(program.fingerprint() == again.fingerprint());
}

// Random instructions straight from the table's formats.
class Generator {
 public:
  explicit Generator(unsigned seed) : m_random(seed) {}

  int below(int limit) { return static_cast<int>(m_random() % static_cast<unsigned>(limit)); }

  std::string reg(const std::string& file, int first, int count) { return file + std::to_string(first + below(count)); }

  std::string pair(const std::string& file) {
    const int low = 2 * below(32);
    return file + std::to_string(low + 1) + ":" + file + std::to_string(low);
  }

  std::string memory(bool vector_side) {
    const int first = vector_side ? 0 : 8;
    const std::string base = reg("AR", first, 8);
    const std::string index = below(2) == 0 ? reg("OR", first, 8) : std::to_string(below(512));
    switch (below(5)) {
      case 0: return "*" + base;
      case 1: return "*+" + base + "[" + index + "]";
      case 2: return "*-" + base + "[" + index + "]";
      case 3: return "*" + base + "++[" + index + "]";
      default: return "*" + base + "--[" + index + "]";
    }
  }

  std::string immediate(const Row& row) {
    switch (row.id) {
      case Mnemonic::SNOP: return std::to_string(1 + below(20));
      case Mnemonic::SSHFLL:
      case Mnemonic::SSHFLR: return std::to_string(below(64));
      case Mnemonic::VSHFLL32:
      case Mnemonic::VSHFLR32:
      case Mnemonic::VSHFAR32: return std::to_string(below(32));
      case Mnemonic::SMOVI:
      case Mnemonic::VMOVI: return std::to_string(static_cast<std::int64_t>(m_wide()));
      default: return std::to_string(below(65536) - 32768);
    }
  }

  std::string operand(const std::string& kind, const Row& row) {
    if (kind == "VR") return reg("VR", 0, 64);
    if (kind == "R") return reg("R", 0, 64);
    if (kind == "AR or OR") return below(2) == 0 ? reg("AR", 0, 16) : reg("OR", 0, 16);
    if (kind == "SVR") return reg("SVR", 0, 16);
    if (kind == "SVR0") return "SVR0";
    if (kind == "VRhi:VRlo") return pair("VR");
    if (kind == "Rhi:Rlo") return pair("R");
    if (kind == "immediate") return immediate(row);
    if (kind == "R or immediate") return below(2) == 0 ? reg("R", 0, 64) : immediate(row);
    if (kind == "*AR") return memory((row.units & units::VLDST) != 0);
    return below(2) == 0 ? "R63" : "label" + std::to_string(below(3));
  }

  std::string instruction() {
    const auto table = instruction_table();
    const Row& row = table[static_cast<std::size_t>(below(static_cast<int>(table.size())))];
    std::string text = row.id != Mnemonic::SNOP && below(4) == 0
                           ? (below(2) == 0 ? "[R" : "[!R") + std::to_string(below(7)) + "] "
                           : "";
    text += row.mnemonic;
    const int macs = row.units & units::VMAC ? 3 : row.units & units::SMAC ? 2 : 0;
    const bool bare = (row.units & (units::SIEU | units::VIEU)) != 0;
    if (macs > 0 && !(bare && below(2) == 0)) text += ".M" + std::to_string(1 + below(macs));
    std::string kinds = operands_text(row.format);
    for (bool first = true; !kinds.empty(); first = false) {
      const std::size_t end = std::min(kinds.find(", "), kinds.size());
      text += (first ? " " : ", ") + operand(kinds.substr(0, end), row);
      kinds.erase(0, std::min(end + 2, kinds.size()));
    }
    return text;
  }

  // A program in which each packet holds what fits: candidates that clash are left out.
  std::string program(int packets) {
    std::string text =
        ".param n, R10, count\n.scheduled_for VFMULAS32=5\nlabel0: SNOP 1\nlabel1: SNOP 1\nlabel2: SNOP 1\n";
    for (int p = 0; p < packets; ++p) {
      std::string packet;
      for (int tries = below(12) + 1; tries > 0 || packet.empty(); --tries) {
        const std::string candidate = packet.empty() ? instruction() : packet + " | " + instruction();
        if (errors_of(text + candidate).empty()) packet = candidate;
      }
      if (below(8) == 0) text += "l" + std::to_string(p) + ":\n";
      text += packet + (below(6) == 0 ? " ; comment " + std::to_string(p) : "") + "\n";
    }
    return text;
  }

 private:
  std::mt19937 m_random;
  std::mt19937_64 m_wide{1};
};

}  // namespace

TEST_CASE("a kernel with every directive round-trips", "[isa][printer]") {
  check_round_trip(R"(; y = alpha * x
; registers: see below
.equ STEP, 16
.param x, R10, pointer am  ; in
.param n, R12, count
.scheduled_for VLDW=9, VFMULAS32=6

.region prologue
  SMVAGA.M1 %0, AR0      ;; address
| SMVAGA.M2 R14, OR0
  [R0] SMOVI24 -5, R1
[!R0] | SADD.M1 STEP, R2, R2
.endregion
.region main

; the loop
.loop:
loop2:
  VLDDW *AR0++[OR0], VR3:VR2
| VLDDW *+AR0[16], VR5:VR4
| SLDDW *-AR8[3], R5:R4
  VMOVI 0xBF800000BF800000, VR7
| VFMULAS32.M3 VR0, VR1, VR2, VR3
  SNOP 7
  [R0] SBR .loop         // back
  [!R0] SBR R63
.endregion
.region empty
.endregion
  SNOP 5
the_end:
; done
)");
}

TEST_CASE("the printer gives each unit a column and names it", "[isa][printer]") {
  const std::string printed = print(assemble("SMOVI24 1, R1\n| SADD.M1 1, R2, R2\n  VMOVI 0, VR1\n  SNOP 2\n", "k.s"));
  CHECK(printed ==
        "; SMAC1             | SIEU          | VIEU\n"
        "  SADD.M1 1, R2, R2 | SMOVI24 1, R1\n"
        "                                      VMOVI 0, VR1\n"
        "  SNOP 2\n");
}

TEST_CASE("comments, labels and blank lines survive fmt, column names are not doubled", "[isa][printer]") {
  const std::string text =
      "; head\n"
      ".param n, R12, count  ; how many\n"
      "\n"
      "start:\n"
      "; SIEU\n"
      "  SMOVI24 1, R1  ; one\n"
      "\n"
      "; before two\n"
      "two:\n"
      "  SMOVI24 2, R1\n"
      "; tail\n";
  CHECK(print(assemble(text, "k.s")) == text);
}

TEST_CASE("fmt keeps the indentation of comments and lays out anew from each line of column names", "[isa][printer]") {
  const std::string text =
      "; registers   R1  one\n"
      ";             R2  two\n"
      ";\n"
      "; SIEU          | VIEU\n"
      "  SMOVI24 1, R1                 ;  0  first\n"
      "  SMOVI24 2, R2 | VMOVI 0, VR1  ; 10\n"
      "\n"
      ".region tail\n"
      "; SMAC1\n"
      "  SADD.M1 1, R2, R2  ; narrow\n"
      "  SNOP 1             ; and idle\n"
      ".endregion\n"
      "\n"
      ";   behind\n"
      "  SADD.M1 1, R2, R2\n";
  CHECK(print(assemble(text, "k.s")) == text);
}

TEST_CASE("column names in another order are replaced, those of idle packets dropped", "[isa][printer]") {
  const std::string once =
      print(assemble(";; VIEU | SIEU\n VMOVI 0, VR1 | SMOVI24 1, R1 ;x\n; SBR\n SNOP 1 // y\n", "k.s"));
  CHECK(once ==
        "; SIEU          | VIEU\n"
        "  SMOVI24 1, R1 | VMOVI 0, VR1  ; x\n"
        "  SNOP 1                        ; y\n");
  CHECK(print(assemble(once, "k.s")) == once);
}

// fmt expands these: what is written with them is laid out by hand.
bool is_template(const std::string& text) {
  for (const char* directive : {".include", ".macro", ".rept", ".if", ".linear"}) {
    if (text.find(std::string("\n") + directive) != std::string::npos) return true;
  }
  return false;
}

TEST_CASE("every shipped kernel of plain packets is formatted", "[isa][printer]") {
  const std::filesystem::path root = MTSIM_SOURCE_DIR;
  int files = 0;
  for (const char* folder : {"kernels", "scenarios"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
      if (entry.path().extension() != ".s") continue;
      INFO(entry.path());
      const std::string text = read_text_file(entry.path());
      if (is_template(text)) continue;
      CHECK(print(assemble(text, entry.path())) == text);
      ++files;
    }
  }
  CHECK(files >= 4);
}

TEST_CASE("comments of all lines of a packet end up on its line", "[isa][printer]") {
  const std::string printed = print(assemble("SMOVI24 1, R1 ; a\n| SADD.M1 1, R2, R2 // b\n", "k.s"));
  CHECK_THAT(printed, Contains("; a; b"));
}

TEST_CASE("parameters and latencies of a program without text are printed too", "[isa][printer]") {
  Program program = assemble("SNOP 1", "k.s");
  program.parameters.push_back({"n", {RegisterFile::R, 12}, ParameterKind::count});
  program.scheduled_for.override(Mnemonic::VLDW, 8);
  program.scheduled_for.override(Mnemonic::VFMULAS32, 7);
  const Program again = assemble(print(program), "k.s");
  CHECK(same_program(program, again));
}

TEST_CASE("one instruction and one packet as text", "[isa][printer]") {
  const Program program = assemble("[!R0] SADDA.M1 R50, AR0, AR1 | vlddw *ar4--[or2], vr23:vr22", "k.s");
  CHECK(print(program.packets[0].instructions[0]) == "[!R0] SADDA.M1 R50, AR0, AR1");
  CHECK(print(program.packets[0]) == "[!R0] SADDA.M1 R50, AR0, AR1 | VLDDW *AR4--[OR2], VR23:VR22");
}

TEST_CASE("random programs from the table round-trip", "[isa][printer]") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    INFO("seed " << seed);
    check_round_trip(Generator(seed).program(25));
  }
}

TEST_CASE("the fingerprint follows instructions, not comments", "[isa][printer]") {
  const auto fingerprint = [](const std::string& text) { return assemble(text, "k.s").fingerprint(); };
  CHECK(fingerprint("SNOP 1") == fingerprint("; c\nSNOP 1 ; d\n"));
  CHECK(fingerprint("SNOP 1") != fingerprint("SNOP 2"));
  CHECK(fingerprint("a: SNOP 1\nb: SNOP 1\nSBR a") != fingerprint("a: SNOP 1\nb: SNOP 1\nSBR b"));
}
