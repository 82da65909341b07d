// SPDX-License-Identifier: Apache-2.0
#include "sim/trace.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/checker.h"
#include "isa/printer.h"
#include "sim/config/yaml.h"
#include "sim/core/trace.h"
#include "sim/source.h"

namespace mtsim::sim {
namespace {

// Processes and tracks of the trace.
constexpr int k_memory_process = 1000;
constexpr int k_core_track = 0, k_packet_track = 1, k_counter_track = 2, k_first_channel_track = 10;
int process_of(int core) { return core + 1; }

/// "VMAC1 VMAC2 SLDST": the slots a packet fills.
std::string units_text(const isa::Packet& packet) {
  if (packet.is_idle()) return "idle";
  std::string text;
  for (const isa::Instruction& instruction : packet.instructions) {
    text += (text.empty() ? "" : " ") + std::string(isa::name(instruction.unit));
  }
  return text;
}

}  // namespace

TraceWindow parse_trace_window(const std::string& text, double cycles_per_us) {
  const auto bad = [&](const std::string& why) {
    return ConfigError(
        fmt::format("trace window '{}': {}; write FROM:TO in cycles, e.g. 10000:30000, or 10us:20us", text, why));
  };
  const auto colon = text.find(':');
  if (colon == std::string::npos) throw bad("no ':'");
  const auto parse = [&](std::string_view side, std::int64_t absent) -> std::int64_t {
    if (side.empty()) return absent;
    const bool in_us = side.size() > 2 && side.substr(side.size() - 2) == "us";
    const std::string digits(side.substr(0, side.size() - (in_us ? 2 : 0)));
    std::size_t end = 0;
    double value = -1;
    try {
      value = std::stod(digits, &end);
    } catch (const std::exception&) {
      end = 0;
    }
    if (end == 0 || end != digits.size() || !(value >= 0) || value > 1e15) {
      throw bad(fmt::format("'{}' is no time", side));
    }
    return static_cast<std::int64_t>(in_us ? value * cycles_per_us : value);
  };
  const TraceWindow window{parse(std::string_view(text).substr(0, colon), 0),
                           parse(std::string_view(text).substr(colon + 1), INT64_MAX)};
  if (window.from >= window.to) throw bad("it is empty");
  return window;
}

// --- the trace

TraceWriter::TraceWriter(const std::string& path, TraceWindow window, double cycles_per_us)
    : m_file(path, fmt::format("\"time\":\"1 ns of the trace is 1 cycle\",\"cycles_per_us\":{}", cycles_per_us)),
      m_window(window),
      m_packets(window.to - window.from <= k_packet_window) {
  if (!m_packets)
    note(fmt::format("trace: no packets; they need a --trace-window of at most {} cycles", k_packet_window));
}

TraceWriter::~TraceWriter() = default;

void TraceWriter::note(const std::string& text) {
  if (std::find(m_notes.begin(), m_notes.end(), text) == m_notes.end()) m_notes.push_back(text);
}

void TraceWriter::finish() {
  if (m_window.from >= m_shift) {
    note(fmt::format("trace: nothing in it; all ended at cycle {}, before the --trace-window begins", m_shift));
  }
  m_file.finish();
}

void TraceWriter::name_track(int process, int track, std::string_view name, int number) {
  if (m_named.size() <= static_cast<std::size_t>(process)) m_named.resize(static_cast<std::size_t>(process) + 1);
  auto& tracks = m_named[static_cast<std::size_t>(process)];
  if (tracks.test(static_cast<std::size_t>(track))) return;
  if (tracks.none())
    m_file.name_process(process, process == k_memory_process ? "memory" : fmt::format("core {}", process - 1));
  tracks.set(static_cast<std::size_t>(track));
  if (!name.empty()) m_file.name_track(process, track, name, number);
}

void TraceWriter::launch(int cores) { m_issues.assign(static_cast<std::size_t>(cores), {}); }

void TraceWriter::end(std::int64_t cycles) { m_shift += cycles; }

void TraceWriter::spent(int core, CycleClass cycle_class, std::int64_t from, std::int64_t cycles) {
  from += m_shift;
  if (cycles == 0 || !m_window.meets(from, from + cycles)) return;
  name_track(process_of(core), k_core_track, "core");
  m_file.slice(process_of(core), k_core_track, from, cycles, name(cycle_class), "");
}

void TraceWriter::call(const Verb& verb, const Kernel& kernel, std::span<const Argument> arguments,
                       std::int64_t call_cycles, std::int64_t cycles) {
  const std::int64_t from = verb.cycle + m_shift, packets_from = from + call_cycles;
  if (!m_window.meets(from, packets_from + cycles)) return;
  name_track(process_of(verb.core), k_core_track, "core");
  if (call_cycles > 0 && m_window.meets(from, packets_from)) {
    m_file.slice(process_of(verb.core), k_core_track, from, call_cycles, name(CycleClass::call), "");
  }
  if (!m_window.meets(packets_from, packets_from + cycles)) return;
  const isa::Program& program = kernel.program->program();
  std::string& text = m_text;
  text = "\"at\":\"";
  text += source(verb.from);
  text += '"';
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    text += ',';
    text += TraceFile::quoted(program.parameters[i].name);
    text += ":\"";
    if (arguments[i].is_pointer) {
      text += arguments[i].pointer.str();
    } else {
      TraceFile::append(text, static_cast<std::int64_t>(arguments[i].value));
    }
    text += '"';
  }
  m_file.slice(process_of(verb.core), k_core_track, packets_from, cycles, program.name, text);
  if (m_packets) packets(verb.core, kernel, arguments, packets_from);
}

