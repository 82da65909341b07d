// SPDX-License-Identifier: Apache-2.0
#include "sim/config/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

namespace mtsim::sim {
namespace {

constexpr std::size_t k_buffer_bytes = std::size_t{1} << 20;

/// Microseconds, to the tick.
void append_time(std::string& out, std::int64_t tick) {
  TraceFile::append(out, tick / 1000);
  const std::int64_t rest = tick % 1000;
  out += '.';
  for (const std::int64_t digit : {rest / 100, rest / 10 % 10, rest % 10}) out += static_cast<char>('0' + digit);
}

}  // namespace

void TraceFile::append(std::string& out, std::int64_t number) {
  std::array<char, 24> digits;
  out.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

std::string TraceFile::quoted(std::string_view text) {
  std::string out = "\"";
  const auto is_plain = [](char c) { return c != '"' && c != '\\' && static_cast<unsigned char>(c) >= 0x20; };
  if (std::all_of(text.begin(), text.end(), is_plain)) return out.append(text) + '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

TraceFile::TraceFile(const std::string& path, std::string_view other_data) : m_file(path, "--trace") {
  m_buffer = fmt::format("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{{}}},\"traceEvents\":[", other_data);
}

void TraceFile::begin_event() {
  if (m_buffer.size() > k_buffer_bytes) {
    m_file.write(m_buffer);
    m_buffer.clear();
  }
  m_buffer += m_first ? "\n" : ",\n";
  m_first = false;
}

void TraceFile::name_process(int process, std::string_view name) {
  begin_event();
  fmt::format_to(std::back_inserter(m_buffer),
                 "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"{}\"}}}}", process, name);
  begin_event();
  fmt::format_to(std::back_inserter(m_buffer),
                 "{{\"ph\":\"M\",\"pid\":{0},\"name\":\"process_sort_index\",\"args\":{{\"sort_index\":{0}}}}}",
                 process);
}

void TraceFile::name_track(int process, int track, std::string_view name, int number) {
  begin_event();
  fmt::format_to(std::back_inserter(m_buffer),
                 "{{\"ph\":\"M\",\"pid\":{},\"tid\":{},\"name\":\"thread_name\",\"args\":{{\"name\":\"{}{}\"}}}}",
                 process, track, name, number < 0 ? "" : fmt::format(" {}", number));
}

void TraceFile::slice(int process, int track, std::int64_t from, std::int64_t ticks, std::string_view name,
                      std::string_view arguments) {
  begin_event();  // without fmt: a trace is mostly slices
  m_buffer += "{\"ph\":\"X\",\"pid\":";
  append(m_buffer, process);
  m_buffer += ",\"tid\":";
  append(m_buffer, track);
  m_buffer += ",\"ts\":";
  append_time(m_buffer, from);
  m_buffer += ",\"dur\":";
  append_time(m_buffer, ticks);
  m_buffer += ",\"name\":";
  m_buffer += quoted(name);
  m_buffer += ",\"args\":{";
  m_buffer += arguments;
  m_buffer += "}}";
}

void TraceFile::counter(int process, std::int64_t at, std::string_view name, std::string_view unit, double value) {
  begin_event();
  fmt::format_to(std::back_inserter(m_buffer), "{{\"ph\":\"C\",\"pid\":{},\"ts\":", process);
  append_time(m_buffer, at);
  fmt::format_to(std::back_inserter(m_buffer), ",\"name\":\"{}\",\"args\":{{\"{}\":{:.2f}}}}}", name, unit, value);
}

void TraceFile::finish() {
  m_buffer += "\n]}\n";
  m_file.write(m_buffer);
  m_buffer.clear();
  m_file.commit();
}

}  // namespace mtsim::sim
