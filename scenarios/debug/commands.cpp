// SPDX-License-Identifier: Apache-2.0
// The commands by name, and those that set stops or look without running.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "isa/diagnostic.h"
#include "isa/printer.h"
#include "scenarios/debug/debugger.h"
#include "scenarios/error.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

struct DebugCommands {
  struct Row {
    std::string_view name;
    std::string_view others;  // short forms and gdb's names, blanks between
    std::string_view arguments;
    std::string_view help;
    std::size_t most;  // words behind the name
    bool repeats;      // by an empty line
    std::string (Debugger::*run)(const Debugger::Words&);
  };
  static const std::vector<Row>& rows();
  static const Row& find(const std::string& word);
};

const std::vector<DebugCommands::Row>& DebugCommands::rows() {
  static const std::vector<Row> k_rows = {
      {"step", "s si stepi n next ni nexti", "[N]", "issue the next packet, or N; shows what each changes", 1, true,
       &Debugger::step},
      {"back", "rs rsi reverse-step reverse-stepi rn reverse-next", "[N]", "undo the last step, or N", 1, true,
       &Debugger::back},
      {"continue", "c", "", "run to the next stop or the end", 0, true, &Debugger::resume},
      {"reverse-continue", "rc", "", "run backwards to the stop before, or the start", 0, true,
       &Debugger::reverse_resume},
      {"run", "r", "", "run from the start to the first stop", 0, false, &Debugger::run_again},
      {"restart", "start", "", "go to the start", 0, false, &Debugger::restart},
      {"break", "b", "LABEL | cycle N | line N | FILE:LINE | packet N",
       "stop in front of a packet, or when a cycle is reached", 2, false, &Debugger::break_at},
      {"watch", "w", "R3 | VR17 | sm:0x100[:BYTES] | am:AR0+0x80[:BYTES]",
       "stop when it changes; shows old and new and which packet did it", 1, false, &Debugger::watch},
      {"catch", "", "old-read", "stop at a read of a register whose newer result is in flight", 1, false,
       &Debugger::catch_event},
      {"delete", "d", "[NUMBER]", "forget one stop, or all", 1, false, &Debugger::remove},
      {"info", "i", "breakpoints | registers [REGISTER] | flight",
       "list the stops, the registers that are not 0, or `flight`", 2, false, &Debugger::info},
      {"print", "p x", "REGISTER | PARAMETER | sm:ADDRESS | am:ADDRESS [TYPE] [COUNT]",
       "values as f16, f32, f64, hex[8|16|32], int[8|16|32]; an address is a sum of numbers and registers", 3, false,
       &Debugger::print},
      {"format", "", "[TYPE]", "how vectors and AM are shown where no type is given (f32 at the start)", 1, false,
       &Debugger::format},
      {"flight", "f", "", "the results in flight: register, cycle it lands, value, from which packet", 0, false,
       &Debugger::flight},
      {"list", "l", "[LABEL | PACKET]", "packets around the next one (=>), or around another; * has a breakpoint", 1,
       false, &Debugger::list},
      {"status", "where", "", "cycle, packet, label, steps, results in flight", 0, false, &Debugger::status},
      {"help", "h", "[COMMAND]", "this list, or one command", 1, false, &Debugger::help},
      {"quit", "q exit", "", "end; so does the end of the input", 0, false, &Debugger::leave}};
  return k_rows;
}

const DebugCommands::Row& DebugCommands::find(const std::string& word) {
  std::vector<std::string_view> names;
  std::vector<const Row*> beginning;
  for (const Row& row : rows()) {
    std::istringstream others{std::string(row.others)};
    for (std::string other; others >> other;) {
      if (word == other) return row;
    }
    if (word == row.name) return row;
    if (!word.empty() && row.name.starts_with(word)) beginning.push_back(&row);
    names.push_back(row.name);
  }
  if (beginning.size() == 1) return *beginning.front();
  if (beginning.size() > 1) {
    std::string fitting;
    for (const Row* row : beginning) fitting += (fitting.empty() ? "" : ", ") + std::string(row->name);
    throw UsageError(fmt::format("'{}' is short for several commands: {}", word, fitting));
  }
  const std::string near = isa::did_you_mean(word, names);
  throw UsageError(fmt::format("unknown command '{}'{}", word, near.empty() ? "; `help` lists them" : near));
}

namespace {

constexpr int k_listed = 5;  // packets in front of and behind the one in the middle

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line.substr(0, line.find('#')));
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

/// gdb says type and count behind a slash: `print/x`, `x/8f`, `p /x R3`.
void add_words_of_slash(const std::string& text, Debugger::Words& words) {
  const std::size_t letter = std::min(text.find_first_not_of("0123456789"), text.size());
  if (letter > 0) words.push_back(text.substr(0, letter));
  const std::string type = text.substr(letter);
  if (!type.empty()) words.push_back(type == "x" ? "hex" : type == "d" ? "int" : type == "f" ? "f32" : type);
}

