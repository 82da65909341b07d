// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/exploration.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <tuple>

#include "isa/hash.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/progress.h"

namespace mtsim::scenarios {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Json candidate_json(const Candidate& c) {
  return Json::array({c.variant, c.tile, c.bound_ms, c.sm_bytes, c.am_bytes, c.gsm_bytes});
}
Candidate candidate_from(const Json& json) { return {json[0], json[1], json[2], json[3], json[4], json[5]}; }

std::string ranking_answer(const Ranking& ranking) {
  Json best = Json::array(), killed = Json::array();
  for (const Candidate& c : ranking.best) best.push_back(candidate_json(c));
  for (const auto& [condition, k] : ranking.killed)
    killed.push_back({condition.first, condition.second, k.points, k.example, k.needed, k.available});
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
  const GemmQuery& q = request.query;
  isa::Hash space;
  for (const auto& [name, values] : request.only) {
    space.add(name);
    for (const std::int64_t value : values) space.add(static_cast<std::uint64_t>(value));
  }
  Json machines = Json::array();
  for (const sim::Machine& m : request.machines) machines.push_back(fmt::format("{:016x}", m.fingerprint()));
  return {{"explore", "gemm"},
          {"format", 2},
          {"program", program_hash()},
          {"shape", {q.shape.m, q.shape.n, q.shape.k}},
          {"dtype", to_string(q.dtype)},
          {"sums", static_cast<int>(q.sums)},
          {"k_promote", q.k_promote},
          {"dataflows", q.dataflows},
          {"only", fmt::format("{:016x}", space.value())},
          {"top", request.top},
          {"machines", machines}};
}

std::vector<std::string> words_of(const GemmQuery& query) {
  if (query.dtype == kernels::DType::f32) return {};
  switch (query.sums) {
    case kernels::GemmSums::promoted: return {"promoted"};
    case kernels::GemmSums::f16: return {"f16_sums"};
    case kernels::GemmSums::f32: return {"f32_sums"};
  }
  return {};
}

bool by_latency(const Explored& a, const Explored& b) {
  return std::tuple(a.measured.cut, a.measured.latency_ms, a.point.key()) <
         std::tuple(b.measured.cut, b.measured.latency_ms, b.point.key());
}

/// Everything that needs the pool.
class Explorer {
 public:
  explicit Explorer(const ExploreRequest& request)
      : m_request(request),
        m_about(about(request)),
        m_simulations(
            {find_operator("gemm"),
             {request.query.shape.m, request.query.shape.n, request.query.shape.k},
             request.query.dtype,
             words_of(request.query)},
            request.machines, request.processes,
            [request](const std::string& text) {
              const Json json = Json::parse(text);
              const GemmSpace space(request.query, request.machines.at(json.at("machine")).config(), request.only);
              return ranking_answer(space.rank(json.at("piece"), json.at("top")));
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
    result.points = simulate(0, ranking.best, "explore gemm");
    result.named = named();
    const GemmSpace explored = space(0);
    for (const auto& [name, point] : result.named) {
      const bool is_there = std::any_of(result.points.begin(), result.points.end(),
                                        [&](const Explored& e) { return e.point.key() == point.point.key(); });
      if (!is_there && explored.holds(point.point)) result.points.push_back(point);
    }
    std::sort(result.points.begin(), result.points.end(), by_latency);
    // The best by simulation may not be among the best by bound: then a neighbour is.
    while (const auto better = find_neighbours(result)) {
      result.points.push_back(*better);
      std::sort(result.points.begin(), result.points.end(), by_latency);
    }
    result.pareto = pareto_front(result.points);
    if (m_request.machines.size() > 1) compare(result);
    result.simulate_s = seconds_since(start) - result.rank_s;
    result.computed = m_simulations.computed();
    return result;
  }

 private:
  GemmSpace space(std::size_t machine) const {
    return {m_request.query, m_request.machines[machine].config(), m_request.only};
  }

  Ranking rank(std::size_t machine, std::size_t top) {
    std::vector<std::string> requests;
    const std::size_t pieces = space(machine).pieces();
    for (std::size_t piece = 0; piece < pieces; ++piece)
      requests.push_back(Json{{"machine", machine}, {"piece", piece}, {"top", top}}.dump());
    Progress progress(fmt::format("bounds on {}", m_request.machines[machine].config().name),
                      static_cast<std::int64_t>(requests.size()));
    Ranking all;
    m_simulations.pool().run(requests, [&](std::size_t, const std::string& answer) {
      const Json json = Json::parse(answer);
      for (const Json& c : json.at("best")) all.best.push_back(candidate_from(c));
      for (const Json& k : json.at("killed")) all.killed[{k[0], k[1]}].add({k[2], k[3], k[4], k[5]});
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

  std::vector<std::pair<std::string, Explored>> named() {
    std::vector<std::pair<std::string, Candidate>> points;
    try {
      const Candidate paper = space(0).paper_point();
      // The paper prints those of FP32.
      points.emplace_back(m_request.query.dtype == kernels::DType::f32 ? "paper's blocks" : "default blocks", paper);
      Candidate sequence = paper, untiled = paper;
      sequence.variant = "paper," + paper.variant;
      points.emplace_back("and sequence (Fig. 7)", sequence);
      untiled.variant = sequence.variant;
      untiled.tile += ",y_tiles=1";
      points.emplace_back("Y2 untiled (Fig. 6)", untiled);
    } catch (const UsageError&) {  // they do not fit this machine: nothing to show
    }
    if (const auto small_m = space(0).small_m_point()) points.emplace_back(k_own_choice, *small_m);
    std::vector<Candidate> candidates;
    for (const auto& [name, point] : points) candidates.push_back(point);
    const std::vector<Measured> results = m_simulations.run(0, candidates, 0, m_journal, [] {});
    std::vector<std::pair<std::string, Explored>> found;
    for (std::size_t i = 0; i < points.size(); ++i)
      found.emplace_back(points[i].first, Explored{points[i].second, results[i]});
    return found;
  }

  /// Fills in the neighbours of the best. One that is faster, if there is.
  std::optional<Explored> find_neighbours(Exploration& result) {
    result.neighbours.clear();
    const GemmSpace explored_space = space(0);
    for (Neighbour& n : explored_space.neighbours(result.best().point)) result.neighbours.push_back({std::move(n), {}});
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
          explored_space.holds(explored.point))
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
  void compare(Exploration& result) {
    std::vector<Compared> all;
    std::set<std::string> seen;
    const auto add = [&](const Candidate& point, const std::string& note) {
      if (seen.insert(point.key()).second) all.push_back({point, note, {}, {}, 0});
    };
    const GemmSpace explored = space(0);
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
      result.winners.push_back(points[winner].key());
    }
    std::sort(all.begin(), all.end(), [](const Compared& a, const Compared& b) {
      return std::tuple(a.regret, a.point.key()) < std::tuple(b.regret, b.point.key());
    });
    result.compared = std::move(all);
  }

  const ExploreRequest& m_request;
  const Json m_about;
  Simulations m_simulations;
  Journal m_journal;
};

}  // namespace

bool Exploration::is_decided() const {
  return std::all_of(winners.begin(), winners.end(), [&](const std::string& key) { return key == winners.front(); });
}

std::string variant_of(const ExploreRequest& request, const Candidate& point) {
  std::string words = point.variant;
  for (const std::string& word : words_of(request.query)) words += "," + word;
  return words;
}

std::optional<Exploration> explore(const ExploreRequest& request) { return Explorer(request).run(); }

}  // namespace mtsim::scenarios
