// SPDX-License-Identifier: Apache-2.0
// One debugging session: an exec spec's program on a Stepper, and what the commands of `mtsim debug` do to it. Gives
// text and reads none; command_debug.cpp holds the prompt.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/debug/location.h"
#include "scenarios/debug/stops.h"
#include "scenarios/debug/values.h"
#include "scenarios/exec.h"
#include "scenarios/spec_exec.h"
#include "sim/config/machine.h"
#include "sim/core/stepper.h"

namespace mtsim::scenarios {

class Debugger {
 public:
  using Words = std::vector<std::string>;

  Debugger(const ExecSpec& spec, const sim::MachineConfig& machine);

  /// Carries out one line, abbreviated or not, and gives what there is to print; "" for an empty line. Throws
  /// UsageError for what cannot be understood; the session is as before then.
  std::string run(const std::string& line);
  bool quit() const { return m_quit; }
  /// Whether an empty line at the prompt should do `line` again, as gdb does.
  static bool repeats(const std::string& line);
  /// "=> cycle 9, packet 5 (loop), scale.s:11: SNOP 8", or how the run ended.
  std::string where() const;
  /// Set from elsewhere to stop what runs; the prompt's Ctrl-C.
  static void interrupt();

 private:
  friend struct DebugCommands;  // commands.cpp: the table of names

  // The commands; each gets the words behind its name.
  std::string step(const Words& words);
  std::string back(const Words& words);
  std::string resume(const Words& words);
  std::string reverse_resume(const Words& words);
  std::string run_again(const Words& words);
  std::string restart(const Words& words);
  std::string break_at(const Words& words);
  std::string watch(const Words& words);
  std::string catch_event(const Words& words);
  std::string remove(const Words& words);
  std::string info(const Words& words);
  std::string print(const Words& words);
  std::string format(const Words& words);
  std::string flight(const Words& words);
  std::string list(const Words& words);
  std::string status(const Words& words);
  std::string help(const Words& words);
  std::string leave(const Words& words);

  sim::Stepper::Change undo();  // one step; what it had done
  std::string go(bool forward);
  std::string hit_text(const StopWatch::Hit& hit, const sim::Stepper::Change& change, bool forward) const;
  std::string change_text(const sim::Stepper::Change& change) const;
  std::string old_reads_text(const sim::Stepper::Change& change) const;
  std::string packet_name(int packet) const;                 // "packet 5 (loop+1), scale.s:12"
  std::string source_of(int packet, int instruction) const;  // "VLDW (scale.s:10)"
  std::string instruction_text(int packet, int instruction) const;
  std::string label_of(int packet) const;  // "loop+1"; "" in front of the first
  Stop packets_of(const Words& words) const;
  std::string stops_text() const;
  std::string registers_text() const;
  const ValueType& type_of(const Location& location) const;  // unless the command names one

  CoreBytes m_memory;
  sim::Stepper m_stepper;
  Stops m_stops;
  const ValueType* m_vector_type;
  bool m_quit = false;
};

}  // namespace mtsim::scenarios
