// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "isa/hash.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/progress.h"

namespace mtsim::scenarios {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Json candidate_json(const Candidate& c) {
  return Json::array({c.kind, c.values, c.bound_ms, c.sm_bytes, c.am_bytes, c.gsm_bytes});
}
Candidate candidate_from(const Json& json) { return {json[0], json[1], json[2], json[3], json[4], json[5]}; }

std::string ranking_answer(const Ranking& ranking) {
  Json best = Json::array(), killed = Json::array();
  for (const Candidate& c : ranking.best) best.push_back(candidate_json(c));
  for (const auto& [condition, k] : ranking.killed)
    killed.push_back({condition.first, condition.second, k.points, candidate_json(k.example), k.needed, k.available});
  return Json{{"best", best}, {"killed", killed}, {"legal", ranking.legal}}.dump();
}

/// This program's own bytes: another build may time a point differently.
std::string program_hash() {
  isa::Hash hash;
  hash.bytes(read_text("/proc/self/exe"));
  return fmt::format("{:016x}", hash.value());
}

/// What decides every result, so that a journal is gone on with only where all would be the same.
Json about(const ExploreRequest& request) {
  Json machines = Json::array();
  for (const sim::Machine& m : request.machines) machines.push_back(fmt::format("{:016x}", m.fingerprint()));
  Json json = request.query->about();
  json.update({{"format", 3}, {"program", program_hash()}, {"top", request.top}, {"machines", machines}});
  return json;
}

bool by_latency(const Explored& a, const Explored& b) {
  if (a.measured.cut != b.measured.cut) return b.measured.cut;
  if (a.measured.latency_ms != b.measured.latency_ms) return a.measured.latency_ms < b.measured.latency_ms;
  return named_before(a.point, b.point);
}

/// Everything that needs the pool.
class Explorer {
 public:
  explicit Explorer(const ExploreRequest& request)
      : m_request(request),
        m_query(*request.query),
        m_simulations(
            request.query, request.machines, request.processes,
            [request](const std::string& text) {
              const Json json = Json::parse(text);
              const auto space = request.query->space(request.machines.at(json.at("machine")).config());
              return ranking_answer(space->rank(json.at("piece"), json.at("top")));
            },
            about(request)),
        m_journal(m_simulations.pool().leads() ? request.journal : "", about(request)) {}

  std::optional<Exploration> run() {
    if (!m_simulations.pool().leads()) {
      m_simulations.pool().serve();
      return std::nullopt;
    }
    Exploration result;
    result.processes = m_simulations.pool().processes();
    const auto start = Clock::now();
    Ranking ranking = rank(0, m_request.top);
    result.legal = ranking.legal;
    result.killed = std::move(ranking.killed);
    result.rank_s = seconds_since(start);
    if (ranking.best.empty()) return result;
    result.points = simulate(0, ranking.best, fmt::format("explore {}", m_query.op.info().name));
    const std::unique_ptr<Space> explored = space(0);
    result.named = named(*explored);
    for (const auto& [name, point] : result.named) {
      const bool is_there = std::any_of(result.points.begin(), result.points.end(),
                                        [&](const Explored& e) { return e.point.is_same(point.point); });
      if (!is_there && explored->holds(point.point)) result.points.push_back(point);
    }
    std::sort(result.points.begin(), result.points.end(), by_latency);
    // The best by simulation may not be among the best by bound: then a neighbour is.
    while (const auto better = find_neighbours(*explored, result)) {
      result.points.push_back(*better);
      std::sort(result.points.begin(), result.points.end(), by_latency);
    }
    result.pareto = pareto_front(result.points);
    if (m_request.machines.size() > 1) compare(*explored, result);
    result.simulate_s = seconds_since(start) - result.rank_s;
    result.computed = m_simulations.computed();
    return result;
  }

 private:
  std::unique_ptr<Space> space(std::size_t machine) const {
    return m_query.space(m_request.machines[machine].config());
  }

  Ranking rank(std::size_t machine, std::size_t top) {
    std::vector<std::string> requests;
    const std::size_t pieces = space(machine)->pieces();
    for (std::size_t piece = 0; piece < pieces; ++piece)
      requests.push_back(Json{{"machine", machine}, {"piece", piece}, {"top", top}}.dump());
    Progress progress(fmt::format("bounds on {}", m_request.machines[machine].config().name),
                      static_cast<std::int64_t>(requests.size()));
    Ranking all;
    m_simulations.pool().run(requests, [&](std::size_t, const std::string& answer) {
      const Json json = Json::parse(answer);
      for (const Json& c : json.at("best")) all.best.push_back(candidate_from(c));
      for (const Json& k : json.at("killed")) all.killed[{k[0], k[1]}].add({k[2], candidate_from(k[3]), k[4], k[5]});
      all.legal += json.at("legal").get<std::int64_t>();
      progress.step();
    });
    std::sort(all.best.begin(), all.best.end());
    if (all.best.size() > top) all.best.resize(top);
    return all;
  }