const ValueType& require_type(const std::string& name) {
  if (const ValueType* type = find_value_type(name)) return *type;
  std::vector<std::string_view> names;
  std::string known;
  for (const ValueType& type : value_types()) {
    names.push_back(type.name);
    known += (known.empty() ? "" : ", ") + std::string(type.name);
  }
  throw UsageError(fmt::format("unknown type '{}'{}; types: {}", name, isa::did_you_mean(name, names), known));
}

/// The path of the program's own file or of one it includes, given as a path or by its name alone.
std::string file_of(const std::string& name, const isa::Program& program) {
  std::set<std::string> files = {program.file};
  for (const isa::Packet& packet : program.packets) files.insert(packet.instructions.front().place.file);
  std::string known;
  for (const std::string& file : files) {
    if (file == name || file.ends_with("/" + name)) return file;
    known += (known.empty() ? "" : ", ") + file;
  }
  throw UsageError(fmt::format("no file '{}' in this program; it is made of {}", name, known));
}

bool is_number(const std::string& word) { return !word.empty() && word.front() >= '0' && word.front() <= '9'; }

}  // namespace

std::string Debugger::run(const std::string& line) {
  Words words = words_of(line);
  if (words.empty()) return "";
  std::string name = words.front();
  words.erase(words.begin());
  if (const std::size_t slash = name.find('/'); slash != std::string::npos) {
    add_words_of_slash(name.substr(slash + 1), words);
    name.resize(slash);
  } else if (!words.empty() && words.front().starts_with('/')) {
    const std::string text = words.front().substr(1);
    words.erase(words.begin());
    add_words_of_slash(text, words);
  }
  const DebugCommands::Row& row = DebugCommands::find(name);
  if (words.size() > row.most) {
    throw UsageError(fmt::format("'{}' is one word too many; {} {}", words[row.most], row.name,
                                 row.arguments.empty() ? "takes none" : "takes " + std::string(row.arguments)));
  }
  return (this->*row.run)(words);
}

bool Debugger::repeats(const std::string& line) {
  const Words words = words_of(line);
  return !words.empty() && DebugCommands::find(words.front()).repeats;
}

Stop Debugger::packets_of(const Words& words) const {
  const isa::Program& program = m_stepper.program();
  const auto count = static_cast<int>(program.packets.size());
  Stop stop;
  const bool bare_number = words.size() == 1 && is_number(words[0]);  // a line, as in gdb
  const std::size_t colon = words[0].rfind(':');
  if (words[0] == "line" || bare_number || colon != std::string::npos) {
    const std::string file = colon == std::string::npos ? program.file : file_of(words[0].substr(0, colon), program);
    const std::int64_t wanted =
        parse_count(colon == std::string::npos ? words.back() : words[0].substr(colon + 1), "a line");
    std::int64_t line = INT64_MAX;  // the first one from there on that has packets
    for (int p = 0; p < count; ++p) {
      for (const auto& instruction : program.packets[static_cast<std::size_t>(p)].instructions) {
        if (instruction.place.file != file || instruction.place.line < wanted) continue;
        if (instruction.place.line < line) stop.packets.clear();
        line = std::min<std::int64_t>(line, instruction.place.line);
        if (instruction.place.line == line) stop.packets.insert(p);
      }
    }
    if (stop.packets.empty()) throw UsageError(fmt::format("{} has no packet on line {} or behind it", file, wanted));
    stop.text = file == program.file ? fmt::format("line {}", line) : fmt::format("{}:{}", file, line);
    return stop;
  }
  if (words[0] == "packet" || words[0].starts_with("*")) {
    const std::string text = words[0] == "packet" ? words.back() : words[0].substr(1);
    const std::int64_t packet = parse_count(text, "a packet", 0);
    if (packet >= count) throw UsageError(fmt::format("there is no packet {}; the last is {}", packet, count - 1));
    stop.packets = {static_cast<int>(packet)};
    stop.text = fmt::format("packet {}", packet);
    return stop;
  }
  const auto label = program.labels.find(words[0]);
  if (label == program.labels.end()) {
    std::vector<std::string_view> names;
    names.reserve(program.labels.size());
    for (const auto& [name, packet] : program.labels) names.push_back(name);
    throw UsageError(fmt::format("no label '{}'{}; write break LABEL, cycle N, line N, FILE:LINE or packet N", words[0],
                                 isa::did_you_mean(words[0], names)));
  }
  if (label->second >= count) throw UsageError(fmt::format("'{}' stands behind the last packet", words[0]));
  stop.packets = {label->second};
  stop.text = words[0];
  return stop;
}

