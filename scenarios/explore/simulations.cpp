// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/simulations.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "isa/file_use.h"
#include "kernels/library.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/operator_runner.h"

namespace mtsim::scenarios {

namespace {

/// One process's simulator.
class Simulator {
 public:
  Simulator(std::shared_ptr<const Query> query, std::vector<sim::Machine> machines)
      : m_query(std::move(query)), m_machines(std::move(machines)) {}

  Measured measure(const Json& request) {
    const sim::Machine& machine = m_machines.at(request.at("machine"));
    if (!m_runner) m_runner = std::make_unique<OperatorRunner>(machine);
    m_runner->set_machine(machine);
    OperatorRequest point = m_query->request({request.at("kind"), request.at("values")});
    point.options.hazards = false;
    const double limit_ms = request.at("limit_ms");
    point.options.max_cycles =
        static_cast<std::int64_t>(std::ceil(limit_ms * 1e-3 * machine.config().core.clock_ghz * 1e9));
    try {
      return of(m_runner->run(point), machine.config());
    } catch (const sim::LaunchCut&) {
      Measured cut;
      cut.cut = true;
      cut.latency_ms = limit_ms;
      return cut;
    }
  }

 private:
  static Measured of(const OperatorOutcome& outcome, const sim::MachineConfig& machine) {
    Measured m;
    m.latency_ms = outcome.latency_ms;
    m.gmac_s = outcome.gmac_s;
    m.utilisation = outcome.utilisation;
    for (const sim::CoreReport& core : outcome.launch.cores) {
      m.calls += core.kernel_calls;
      for (std::size_t c = 0; c < m.class_ms.size(); ++c) {
        m.class_ms[c] += machine.milliseconds(core.cycles[c]) / static_cast<double>(outcome.launch.cores.size());
      }
    }
    m.transfers = outcome.launch.dma_transfers;
    for (int from = 0; from < sim::k_spaces; ++from) {
      for (int to = 0; to < sim::k_spaces; ++to) {
        const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
        const auto add = [&](sim::Space space, std::int64_t bytes) {
          if (space == sim::Space::ddr) m.ddr_bytes += bytes;
          if (space == sim::Space::gsm) m.gsm_bytes += bytes;
        };
        add(static_cast<sim::Space>(from), outcome.launch.bytes.read[f][t]);
        add(static_cast<sim::Space>(to), outcome.launch.bytes.written[f][t]);
      }
    }
    return m;
  }