/// A kernel's packets issue the same way whatever its data: they are worked out, not watched.
void TraceWriter::packets(int core, const Kernel& kernel, std::span<const Argument> arguments, std::int64_t from) {
  const isa::Program& program = kernel.program->program();
  const auto [known, is_new] = m_not_static.try_emplace(kernel.program);
  if (is_new && isa::timing_is_static(program, &known->second)) {
    known->second.clear();
    isa::footprint_is_static(program, &known->second);
  }
  if (!known->second.empty()) {
    note(fmt::format("no packets of {}: its course depends on data: {}", program.name, known->second));
    return;
  }
  std::vector<std::uint64_t> counts;
  for (const Argument& argument : arguments) counts.push_back(argument.is_pointer ? 0 : argument.value);
  RunOptions options;
  options.entry = kernel.entry;
  const CallTrace run = sim::trace(*kernel.program, counts, options);
  name_track(process_of(core), k_packet_track, "packets");
  for (std::size_t i = 0; i < run.issues.size(); ++i) {
    const auto [packet, cycle] = run.issues[i];
    const std::int64_t end = i + 1 < run.issues.size() ? run.issues[i + 1].cycle : run.profile.result.cycles;
    if (!m_window.meets(from + cycle, from + end)) continue;
    if (m_packets_written++ >= k_max_packets) {
      note(fmt::format("only the first {} packets", k_max_packets));
      return;
    }
    const isa::Packet& its = program.packets[static_cast<std::size_t>(packet)];
    const int line = its.instructions.empty() ? 0 : its.instructions.front().place.line;
    m_file.slice(
        process_of(core), k_packet_track, from + cycle, end - cycle, units_text(its),
        fmt::format("\"packet\":{},\"line\":{},\"text\":{}", packet, line, TraceFile::quoted(isa::print(its))));
  }
}

void TraceWriter::issued(const Issue& issue) {
  auto& channels = m_issues[static_cast<std::size_t>(issue.verb.core)];
  const auto channel = static_cast<std::size_t>(issue.channel);
  if (channels.size() <= channel) channels.resize(channel + 1);
  channels[channel] = issue;
}

void TraceWriter::moved(int core, int channel, std::int64_t cycle) {
  const Issue& issue = m_issues[static_cast<std::size_t>(core)][static_cast<std::size_t>(channel)];
  const std::int64_t from = issue.verb.cycle + m_shift;
  if (!m_window.meets(from, cycle + m_shift)) return;
  const int track = k_first_channel_track + channel;
  name_track(process_of(core), track, "channel", channel);
  const Move& move = issue.move;
  const std::int64_t bytes = move.source_rows.total_bytes();
  m_file.slice(process_of(core), track, from, cycle + m_shift - from,
               fmt::format("{} {}->{} {} B", issue.verb.name, to_string(move.source.space),
                           to_string(move.destination.space), bytes),
               fmt::format("\"bytes\":{},\"from\":\"{}\",\"to\":\"{}\",\"rows\":{},\"priority\":{},\"at\":\"{}\"",
                           bytes, move.source.str(), move.destination.str(), move.source_rows.count, issue.priority,
                           source(issue.verb.from)));
}