std::string Debugger::break_at(const Words& words) {
  const bool takes_number = !words.empty() && (words[0] == "cycle" || words[0] == "line" || words[0] == "packet");
  if (words.empty() || takes_number != (words.size() == 2)) {
    throw UsageError("break takes LABEL, cycle N, line N, FILE:LINE or packet N");
  }
  Stop stop;
  if (words[0] == "cycle") {
    stop.kind = Stop::Kind::cycle;
    stop.cycle = parse_count(words[1], "a cycle", 0);
    stop.text = fmt::format("breakpoint at cycle {}", stop.cycle);
  } else {
    stop = packets_of(words);
    stop.text = "breakpoint at " + stop.text;
  }
  const Stop& added = m_stops.add(std::move(stop));
  std::string out = fmt::format("stop {}: {}\n", added.number, added.text);
  for (const int packet : added.packets) out += fmt::format("  {}\n", packet_name(packet));
  return out;
}

std::string Debugger::watch(const Words& words) {
  if (words.empty()) throw UsageError("watch takes a register, sm:ADDRESS[:BYTES] or am:ADDRESS[:BYTES]");
  Stop stop;
  stop.kind = Stop::Kind::watch;
  stop.watched = parse_location(words[0], m_stepper);
  if (!stop.watched.sized) stop.watched = with_bytes(stop.watched, 8, m_stepper);
  stop.text = "watch " + stop.watched.str();
  if (!stop.watched.reg) stop.text += fmt::format(", {} bytes", stop.watched.bytes);
  const Stop& added = m_stops.add(std::move(stop));
  return fmt::format("stop {}: {}\n  now {}\n", added.number, added.text,
                     summary(bytes_at(added.watched, m_stepper), type_of(added.watched)));
}

std::string Debugger::catch_event(const Words& words) {
  if (words.empty() || !std::string_view("old-read").starts_with(words[0])) {
    throw UsageError("catch takes old-read: a read of a register whose newer result is in flight");
  }
  Stop stop;
  stop.kind = Stop::Kind::old_read;
  stop.text = "read of an old value";
  const Stop& added = m_stops.add(std::move(stop));
  return fmt::format("stop {}: {}\n", added.number, added.text);
}

std::string Debugger::remove(const Words& words) {
  if (words.empty()) {
    m_stops.clear();
    return "";
  }
  const std::int64_t number = parse_count(words[0], "a stop");
  if (number > INT32_MAX || !m_stops.remove(static_cast<int>(number))) {
    throw UsageError(fmt::format("there is no stop {}; `info breakpoints` lists them", number));
  }
  return "";
}

std::string Debugger::stops_text() const {
  if (m_stops.all().empty()) return "no stops\n";
  std::string out;
  for (const Stop& stop : m_stops.all()) out += fmt::format("{:>3}  {}\n", stop.number, stop.text);
  return out;
}

std::string Debugger::registers_text() const {
  Table table({Align::left, Align::right, Align::right});
  const auto add = [&](isa::RegisterFile file, const auto& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == 0) continue;
      table.add({isa::Register{file, static_cast<std::uint16_t>(i)}.str(), fmt::format("{:#x}", values[i]),
                 fmt::format("{}", static_cast<std::int64_t>(values[i]))});
    }
  };
  const sim::RegisterState& state = m_stepper.registers();
  add(isa::RegisterFile::R, state.r);
  add(isa::RegisterFile::AR, state.ar);
  add(isa::RegisterFile::OR, state.orr);
  add(isa::RegisterFile::SVR, state.svr);
  std::string vectors;
  for (std::size_t i = 0; i < state.vr.size(); ++i) {
    if (state.vr[i] != sim::VectorRegister{}) vectors += fmt::format(" VR{}", i);
  }
  return table.text() + (vectors.empty() ? "no vector differs from 0\n" : "vectors not 0:" + vectors + "\n");
}

std::string Debugger::info(const Words& words) {
  const auto means = [&](std::string_view name) { return !words.empty() && name.starts_with(words[0]); };
  if (words.size() == 2 && means("registers")) return print({words[1]});
  if (words.size() == 2) throw UsageError("info takes breakpoints, registers, registers REGISTER or flight");
  if (means("breakpoints") || means("watchpoints") || means("stops")) return stops_text();
  if (means("registers")) return registers_text();
  if (means("flight")) return flight({});
  throw UsageError("info takes breakpoints, registers or flight");
}

