// SPDX-License-Identifier: Apache-2.0
// Running, forwards and backwards, and saying what happened.
#include "scenarios/debug/debugger.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "isa/printer.h"
#include "scenarios/error.h"
#include "scenarios/progress.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

using Change = sim::Stepper::Change;

volatile std::sig_atomic_t g_interrupted = 0;

std::span<const std::byte> bytes_of(const sim::VectorRegister& value, isa::Register reg) {
  const auto all = std::as_bytes(std::span(value.lane));
  return reg.file == isa::RegisterFile::VR ? all : all.first(8);
}

std::string stop_title(const Stop& stop) { return fmt::format("stop {}: {}", stop.number, stop.text); }

std::string plural(std::int64_t count, const std::string& word) {
  return fmt::format("{} {}{}", grouped(count), word, count == 1 ? "" : "s");
}

}  // namespace

Debugger::Debugger(const ExecSpec& spec, const sim::MachineConfig& machine)
    : m_memory(initial_memory(spec, machine)),
      m_stepper(spec.program, machine.pipeline, m_memory.sm, m_memory.am, spec.registers,
                {.entry = spec.entry, .max_cycles = spec.max_cycles}),
      m_vector_type(&value_type("f32")) {}

void Debugger::interrupt() { g_interrupted = 1; }

std::string Debugger::label_of(int packet) const {
  std::string label;
  int nearest = -1;
  for (const auto& [name, at] : m_stepper.program().labels) {
    if (at <= packet && at > nearest) {
      label = name;
      nearest = at;
    }
  }
  return nearest < 0 || nearest == packet ? label : fmt::format("{}+{}", label, packet - nearest);
}

std::string Debugger::packet_name(int packet) const {
  const isa::Program& program = m_stepper.program();
  const std::string label = label_of(packet);
  std::string name = fmt::format("packet {}", packet) + (label.empty() ? "" : fmt::format(" ({})", label));
  if (packet >= static_cast<int>(program.packets.size())) return name + ", behind the last";
  const isa::Place& place = program.packets[static_cast<std::size_t>(packet)].instructions.front().place;
  return name + fmt::format(", {}:{}", place.file, place.line);
}

std::string Debugger::instruction_text(int packet, int instruction) const {
  return isa::print(m_stepper.program()
                        .packets[static_cast<std::size_t>(packet)]
                        .instructions[static_cast<std::size_t>(instruction)]);
}

std::string Debugger::source_of(int packet, int instruction) const {
  const isa::Instruction& from =
      m_stepper.program().packets[static_cast<std::size_t>(packet)].instructions[static_cast<std::size_t>(instruction)];
  return fmt::format("{} (line {})", from.row->mnemonic, from.place.line);
}

std::string Debugger::where() const {
  if (!m_stepper.ended()) {
    const int packet = m_stepper.packet();
    return fmt::format("=> cycle {}, {}: {}\n", m_stepper.cycle(), packet_name(packet),
                       isa::print(m_stepper.program().packets[static_cast<std::size_t>(packet)]));
  }
  const sim::RunResult result = m_stepper.result();
  const std::string counts = fmt::format("{}, {} and {}", plural(result.cycles, "cycle"),
                                         plural(result.packets, "packet"), plural(result.idles, "idle"));
  if (result.status == sim::RunStatus::done) return fmt::format("the program is done: {}\n", counts);
  return fmt::format("the program has stopped after {}\nfault: {}\n", counts, result.fault.str());
}

const ValueType& Debugger::type_of(const Location& location) const {
  if (location.is_vector()) return *m_vector_type;
  if (location.reg) return value_type("hex");
  // What AM holds are the vectors' numbers.
  if (location.space == sim::CoreMemory::am && location.bytes % m_vector_type->bytes == 0) return *m_vector_type;
  for (const char* name : {"hex", "hex32", "hex16"}) {
    if (location.bytes % value_type(name).bytes == 0) return value_type(name);
  }
  return value_type("hex8");
}

std::string Debugger::old_reads_text(const Change& change) const {
  if (!by_hand(m_stepper.program(), change.packet)) return "";
  std::string out;
  for (const auto& read : change.old_reads) {
    const std::int64_t left = read.newer.lands - change.cycle;
    out += fmt::format("  OLD VALUE: {} reads the old {}: the result of {} lands {} cycle{} later\n",
                       source_of(change.packet, read.instruction), read.reg.str(),
                       source_of(read.newer.packet, read.newer.instruction), left, left == 1 ? "" : "s");
  }
  return out;
}

