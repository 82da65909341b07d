// SPDX-License-Identifier: Apache-2.0
// Workloads that somebody recorded.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <optional>

#include "runtime/error.h"
#include "runtime/serving/request.h"

namespace mtsim::runtime {
namespace {

enum Column : std::size_t { k_arrival, k_prompt, k_output, k_columns };

/// Names that published traces give their columns, in lower case without what is no letter.
constexpr std::array<std::array<std::string_view, 6>, k_columns> k_names = {{
    {"timestamp", "arrival", "arrivals", "arrivaltime", "arrivedat", "time"},
    {"contexttokens", "prompttokens", "inputtokens", "requesttokens", "prompt", "numprefilltokens"},
    {"generatedtokens", "outputtokens", "responsetokens", "completiontokens", "output", "numdecodetokens"},
}};
constexpr std::array<std::string_view, k_columns> k_what = {"the arrival (TIMESTAMP)", "prompt tokens (ContextTokens)",
                                                            "output tokens (GeneratedTokens)"};

struct Field {
  std::string_view text;
  std::size_t column = 0;  // of the line, from 1
};

std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c >= 'a' && c <= 'z') letters += c;
    if (c >= 'A' && c <= 'Z') letters += static_cast<char>(c - 'A' + 'a');
  }
  return letters;
}

/// Text of one trace with the place that is being read.
class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& file) : m_text(text), m_file(file) {}

  /// The fields of the next line that is not empty; false at the end.
  bool next(std::vector<Field>& fields) {
    while (m_at < m_text.size()) {
      const std::size_t end = std::min(m_text.find('\n', m_at), m_text.size());
      std::string_view line = m_text.substr(m_at, end - m_at);
      m_at = end + 1;
      ++m_line;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (m_line == 1 && line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);  // a byte-order mark
      if (line.empty()) continue;
      split(line, fields);
      return true;
    }
    return false;
  }

  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw RuntimeError(fmt::format("{}:{}:{}: {}", m_file, std::max<std::size_t>(m_line, 1), column, what));
  }

 private:
  static std::string_view trimmed(std::string_view text) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }

  /// Quotes around a field go; a comma inside them does not separate.
  void split(std::string_view line, std::vector<Field>& fields) const {
    fields.clear();
    std::size_t from = 0;
    while (true) {
      std::size_t end = std::min(line.find(',', from), line.size());
      const std::size_t start = std::min(line.find_first_not_of(' ', from), line.size());
      if (start < line.size() && line[start] == '"') {
        const std::size_t quote = line.find('"', start + 1);
        if (quote == std::string_view::npos) fail(start + 1, "a quoted field does not end");
        end = std::min(line.find(',', quote), line.size());
        if (!trimmed(line.substr(quote + 1, end - quote - 1)).empty())
          fail(quote + 2, "text behind the quote that ends a field");
        fields.push_back({line.substr(start + 1, quote - start - 1), start + 2});
      } else {
        fields.push_back({trimmed(line.substr(from, end - from)), std::min(start, end) + 1});
      }
      if (end == line.size()) return;
      from = end + 1;
    }
  }

  std::string_view m_text;
  const std::string& m_file;
  std::size_t m_at = 0, m_line = 0;
};

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "18:17:03.9799600" from the front of `text`, in seconds.
std::optional<double> time_of_day(std::string_view text) {
  if (text.size() < 8 || text[2] != ':' || text[5] != ':') return std::nullopt;
  const auto hour = number<unsigned>(text.substr(0, 2)), minute = number<unsigned>(text.substr(3, 2));
  const auto second = number<double>(text.substr(6));
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || !(*second >= 0 && *second < 61)) return std::nullopt;
  return *hour * 3600.0 + *minute * 60.0 + *second;
}

/// Days in whole seconds and the rest apart: microseconds of a date of today do not fit a double beside its seconds.
struct Instant {
  std::int64_t days = 0;
  double seconds = 0;
  double since(const Instant& start) const {
    return static_cast<double>(days - start.days) * 86400 + (seconds - start.seconds);
  }
};