std::string Debugger::print(const Words& words) {
  if (words.empty()) throw UsageError("print takes a register, sm:ADDRESS or am:ADDRESS, then a type and a count");
  Location place = parse_location(words[0], m_stepper);
  const ValueType* type = nullptr;
  std::optional<std::int64_t> count;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (is_number(words[i]) || words[i].front() == '-') {
      if (std::exchange(count, parse_count(words[i], "how many numbers"))) throw UsageError("print: two counts");
    } else if (std::exchange(type, &require_type(words[i])) != nullptr) {
      throw UsageError("print: two types");
    }
  }
  if (place.reg && count) throw UsageError("print: a register has no count; it is shown whole");
  if (!place.reg) {
    if (type == nullptr && place.sized && !count) type = &type_of(place);
    if (type == nullptr) type = place.space == sim::CoreMemory::am ? m_vector_type : &value_type("hex");
    if (!place.sized || count) {
      const auto most = static_cast<std::int64_t>(m_stepper.memory(place.space).size() / type->bytes);
      place =
          with_bytes(place, type->bytes * static_cast<std::size_t>(std::min(count.value_or(1), most + 1)), m_stepper);
    } else if (place.bytes % type->bytes != 0) {
      throw UsageError(fmt::format("print: {} bytes are no whole number of {}", place.bytes, type->name));
    }
  }
  const auto bytes = bytes_at(place, m_stepper);
  std::string out;
  if (place.reg && !place.is_vector() && type == nullptr) {
    out = fmt::format("{} = {} ({})\n", place.str(), number_text(bytes, value_type("hex")),
                      number_text(bytes, value_type("int")));
  } else {
    if (type == nullptr) type = m_vector_type;
    const std::size_t numbers = bytes.size() / type->bytes, per_line = type->bytes == 8 ? 4 : 8;
    const bool same = numbers > 1 && summary(bytes, *type).find(" x ") != std::string::npos;
    if (numbers == 1 || same) {
      out = fmt::format("{} = {} ({})\n", place.str(), summary(bytes, *type), type->name);
    } else {
      std::vector<std::string> heads;
      for (std::size_t i = 0; i < numbers; i += per_line) {
        heads.push_back(place.reg ? fmt::format("[{}]", i)
                                  : fmt::format("{}:{:#x}", to_string(place.space), place.address + i * type->bytes));
      }
      out =
          fmt::format("{}, {} {}:\n{}", place.str(), numbers, type->name, number_lines(bytes, *type, per_line, heads));
    }
  }
  for (const auto& result : m_stepper.in_flight()) {
    if (!place.reg || result.reg != *place.reg) continue;
    out += fmt::format("  a newer value is in flight: lands at cycle {}, in {}, from {}\n", result.lands,
                       result.lands - m_stepper.cycle(), source_of(result.packet, result.instruction));
  }
  return out;
}

std::string Debugger::format(const Words& words) {
  if (!words.empty()) m_vector_type = &require_type(words[0]);
  return fmt::format("vectors and AM are shown as {}\n", m_vector_type->name);
}

std::string Debugger::list(const Words& words) {
  const isa::Program& program = m_stepper.program();
  const auto count = static_cast<int>(program.packets.size());
  int middle = std::min(m_stepper.packet(), count - 1);
  if (!words.empty()) middle = *packets_of(is_number(words[0]) ? Words{"packet", words[0]} : words).packets.begin();
  Table table({Align::left, Align::right, Align::right, Align::left, Align::left},
              {"", "packet", "line", "label", "text"});
  for (int p = std::max(0, middle - k_listed); p < std::min(count, middle + k_listed + 1); ++p) {
    std::string labels;
    for (const auto& [name, at] : program.labels) {
      if (at == p) labels += name + ":";
    }
    const isa::Packet& packet = program.packets[static_cast<std::size_t>(p)];
    const bool next = !m_stepper.ended() && p == m_stepper.packet();
    table.add({std::string(next ? "=>" : "") + (m_stops.breaks_at(p) ? "*" : ""), fmt::format("{}", p),
               fmt::format("{}", packet.instructions.front().place.line), labels, isa::print(packet)});
  }
  return table.text();
}

std::string Debugger::help(const Words& words) {
  Table table({Align::left, Align::left});
  for (const auto& row : DebugCommands::rows()) {
    if (!words.empty() && &row != &DebugCommands::find(words[0])) continue;
    table.add({fmt::format("{} {}", row.name, row.arguments), ""});
    table.add(
        {fmt::format("    {}{}", row.help, row.others.empty() ? "" : fmt::format(" (also: {})", row.others)), ""});
  }
  std::string out = table.text();
  if (words.empty()) {
    out +=
        "A command may be cut short where it stays unique. At the prompt an empty line steps, or continues, again.\n";
  }
  return out;
}

std::string Debugger::leave(const Words& /*words*/) {
  m_quit = true;
  return "";
}

}  // namespace mtsim::scenarios