std::string Debugger::change_text(const Change& change) const {
  std::string out = old_reads_text(change);
  for (const auto& store : change.stores) {
    Location at{.reg = {}, .space = store.space, .address = store.address, .bytes = store.bytes.size()};
    out += fmt::format("  stores {}: {}\n", at.str(), change_summary(store.old, store.bytes, type_of(at)));
  }
  if (change.taken) {
    const std::string target =
        change.taken->target == sim::Stepper::Branch::k_return ? "the caller" : packet_name(change.taken->target);
    out += fmt::format("  branches to {} at cycle {}\n", target, change.taken->at);
  }
  for (const auto& result : change.issued) {
    if (result.lands == result.issued + 1) continue;  // seen landing below
    out += fmt::format("  issues {}, lands at cycle {}\n", result.reg.str(), result.lands);
  }
  for (const auto& landing : change.landed) {
    const isa::Register reg = landing.result.reg;
    const ValueType& type = type_of({.reg = reg});
    const std::string from = landing.result.lands == landing.result.issued + 1
                                 ? ""
                                 : fmt::format(", of {}", source_of(landing.result.packet, landing.result.instruction));
    out += fmt::format("  lands {} at cycle {}: {}{}\n", reg.str(), landing.result.lands,
                       change_summary(bytes_of(landing.old, reg), bytes_of(landing.result.value, reg), type), from);
  }
  return out;
}

std::string Debugger::hit_text(const StopWatch::Hit& hit, const Change& change, bool forward) const {
  const std::string title = stop_title(*hit.stop);
  if (hit.stop->kind == Stop::Kind::old_read) {
    return fmt::format("{}: {}, cycle {}\n{}", title, packet_name(change.packet), change.cycle, old_reads_text(change));
  }
  if (hit.stop->kind != Stop::Kind::watch) return title + "\n";

  const Location& place = hit.stop->watched;
  const std::string values = change_summary(hit.before, hit.after, type_of(place));
  std::string cause;
  if (place.reg) {
    const auto last = std::find_if(change.landed.rbegin(), change.landed.rend(),
                                   [&](const auto& landing) { return landing.result.reg == *place.reg; });
    const auto& result = last->result;
    cause = fmt::format("landed at cycle {}, issued at cycle {} by {}: {}", result.lands, result.issued,
                        packet_name(result.packet), instruction_text(result.packet, result.instruction));
  } else {
    const auto store = std::find_if(change.stores.rbegin(), change.stores.rend(), [&](const auto& candidate) {
      return candidate.space == place.space && candidate.address < place.address + place.bytes &&
             place.address < candidate.address + candidate.bytes.size();
    });
    cause = fmt::format("stored at cycle {} by {}: {}", change.cycle, packet_name(change.packet),
                        instruction_text(change.packet, store->instruction));
  }
  return fmt::format("{}{}\n  {}\n  {}\n", title, forward ? "" : ", undone", values, cause);
}

Change Debugger::undo() {
  if (m_stepper.last() == nullptr) {  // the log is used up: run to here again, which fills it
    const std::int64_t steps = m_stepper.steps();
    m_stepper.go_to(steps - 1);
    m_stepper.step();
  }
  Change change = *m_stepper.last();
  m_stepper.step_back();
  return change;
}

std::string Debugger::go(bool forward) {
  if (forward && m_stepper.ended()) return where() + "back, reverse-continue or restart go on from here\n";
  if (!forward && m_stepper.steps() == 0) return "this is the start\n" + where();
  std::string out;
  std::int64_t old_reads = 0;
  bool caught = false;  // a stop has told of the old read
  g_interrupted = 0;
  const Progress progress(forward ? "running" : "running backwards");
  while (forward ? !m_stepper.ended() : m_stepper.steps() > 0) {
    const StopWatch watch(m_stops, m_stepper);
    const Change undone = forward ? Change{} : undo();
    const Change& change = forward ? m_stepper.step() : undone;
    if (by_hand(m_stepper.program(), change.packet)) old_reads += static_cast<std::int64_t>(change.old_reads.size());
    for (const auto& hit : watch.hits(change)) {
      out += hit_text(hit, change, forward);
      caught = caught || hit.stop->kind == Stop::Kind::old_read;
    }
    if (g_interrupted != 0) out += "interrupted\n";
    if (!out.empty()) break;
  }
  if (!forward && out.empty()) out = "this is the start\n";
  if (forward && !caught && old_reads > 0) {
    out += fmt::format("{} of an old value on the way; `catch old-read` stops at {}\n", plural(old_reads, "read"),
                       old_reads == 1 ? "it" : "them");
  }
  return out + where();
}