/// Seconds, or "2023-11-16 18:17:03.9799600", with a T between the two, with a Z behind them.
std::optional<Instant> instant(std::string_view text) {
  constexpr double k_longest = 1e12;
  if (const auto seconds = number<double>(text))
    return *seconds >= 0 && *seconds < k_longest ? std::optional(Instant{0, *seconds}) : std::nullopt;
  if (text.ends_with('Z')) text.remove_suffix(1);
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || (text[10] != ' ' && text[10] != 'T')) return std::nullopt;
  const auto year = number<int>(text.substr(0, 4));
  const auto month = number<unsigned>(text.substr(5, 2)), day = number<unsigned>(text.substr(8, 2));
  const auto time = time_of_day(text.substr(11));
  if (!year || !month || !day || !time) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*month), std::chrono::day(*day)};
  if (!date.ok()) return std::nullopt;
  return Instant{std::chrono::sys_days(date).time_since_epoch().count(), *time};
}

std::array<std::size_t, k_columns> columns_of(const TraceReader& reader, const std::vector<Field>& header) {
  std::array<std::size_t, k_columns> columns{};
  for (std::size_t what = 0; what < k_columns; ++what) {
    const auto is_it = [&](const Field& field) {
      return std::find(k_names[what].begin(), k_names[what].end(), plain(field.text)) != k_names[what].end();
    };
    const auto it = std::find_if(header.begin(), header.end(), is_it);
    if (it == header.end()) {
      std::string there;
      for (const Field& field : header) there += fmt::format("{}'{}'", there.empty() ? "" : ", ", field.text);
      reader.fail(1, fmt::format("the header names no column for {}; it has {}", k_what[what], there));
    }
    const auto second = std::find_if(it + 1, header.end(), is_it);
    if (second != header.end()) reader.fail(second->column, fmt::format("a second column for {}", k_what[what]));
    columns[what] = static_cast<std::size_t>(it - header.begin());
  }
  return columns;
}

std::int64_t tokens_of(const TraceReader& reader, const Field& field, std::string_view what) {
  constexpr std::int64_t k_most = 1'000'000'000;
  const auto tokens = number<std::int64_t>(field.text);
  if (!tokens || *tokens < 1 || *tokens > k_most)
    reader.fail(field.column, fmt::format("'{}' is no number of {} from 1 to {}", field.text, what, k_most));
  return *tokens;
}

}  // namespace

Workload parse_trace(std::string_view text, const std::string& file, const TraceOptions& options) {
  if (options.first < 0 || options.requests == 0 || options.requests < -1 || !(options.speed > 0) ||
      !std::isfinite(options.speed)) {
    throw RuntimeError(fmt::format(
        "trace {}: rows from {}, {} of them, {} times as fast: no row before 0, at least one, a speed above 0", file,
        options.first, options.requests, options.speed));
  }
  TraceReader reader(text, file);
  std::vector<Field> fields;
  if (!reader.next(fields)) reader.fail(1, "the trace is empty: a header that names its columns comes first");
  const auto columns = columns_of(reader, fields);
  const std::size_t width = fields.size();

  Workload workload;
  std::optional<Instant> start;
  for (std::int64_t row = 0; reader.next(fields); ++row) {
    if (fields.size() != width) reader.fail(1, fmt::format("{} fields, the header names {}", fields.size(), width));
    const Field& at = fields[columns[k_arrival]];
    const auto arrival = instant(at.text);
    if (!arrival) reader.fail(at.column, fmt::format("'{}' is no time: seconds, or 2023-11-16 18:17:03.97", at.text));
    const std::int64_t prompt = tokens_of(reader, fields[columns[k_prompt]], "prompt tokens");
    const std::int64_t output = tokens_of(reader, fields[columns[k_output]], "output tokens");
    if (row < options.first || (options.requests >= 0 && std::ssize(workload) == options.requests)) continue;
    if (!start) start = arrival;
    workload.push_back({0, arrival->since(*start) / options.speed, prompt, output});
  }
  if (workload.empty()) throw RuntimeError(fmt::format("trace {}: it has no row {}", file, options.first));
  std::stable_sort(workload.begin(), workload.end(),
                   [](const Request& a, const Request& b) { return a.arrival_s < b.arrival_s; });
  const double first = workload.front().arrival_s;
  std::int64_t id = 0;
  for (Request& request : workload) {
    request.arrival_s -= first;
    request.id = id++;
  }
  return workload;
}

Workload trace_workload(const std::string& path, const TraceOptions& options) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RuntimeError(fmt::format("trace {}: it cannot be opened", path));
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) throw RuntimeError(fmt::format("trace {}: it cannot be read", path));
  return parse_trace(text, path, options);
}

}  // namespace mtsim::runtime