  std::shared_ptr<const Query> m_query;
  std::vector<sim::Machine> m_machines;
  std::unique_ptr<OperatorRunner> m_runner;
};

/// In the journal.
std::string key_of(const sim::Machine& machine, const Query& query, const Candidate& point) {
  return fmt::format("{} {} {}", machine.config().name, query.variant(point), query.tile(point));
}

/// Of a point that was given up: it may be wanted to its end elsewhere, and a run that goes on must find both.
std::string cut_key(const std::string& key, double limit_ms) {
  return fmt::format("{} given up at {} ms", key, limit_ms);
}

const Json* known_result(const Journal& journal, const std::string& key, double limit_ms) {
  auto known = journal.known().find(cut_key(key, limit_ms));
  if (known == journal.known().end()) known = journal.known().find(key);
  return known == journal.known().end() ? nullptr : &known->second;
}

}  // namespace

Json Measured::json() const {
  Json classes = Json::object();
  for (int c = 0; c < sim::k_cycle_classes; ++c)
    classes[std::string(sim::name(static_cast<sim::CycleClass>(c)))] = class_ms[static_cast<std::size_t>(c)];
  return {{"cut", cut},
          {"latency_ms", latency_ms},
          {"gmac_s", gmac_s},
          {"utilisation", utilisation},
          {"class_ms", classes},
          {"ddr_bytes", ddr_bytes},
          {"gsm_bytes", gsm_bytes},
          {"calls", calls},
          {"transfers", transfers}};
}

Measured Measured::from(const Json& json) {
  Measured m;
  m.cut = json.at("cut");
  m.latency_ms = json.at("latency_ms");
  m.gmac_s = json.at("gmac_s");
  m.utilisation = json.at("utilisation");
  for (int c = 0; c < sim::k_cycle_classes; ++c)
    m.class_ms[static_cast<std::size_t>(c)] =
        json.at("class_ms").at(std::string(sim::name(static_cast<sim::CycleClass>(c))));
  m.ddr_bytes = json.at("ddr_bytes");
  m.gsm_bytes = json.at("gsm_bytes");
  m.calls = json.at("calls");
  m.transfers = json.at("transfers");
  return m;
}

Journal::Journal(std::string path, const Json& about) : m_path(std::move(path)) {
  if (m_path.empty()) return;
  isa::FileUse::writes(m_path, "the journal of --csv", isa::FileUse::Purpose::update);
  lock();
  try {
    read(about);
  } catch (...) {
    ::close(m_lock);
    throw;
  }
}

Journal::~Journal() {
  if (m_lock >= 0) ::close(m_lock);
}

void Journal::lock() {
  m_lock = ::open(m_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (m_lock >= 0 && ::flock(m_lock, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  if (m_lock >= 0) ::close(m_lock);
  if (error == EWOULDBLOCK)
    throw UsageError(fmt::format("{}: another run is at it; wait for its end, or give another --csv", m_path));
  throw UsageError(
      fmt::format("{}: cannot be written: {}; --csv keeps what is done beside the file", m_path, std::strerror(error)));
}

void Journal::read(const Json& about) {
  const std::string text = read_text(m_path);
  const std::string head = about.dump();
  const std::size_t first_end = text.find('\n');
  // A first line that was cut short is of no use, but ours.
  const bool is_ours = first_end == std::string::npos ? head.starts_with(text) : text.substr(0, first_end) == head;
  if (!is_ours) {
    throw UsageError(
        fmt::format("{}: what was begun there is another exploration, or one by another version; "
                    "remove it, or give another --csv",
                    m_path));
  }
  std::size_t complete = first_end == std::string::npos ? 0 : first_end + 1;
  for (std::int64_t number = 2; complete > 0; ++number) {
    const std::size_t end = text.find('\n', complete);
    if (end == std::string::npos) break;  // not written to its end: it comes again
    try {
      const Json line = Json::parse(text.substr(complete, end - complete));
      Measured::from(line.at("result"));
      m_known[line.at("point").get<std::string>()] = line.at("result");
    } catch (const Json::exception&) {
      throw UsageError(fmt::format("{}:{}: damaged; remove the file to begin anew", m_path, number));
    }
    complete = end + 1;
  }
  std::error_code error;
  std::filesystem::resize_file(m_path, complete, error);
  if (error) throw UsageError(fmt::format("{}: cannot be written: {}", m_path, error.message()));
  m_file.open(m_path, std::ios::app);
  if (complete == 0) append(about);
}

void Journal::add(const std::string& key, const Json& result) {
  m_known[key] = result;
  if (!m_path.empty()) append({{"point", key}, {"result", result}});
}

void Journal::append(const Json& line) {
  m_file << line.dump() << '\n' << std::flush;
  if (m_file) return;
  throw UsageError(
      fmt::format("{}: cannot be written: {}; --csv keeps what is done beside the file", m_path, std::strerror(errno)));
}

Simulations::Simulations(std::shared_ptr<const Query> query, std::vector<sim::Machine> machines, std::size_t processes,
                         std::function<std::string(const std::string&)> other_work, const Json& about)
    : m_query(std::move(query)),
      m_machines(std::move(machines)),
      m_pool(
          processes,
          [query = m_query, machines = m_machines, other = std::move(other_work),
           simulator = std::shared_ptr<Simulator>()](const std::string& request) mutable {
            const Json json = Json::parse(request);
            if (!json.contains("kind")) return other(request);
            if (!simulator) simulator = std::make_shared<Simulator>(query, machines);
            return simulator->measure(json).json().dump();
          },
          about.dump()) {}

std::vector<Measured> Simulations::run(std::size_t machine, const std::vector<Candidate>& points, double limit_ms,
                                       Journal& journal, const std::function<void()>& on_done) {
  std::vector<Measured> results(points.size());
  std::vector<std::string> requests;
  std::vector<std::size_t> asked;
  std::map<std::string, std::size_t> first;  // of points that come twice
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::string key = key_of(m_machines[machine], *m_query, points[i]);
    if (const Json* known = known_result(journal, key, limit_ms)) {
      results[i] = Measured::from(*known);
      on_done();
      continue;
    }
    if (!first.try_emplace(key, i).second) continue;
    requests.push_back(
        Json{{"machine", machine}, {"kind", points[i].kind}, {"values", points[i].values}, {"limit_ms", limit_ms}}
            .dump());
    asked.push_back(i);
  }
  m_pool.run(requests, [&](std::size_t index, const std::string& answer) {
    const Json result = Json::parse(answer);
    const std::size_t i = asked[index];
    results[i] = Measured::from(result);
    const std::string key = key_of(m_machines[machine], *m_query, points[i]);
    journal.add(results[i].cut ? cut_key(key, limit_ms) : key, result);
    ++m_computed;
    on_done();
  });
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto twin = first.find(key_of(m_machines[machine], *m_query, points[i]));
    if (twin != first.end()) results[i] = results[twin->second];
  }
  return results;
}

}  // namespace mtsim::scenarios