std::string Debugger::step(const Words& words) {
  const std::int64_t count = words.empty() ? 1 : parse_count(words[0], "steps");
  if (m_stepper.ended()) return where() + "back, reverse-continue or restart go on from here\n";
  std::string out;
  g_interrupted = 0;
  for (std::int64_t i = 0; i < count && !m_stepper.ended() && g_interrupted == 0; ++i) {
    if (i > 0) out += where();
    const StopWatch watch(m_stops, m_stepper);
    const Change& change = m_stepper.step();
    out += change_text(change);
    const auto hits = watch.hits(change);
    for (const auto& hit : hits) out += hit_text(hit, change, true);
    if (!hits.empty()) break;
  }
  return out + where();
}

std::string Debugger::back(const Words& words) {
  const std::int64_t count = words.empty() ? 1 : parse_count(words[0], "steps");
  if (m_stepper.steps() == 0) return "this is the start\n" + where();
  m_stepper.go_to(m_stepper.steps() - std::min(count, m_stepper.steps()));
  return where();
}

std::string Debugger::resume(const Words& /*words*/) { return go(true); }
std::string Debugger::reverse_resume(const Words& /*words*/) { return go(false); }

std::string Debugger::run_again(const Words& /*words*/) {
  m_stepper.go_to(0);
  std::string out;
  for (const Stop& stop : m_stops.all()) {  // nothing has moved yet: a breakpoint at the first packet
    if (!m_stepper.ended() && stop.packets.contains(m_stepper.packet())) out += stop_title(stop) + "\n";
  }
  return out.empty() ? go(true) : out + where();
}

std::string Debugger::restart(const Words& /*words*/) {
  m_stepper.go_to(0);
  return where();
}

std::string Debugger::flight(const Words& /*words*/) {
  std::string out;
  if (const auto branch = m_stepper.pending_branch()) {
    out = fmt::format("a branch to {} takes effect at cycle {}\n",
                      branch->target == sim::Stepper::Branch::k_return ? "the caller" : packet_name(branch->target),
                      branch->at);
  }
  if (m_stepper.in_flight().empty()) return out + "no results in flight\n";
  auto results = m_stepper.in_flight();
  std::stable_sort(results.begin(), results.end(), [](const auto& a, const auto& b) { return a.lands < b.lands; });
  Table table({Align::left, Align::right, Align::right, Align::left, Align::left},
              {"register", "lands", "in", "value", "from"});
  for (const auto& result : results) {
    table.add({result.reg.str(), fmt::format("{}", result.lands), fmt::format("{}", result.lands - m_stepper.cycle()),
               summary(bytes_of(result.value, result.reg), type_of({.reg = result.reg})),
               fmt::format("cycle {}, packet {}, line {}: {}", result.issued, result.packet,
                           m_stepper.program()
                               .packets[static_cast<std::size_t>(result.packet)]
                               .instructions[static_cast<std::size_t>(result.instruction)]
                               .place.line,
                           instruction_text(result.packet, result.instruction))});
  }
  return out + table.text();
}

std::string Debugger::status(const Words& /*words*/) {
  std::string out = where();
  out += fmt::format("{} from the start; the last {} can be undone at once, older ones by running again\n",
                     plural(m_stepper.steps(), "step"), grouped(m_stepper.undo_steps()));
  if (m_stepper.ended()) return out;
  out += fmt::format("{} in flight{}\n", plural(static_cast<std::int64_t>(m_stepper.in_flight().size()), "result"),
                     m_stepper.pending_branch() ? " and a taken branch" : "");
  return out;
}

}  // namespace mtsim::scenarios