const std::string& TraceWriter::source(const std::source_location& place) {
  const auto [known, is_new] = m_sources.try_emplace({place.file_name(), place.line()});
  if (is_new) known->second = source_text(place);
  return known->second;
}

void TraceWriter::rates(std::int64_t cycle, const Fabric::Shares& shares) {
  count(k_memory_process, m_ddr, cycle + m_shift, 100 * shares.ddr);
  count(k_memory_process, m_gsm, cycle + m_shift, shares.gsm);
  m_ports.resize(shares.ports.size(), {"DMA port", "bytes per cycle"});
  for (std::size_t core = 0; core < m_ports.size(); ++core) {
    count(process_of(static_cast<int>(core)), m_ports[core], cycle + m_shift, shares.ports[core]);
  }
}

void TraceWriter::count(int process, Counter& counter, std::int64_t cycle, double value) {
  const auto write = [&](std::int64_t at, double level) {
    name_track(process, k_counter_track, "");
    m_file.counter(process, at, counter.name, counter.unit, level);
    counter.written = true;
  };
  if (cycle > m_window.from && cycle < m_window.to) {
    if (!counter.written) write(m_window.from, counter.value);  // what it was when the window opens
    if (value != counter.value) write(cycle, value);
  }
  counter.value = value;
}

// --- the DDR's requests

DramTraceWriter::DramTraceWriter(const std::string& path) : m_file(path, "--dram-trace") {
  m_file.write("cycle,core,channel,kind,address,rows,row_bytes,pitch_bytes\n");
}

void DramTraceWriter::end(std::int64_t cycles) { m_shift += cycles; }

void DramTraceWriter::dram_request(std::int64_t cycle, int core, int channel, const MemoryModel::Request& request) {
  m_file.write(fmt::format("{},{},{},{},{:#x},{},{},{}\n", cycle + m_shift, core, channel, request.is_write ? 'W' : 'R',
                           request.start, request.rows, request.row_bytes, request.pitch_bytes));
}

void DramTraceWriter::finish() { m_file.commit(); }

// --- several

void Observers::launch(int cores) {
  for (Observer* observer : m_all) observer->launch(cores);
}
void Observers::end(std::int64_t cycles) {
  for (Observer* observer : m_all) observer->end(cycles);
}
void Observers::spent(int core, CycleClass cycle_class, std::int64_t from, std::int64_t cycles) {
  for (Observer* observer : m_all) observer->spent(core, cycle_class, from, cycles);
}
void Observers::call(const Verb& verb, const Kernel& kernel, std::span<const Argument> arguments,
                     std::int64_t call_cycles, std::int64_t cycles) {
  for (Observer* observer : m_all) observer->call(verb, kernel, arguments, call_cycles, cycles);
}
void Observers::issued(const Issue& issue) {
  for (Observer* observer : m_all) observer->issued(issue);
}
void Observers::moved(int core, int channel, std::int64_t cycle) {
  for (Observer* observer : m_all) observer->moved(core, channel, cycle);
}
void Observers::known_complete(const Verb& verb, int channel) {
  for (Observer* observer : m_all) observer->known_complete(verb, channel);
}
void Observers::met(std::int64_t cycle) {
  for (Observer* observer : m_all) observer->met(cycle);
}
void Observers::group_met(std::span<const ChannelRef> members) {
  for (Observer* observer : m_all) observer->group_met(members);
}
void Observers::rates(std::int64_t cycle, const Fabric::Shares& shares) {
  for (Observer* observer : m_all) observer->rates(cycle, shares);
}
void Observers::dram_request(std::int64_t cycle, int core, int channel, const MemoryModel::Request& request) {
  for (Observer* observer : m_all) observer->dram_request(cycle, core, channel, request);
}

}  // namespace mtsim::sim