  /// In batches, each cut by the best of those before: the same results whatever order the processes work in.
  std::vector<Explored> simulate(std::size_t machine, const std::vector<Candidate>& points, const std::string& title) {
    Progress progress(title, static_cast<std::int64_t>(points.size()));
    std::vector<Explored> explored;
    double best_ms = 0;
    for (std::size_t at = 0; at < points.size(); at += k_batch) {
      const std::vector<Candidate> batch(
          points.begin() + static_cast<std::ptrdiff_t>(at),
          points.begin() + static_cast<std::ptrdiff_t>(std::min(at + k_batch, points.size())));
      const std::vector<Measured> results =
          m_simulations.run(machine, batch, k_cut * best_ms, m_journal, [&] { progress.step(); });
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (!results[i].cut && (best_ms == 0 || results[i].latency_ms < best_ms)) best_ms = results[i].latency_ms;
        explored.push_back({batch[i], results[i]});
      }
    }
    return explored;
  }

  std::vector<std::pair<std::string, Explored>> named(const Space& explored) {
    const std::vector<std::pair<std::string, Candidate>> points = explored.named();
    std::vector<Candidate> candidates;
    for (const auto& [name, point] : points) candidates.push_back(point);
    const std::vector<Measured> results = m_simulations.run(0, candidates, 0, m_journal, [] {});
    std::vector<std::pair<std::string, Explored>> found;
    for (std::size_t i = 0; i < points.size(); ++i)
      found.emplace_back(points[i].first, Explored{points[i].second, results[i]});
    return found;
  }

  /// Fills in the neighbours of the best. One that is faster, if there is.
  std::optional<Explored> find_neighbours(const Space& space, Exploration& result) {
    result.neighbours.clear();
    for (Neighbour& n : space.neighbours(result.best().point)) result.neighbours.push_back({std::move(n), {}});
    std::vector<Candidate> points;
    for (const auto& beside : result.neighbours) {
      if (beside.neighbour.why_not.empty()) points.push_back(beside.neighbour.point);
    }
    const std::vector<Measured> results = m_simulations.run(0, points, 0, m_journal, [] {});
    std::optional<Explored> better;
    std::size_t next = 0;
    for (auto& beside : result.neighbours) {
      if (!beside.neighbour.why_not.empty()) continue;
      beside.measured = results[next++];
      const Explored explored{beside.neighbour.point, *beside.measured};
      if (explored.measured.latency_ms < (better ? *better : result.best()).measured.latency_ms &&
          space.holds(explored.point))
        better = explored;
    }
    // Another name for the same run: as many buffers as were chosen automatically.
    std::erase_if(result.neighbours, [&](const Exploration::Beside& beside) {
      return beside.measured && *beside.measured == result.best().measured &&
             beside.neighbour.point.am_bytes == result.best().point.am_bytes &&
             beside.neighbour.point.sm_bytes == result.best().point.sm_bytes;
    });
    return better;
  }

  /// The best points of each machine, on all of them.
  void compare(const Space& explored, Exploration& result) {
    std::vector<Compared> all;
    const auto add = [&](const Candidate& point, const std::string& note) {
      const bool is_there =
          std::any_of(all.begin(), all.end(), [&](const Compared& c) { return c.point.is_same(point); });
      if (!is_there) all.push_back({point, note, {}, {}, 0});
    };
    for (const auto& [name, point] : result.named) {
      if (explored.holds(point.point)) add(point.point, name);
    }
    for (std::size_t m = 0; m < m_request.machines.size(); ++m) {
      const std::string& name = m_request.machines[m].config().name;
      std::vector<Explored> best = result.points;
      if (m > 0) {
        best = simulate(m, rank(m, 2 * k_batch).best, "best of " + name);
        std::sort(best.begin(), best.end(), by_latency);
      }
      for (std::size_t i = 0; i < std::min(k_compared, best.size()); ++i)
        add(best[i].point, i == 0 ? "best of " + name : "");
    }
    std::vector<Candidate> points;
    for (const Compared& c : all) points.push_back(c.point);
    for (std::size_t m = 0; m < m_request.machines.size(); ++m) {
      const std::vector<Measured> results = m_simulations.run(m, points, 0, m_journal, [] {});
      double least = results.front().latency_ms;
      std::size_t winner = 0;
      for (std::size_t i = 0; i < results.size(); ++i) {
        if (results[i].latency_ms < least) {
          least = results[i].latency_ms;
          winner = i;
        }
      }
      for (std::size_t i = 0; i < results.size(); ++i) {
        all[i].latency_ms.push_back(results[i].latency_ms);
        all[i].regret = std::max(all[i].regret, results[i].latency_ms / least - 1);
        all[i].rank.push_back(1 + std::count_if(results.begin(), results.end(), [&](const Measured& other) {
                                return other.latency_ms < results[i].latency_ms;
                              }));
      }
      result.winners.push_back(points[winner]);
    }
    std::sort(all.begin(), all.end(), [](const Compared& a, const Compared& b) {
      return a.regret != b.regret ? a.regret < b.regret : named_before(a.point, b.point);
    });
    result.compared = std::move(all);
  }

  const ExploreRequest& m_request;
  const Query& m_query;
  Simulations m_simulations;
  Journal m_journal;
};

}  // namespace

bool Exploration::is_decided() const {
  return std::all_of(winners.begin(), winners.end(),
                     [&](const Candidate& winner) { return winner.is_same(winners.front()); });
}

std::optional<Exploration> explore(const ExploreRequest& request) { return Explorer(request).run(); }

}  // namespace mtsim::scenarios
