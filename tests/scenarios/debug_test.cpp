// SPDX-License-Identifier: Apache-2.0
// mtsim debug: a microkernel packet by packet, from scripts and at the prompt.
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/scenarios/command.h"

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;
using mtsim::test::CommandResult;
using mtsim::test::Folder;

namespace {

/// A folder with a kernel that loads a word, stores the old R2 too early and the loaded one in time, and adds vectors
/// in a loop.
struct Session : Folder {
  Session() {
    write("k.s",
          ".param word, R10, pointer sm\n"
          ".param n, R16, count\n"
          "        SMVAGA.M1 R10, AR8 | SMOVI24 1, R2\n"
          "        SNOP 1\n"
          "        SLDW *AR8, R2\n"
          "        SNOP 5\n"
          "        SSTW R2, *+AR8[1]\n"
          "        SSTW R2, *+AR8[2]\n"
          "        SMOV R16, R1 | VMOVI.M1 0x3f8000003f800000, VR1\n"
          "loop:   VFADDS32.M1 VR1, VR2, VR2 | SSUB.M1 1, R1, R1\n"
          "        [R1] SBR loop\n"
          "        SNOP 5\n"
          "        VSTW VR2, *AR0\n"
          "        SBR R63\n"
          "        SNOP 6\n");
    write("k.yaml",
          "program: k.s\nregisters: {R10: 64, R16: 3, AR0: 0x200, VR2: \"f32:0.5\"}\n"
          "memory:\n  - {space: sm, address: 64, fill: 0x2a, bytes: 8}\n");
  }

  /// The commands as a script; what it prints.
  CommandResult script(const std::string& commands, const std::string& options = "") const {
    write("commands", commands);
    return mtsim("debug k.yaml -x commands " + options);
  }
  std::string out(const std::string& commands) const {
    const CommandResult result = script(commands);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  }
};

int lines_with(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("a debugger starts in front of the first packet and the end of its input ends it", "[debug]") {
  CHECK(Session().out("") == "=> cycle 0, packet 0, k.s:3: SMVAGA.M1 R10, AR8 | SMOVI24 1, R2\n");
}

TEST_CASE("a step shows what is issued, stored and landed, and points out a read of an old value", "[debug]") {
  const std::string out = Session().out("step 3\nstep\nstep\n");
  CHECK_THAT(out, Contains("  issues R2, lands at cycle 9\n=> cycle 3, packet 3, k.s:6: SNOP 5\n"));
  CHECK_THAT(out, EndsWith("=> cycle 8, packet 4, k.s:7: SSTW R2, *+AR8[1]\n"
                           "  OLD VALUE: SSTW (line 7) reads the old R2: the result of SLDW (line 5) lands 1 cycle "
                           "later\n"
                           "  stores sm:0x48: 0x0 -> 0x1\n"
                           "  lands R2 at cycle 9: 0x1 -> 0x2a2a2a2a2a2a2a2a, of SLDW (line 5)\n"
                           "=> cycle 9, packet 5, k.s:8: SSTW R2, *+AR8[2]\n"));
}

TEST_CASE("flight lists register, cycle, value and origin of what has not landed", "[debug]") {
  const std::string out = Session().out("step 3\nflight\nprint R2\nstep 2\nflight\n");
  CHECK_THAT(out, Contains("R2            9   6  0x2a2a2a2a2a2a2a2a  cycle 2, packet 2, line 5: SLDW *AR8, R2\n"));
  CHECK_THAT(out, Contains("R2 = 0x1 (1)\n  a newer value is in flight: lands at cycle 9, in 6, from SLDW (line 5)\n"));
  CHECK_THAT(out, EndsWith("no results in flight\n"));
}

TEST_CASE("back undoes steps down to the start, and running again gives the same", "[debug]") {
  const Session session;
  const std::string out = session.out("step 5\nprint sm:0x48\nback\nprint sm:0x48\nprint R2\nback 100\nback\nstatus\n");
  CHECK_THAT(out, Contains("sm:0x48 = 0x1 (hex)\n=> cycle 8, packet 4, k.s:7: SSTW R2, *+AR8[1]\nsm:0x48 = 0x0 (hex)\n"
                           "R2 = 0x1 (1)\n"));
  CHECK_THAT(out, Contains("this is the start\n=> cycle 0, packet 0"));
  CHECK_THAT(out, EndsWith("0 steps from the start; the last 0 can be undone at once, older ones by running again\n"
                           "0 results in flight\n"));
  const std::string once = session.out("continue\nprint VR2\nprint sm:64 hex 3\n");
  const std::string twice = session.out("continue\nreverse-continue\ncontinue\nprint VR2\nprint sm:64 hex 3\n");
  CHECK_THAT(twice, EndsWith(once.substr(once.find("the program is done"))));
}

TEST_CASE("breakpoints stop in front of a label, line or packet, and when a cycle is reached", "[debug]") {
  const std::string out =
      Session().out("break loop\nbreak line 7\nbreak 4\nb packet 12\nb cycle 6\ninfo b\nrun\nc\nc\nc\nc\nc\nc\n");
  CHECK_THAT(out, Contains("stop 1: breakpoint at loop\n  packet 7 (loop), k.s:10\n"));
  CHECK_THAT(out, Contains("stop 3: breakpoint at line 4\n  packet 1, k.s:4\n"));
  CHECK_THAT(out, Contains("  4  breakpoint at packet 12\n  5  breakpoint at cycle 6\n"));
  CHECK_THAT(out, Contains("stop 3: breakpoint at line 4\n=> cycle 1, packet 1"));
  // SNOP 5 issues at cycle 3 and is over at 8: cycle 6 has been reached there, and so has line 7.
  CHECK_THAT(out, Contains("stop 2: breakpoint at line 7\nstop 5: breakpoint at cycle 6\n=> cycle 8, packet 4"));
  CHECK(lines_with(out, "packet 7 (loop), k.s:10: ") == 3);  // three passes
  CHECK_THAT(out, EndsWith("stop 4: breakpoint at packet 12\n=> cycle 36, packet 12 (loop+5), k.s:15: SNOP 6\n"
                           "the program is done: 42 cycles, 21 packets and 21 idles\n"));
}

TEST_CASE("a breakpoint may name the file, also one that is included", "[debug]") {
  const Session session;
  session.write("sum.inc.s", "SADD.M1 R2, R2, R3\nSADD.M1 R3, R3, R3\n");
  session.write("k.s", "SMOVI24 1, R2\n.include \"sum.inc.s\"\nSBR R63\nSNOP 6\n");
  const std::string out = session.out("b k.s:3\nb sum.inc.s:2\nc\n");
  CHECK_THAT(out, Contains("stop 1: breakpoint at line 3\n  packet 3, k.s:3\n"));
  CHECK_THAT(out, Contains("stop 2: breakpoint at sum.inc.s:2\n  packet 2, sum.inc.s:2\n"));
  CHECK_THAT(out, EndsWith("stop 2: breakpoint at sum.inc.s:2\n=> cycle 2, packet 2, sum.inc.s:2: "
                           "SADD.M1 R3, R3, R3\n"));
}

TEST_CASE("run stops at a breakpoint in front of the first packet", "[debug]") {
  CHECK_THAT(Session().out("b 3\nc\nrun\n"), EndsWith("stop 1: breakpoint at line 3\n=> cycle 0, packet 0, k.s:3: "
                                                      "SMVAGA.M1 R10, AR8 | SMOVI24 1, R2\n"));
}

TEST_CASE("a run longer than what is kept for undoing goes back all the same", "[debug]") {
  const Session session;
  session.write("k.yaml", "program: k.s\nregisters: {R10: 64, R16: 3000}\n");
  const std::string out =
      session.out("b cycle 20011\nc\nprint R1\nd\nc\nstatus\nb cycle 20011\nrc\nprint R1\nwatch R2\nrc\nrc\n");
  CHECK_THAT(out, Contains("=> cycle 20011, packet 7 (loop)"));
  CHECK_THAT(out, Contains("12,009 steps from the start; the last 2,048 can be undone at once"));
  CHECK(lines_with(out, "R1 = 0x1f4 (500)\n") == 2);
  CHECK_THAT(out,
             EndsWith("stop 3: watch R2, undone\n  0x1 -> 0x0\n  landed at cycle 1, issued at cycle 0 by packet 0, "
                      "k.s:3: SMOVI24 1, R2\n=> cycle 0, packet 0, k.s:3: SMVAGA.M1 R10, AR8 | SMOVI24 1, R2\n"));
}

TEST_CASE("a line without a packet stands for the next that has one", "[debug]") {
  CHECK_THAT(Session().out("break line 1\n"), Contains("stop 1: breakpoint at line 3\n  packet 0, k.s:3\n"));
}

TEST_CASE("a watchpoint stops at a change and names old, new and the packet", "[debug]") {
  const std::string out = Session().out("watch VR2\nwatch sm:word+8\nwatch n\nc\nc\nreverse-continue\nc\nc\n");
  CHECK_THAT(out, Contains("stop 1: watch VR2\n  now 32 x 0.5\n"));
  CHECK_THAT(out, Contains("stop 2: watch sm:0x48, 8 bytes\n") && Contains("stop 3: watch R16\n  now 0x3\n"));
  const std::string first =
      "stop 1: watch VR2\n  32 x 0.5 -> 32 x 1.5\n  landed at cycle 14, issued at cycle 11 by "
      "packet 7 (loop), k.s:10: VFADDS32.M1 VR1, VR2, VR2\n";
  CHECK_THAT(out, Contains(first));
  CHECK(lines_with(out, first) == 2);  // once more behind the way back
  CHECK_THAT(out, Contains("stop 1: watch VR2, undone\n  32 x 1.5 -> 32 x 0.5\n"));
  const std::string memory = Session().out("watch sm:72\nc\n");
  CHECK_THAT(memory, Contains("stop 1: watch sm:0x48, 8 bytes\n  0x0 -> 0x1\n  stored at cycle 8 by packet 4, k.s:7: "
                              "SSTW R2, *+AR8[1]\n"));
}

TEST_CASE("catch old-read stops behind the packet that read one, and delete forgets it", "[debug]") {
  const std::string out = Session().out("catch old-read\nc\ndelete 1\nrun\ninfo breakpoints\n");
  CHECK_THAT(out, Contains("stop 1: read of an old value: packet 4, k.s:7, cycle 8\n  OLD VALUE: SSTW (line 7)"));
  CHECK_THAT(out, Contains("of an old value on the way; `catch old-read` stops at"));
  CHECK_THAT(out, EndsWith("no stops\n"));
}

TEST_CASE("values are printed in the type asked for", "[debug]") {
  const std::string out = Session().out(
      "c\nprint VR2 f16\np VR1\np/x VR1\np VR1 f64\np R10\np word int32\np am:AR0 f32 3\np sm:64:4\np sm:64 hex8 2\n"
      "format f64\np VR1\nx/2f am:0x204\np $r10\n");
  CHECK_THAT(out, Contains("VR2, 64 f16:\n   [0]  0  2.188  0  2.188  0  2.188  0  2.188\n   [8]"));  // 3.5 in halves
  CHECK_THAT(out, Contains("VR1 = 32 x 1 (f32)\nVR1 = 16 x 0x3f8000003f800000 (hex)\nVR1 = 16 x 0.007812501848093234 "
                           "(f64)\nR10 = 0x40 (64)\nR10, 2 int32:\n  [0]  64  0\nam:0x200 = 3 x 3.5 (f32)\n"
                           "sm:0x40 = 0x2a2a2a2a (hex32)\nsm:0x40 = 2 x 0x2a (hex8)\n"));
  CHECK_THAT(out, EndsWith("am:0x204 = 2 x 3.5 (f32)\nR10 = 0x40 (64)\n"));
}

TEST_CASE("a fault is shown with its place and can be stepped back from", "[debug]") {
  const Session session;
  session.write("k.s", "SNOP 2\nSSTW R1, *AR8\nSBR R63\nSNOP 6\n");
  session.write("k.yaml", "program: k.s\nregisters: {AR8: 0x10000, R1: 5}\n");
  const std::string out = session.out("continue\nstep\nback\nprint AR8\n");
  CHECK_THAT(out,
             Contains("the program has stopped after 3 cycles, 2 packets and 1 idle\nfault: k.s:2:1: core 0, cycle "
                      "2, pc 1: address fault: SSTW at address 0x10000"));
  CHECK_THAT(out, Contains("back, reverse-continue or restart go on from here\n"));
  CHECK_THAT(out, EndsWith("=> cycle 2, packet 1, k.s:2: SSTW R1, *AR8\nAR8 = 0x10000 (65536)\n"));
}

TEST_CASE("commands may be cut short where they stay unique, and gdb's names work", "[debug]") {
  const std::string out = Session().out("s 2\nrs\nni\nback 2\nc\nrc\nb loop\nr\nwhere\nl loop\nh rev\nq\nnonsense\n");
  CHECK_THAT(out, Contains("=>*       7    10  loop:  SSUB"));
  CHECK_THAT(out, EndsWith("reverse-continue\n    run backwards to the stop before, or the start (also: rc)\n"));
  CHECK_THAT(Session().out("s\np /x R2\ninfo registers R16\n"), EndsWith("R2 = 0x1 (hex)\nR16 = 0x3 (3)\n"));
}

TEST_CASE("a wrong command of a script ends with exit 2, its place and what would be right", "[debug]") {
  struct Case {
    std::string command, message;
  };
  const auto [command, message] = GENERATE(values<Case>({
      {"stepp", "commands:2: unknown command 'stepp'; did you mean 'step'?"},
      {"zzz", "unknown command 'zzz'; `help` lists them"},
      {"re", "'re' is short for several commands: reverse-continue, restart"},
      {"step x", "'x': expected a whole number (steps)"},
      {"step 0", "0 is too small (steps); at least 1"},
      {"step 1 2", "'2' is one word too many; step takes [N]"},
      {"continue 2", "continue takes none"},
      {"break", "break takes LABEL, cycle N, line N, FILE:LINE or packet N"},
      {"break j.s:7", "no file 'j.s' in this program; it is made of k.s"},
      {"break k.s:99", "k.s has no packet on line 99 or behind it"},
      {"/x", "unknown command ''"},
      {"break lop", "no label 'lop'; did you mean 'loop'?"},
      {"break line 99", "k.s has no packet on line 99 or behind it"},
      {"break packet 13", "there is no packet 13; the last is 12"},
      {"break cycle", "break takes"},
      {"watch Q3", "'Q3' is no register, parameter or address"},
      {"watch gsm:0", "unknown memory 'gsm'"},
      {"watch sm:0xffff", "sm:0xffff with 8 bytes is outside sm, which has 0x10000 bytes"},
      {"print am:VR1", "VR1 is a vector"},
      {"print am:AR0+zz", "'zz' is no number, register or parameter"},
      {"print R3 f33", "unknown type 'f33'; did you mean 'f32'?"},
      {"print R3 f32 4", "a register has no count"},
      {"print sm:0:6 f32", "6 bytes are no whole number of f32"},
      {"print sm:0 f64 99999999", "is outside sm"},
      {"print", "print takes"},
      {"catch up", "catch takes old-read"},
      {"delete 4", "there is no stop 4"},
      {"info x", "info takes"},
      {"info flight R1", "info takes"},
      {"info registers Q1", "'Q1' is no register"},
  }));
  INFO(command);
  const CommandResult result = Session().script("step\n" + command + "\nstep\n");
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, Contains("commands:2: ") && Contains(message));
  CHECK(lines_with(result.out, "=>") == 2);  // nothing runs behind it
}

TEST_CASE("scripts come first, then --command, then standard input unless --batch", "[debug]") {
  const Session session;
  session.write("typed", "# a comment\n\nprint R16\n");
  const auto run = [&](const std::string& options) {
    return std::system(
        ("cd " + session.path(".") + " && " MTSIM_COMMAND " debug k.yaml " + options + " <typed >out 2>err").c_str());
  };
  session.write("commands", "print R10\n");
  CHECK(WEXITSTATUS(run("--command 'print AR0' -x commands --command 'print R2'")) == 0);
  CHECK_THAT(session.read("out"), EndsWith("R10 = 0x40 (64)\nAR0 = 0x200 (512)\nR2 = 0x0 (0)\nR16 = 0x3 (3)\n"));
  CHECK(WEXITSTATUS(run("--batch --command 'print R2'")) == 0);
  CHECK_THAT(session.read("out"), EndsWith("R2 = 0x0 (0)\n"));
  session.write("typed", "print R1\nprnt R1\n");
  CHECK(WEXITSTATUS(run("")) == 2);
  CHECK_THAT(session.read("err"), Contains("stdin:2: unknown command 'prnt'; did you mean 'print'?"));
  CHECK_THAT(session.mtsim("debug k.yaml -x none").err, Contains("none"));
  CHECK(session.mtsim("debug k.yaml -x none").exit_code == 2);
}

TEST_CASE("at the prompt a mistake is told and the session goes on; an empty line repeats", "[debug]") {
  const Session session;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    if (chdir(session.path(".").c_str()) == 0) execl(MTSIM_COMMAND, "mtsim", "debug", "k.yaml", nullptr);
    _exit(127);
  }
  const std::string typed = "stepp\nstep\n\nquit\n";
  REQUIRE(write(terminal, typed.data(), typed.size()) == static_cast<ssize_t>(typed.size()));
  std::string out;
  char buffer[4096];
  for (ssize_t count; (count = read(terminal, buffer, sizeof buffer)) > 0;) out.append(buffer, count);
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 0);
  CHECK_THAT(out, Contains("(mtsim) ") && Contains("unknown command 'stepp'; did you mean 'step'?"));
  CHECK_THAT(out, Contains("=> cycle 1, packet 1") && Contains("=> cycle 2, packet 2"));
}
