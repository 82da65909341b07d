// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/attention_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "kernels/attention/attention_bound.h"
#include "kernels/library.h"
#include "kernels/round.h"
#include "scenarios/error.h"
#include "scenarios/operator_attention.h"
#include "scenarios/operators.h"

namespace mtsim::scenarios {

namespace {

using kernels::AttentionChoice;
using kernels::AttentionPlan;
using kernels::AttentionSequence;
using kernels::AttentionTiles;
using kernels::AttentionVariant;
using kernels::ceil_div;
using kernels::round_up;

constexpr std::int64_t k_key_tile = 128;  // of which Mc is a multiple
constexpr std::int64_t k_most_mr = 128, k_mr_step = 8, k_most_mc = 2048;
constexpr std::int64_t k_splits = 8;  // numbers of rounds whose rows are tried
constexpr std::int64_t k_paper_mr = 64, k_paper_mc = 512;

/// Points of a kind. The first two are explored.
struct AttentionKind : PointKind {
  AttentionVariant variant;
  AttentionSequence sequence = AttentionSequence::best;
};
constexpr std::size_t k_mt = 0, k_flash = 1, k_unfused = 2, k_paper = 3;
constexpr std::array<AttentionKind, 4> k_kinds = {
    {{{"mt", "mt"}, AttentionVariant::mt},
     {{"flash", "flash"}, AttentionVariant::flash},
     {{"unfused", "unfused"}, AttentionVariant::unfused},
     {{"paper,mt", "mt"}, AttentionVariant::mt, AttentionSequence::paper}}};

struct AttentionDimension : SpaceDimension {
  std::int64_t AttentionTiles::*tile;
};
constexpr std::array<AttentionDimension, 3> k_dimensions = {
    {{{"mr", "mr", "-", "rows of Q of a core"}, &AttentionTiles::mr},
     {{"mc", "mc", "-", "keys of a block in AM"}, &AttentionTiles::mc},
     {{"pass", "pass", "-", "blocks whose scores are kept, of mt"}, &AttentionTiles::pass}}};

AttentionTiles tiles_of(const Candidate& point) {
  AttentionTiles tiles;
  for (std::size_t d = 0; d < k_dimensions.size(); ++d) tiles.*k_dimensions[d].tile = point.values[d];
  return tiles;
}

AttentionChoice choice(std::size_t kind) { return {k_kinds[kind].variant, k_kinds[kind].sequence}; }

}  // namespace

std::span<const SpaceDimension> attention_dimensions() {
  static const std::vector<SpaceDimension> dimensions(k_dimensions.begin(), k_dimensions.end());
  return dimensions;
}

AttentionQuery::AttentionQuery(const Shape& dimensions_given, DType its_dtype, bool causal)
    : Query(attention_operator(), dimensions_given, its_dtype),
      attention(attention_shape(dimensions_given, its_dtype, causal)) {
  if (shape.back() > 0)
    throw UsageError(
        "explore attention: contexts of different lengths are of decode, which has no rows to choose; leave "
        "--shortest-context out");
  if (causal) words = {"causal"};
  skip_pieces = true;
}

std::span<const PointKind> AttentionQuery::kinds() const {
  static const std::vector<PointKind> kinds(k_kinds.begin(), k_kinds.end());
  return kinds;
}

std::unique_ptr<Space> AttentionQuery::space(const sim::MachineConfig& machine) const {
  return std::make_unique<AttentionSpace>(*this, machine);
}

AttentionSpace::AttentionSpace(const AttentionQuery& query, const sim::MachineConfig& machine)
    : m_query(query), m_machine(machine) {
  const std::int64_t most = std::min(k_most_mc, round_up(query.attention.block(), k_key_tile));
  for (std::int64_t mc = k_key_tile; mc <= most; mc += k_key_tile) m_mcs.push_back(mc);
  m_mcs = allowed("mc", m_mcs);
  for (const std::int64_t mc : m_mcs) {
    if (mc % k_key_tile != 0) throw UsageError(fmt::format("--only mc={}: Mc is a multiple of {}", mc, k_key_tile));
  }
  tried(k_mt, {1, k_key_tile, 1});  // complains about a shape that is none
}

/// Multiples of a step, and what splits all tokens evenly over the cores and a few rounds.
std::vector<std::int64_t> AttentionSpace::mr_grid() const {
  std::vector<std::int64_t> grid;
  for (std::int64_t mr = k_mr_step; mr <= k_most_mr; mr += k_mr_step) grid.push_back(mr);
  for (std::int64_t rounds = 1; rounds <= k_splits; ++rounds) {
    const std::int64_t tokens = ceil_div(m_query.attention.seq_q, m_machine.cluster.cores * rounds);
    if (tokens * m_query.attention.group() <= k_most_mr) grid.push_back(tokens * m_query.attention.group());
  }
  return allowed("mr", grid);
}

std::vector<std::int64_t> AttentionSpace::pass_grid(std::size_t kind, std::int64_t mc) const {
  if (kind != k_mt) return {0};
  const kernels::AttentionShape& shape = m_query.attention;
  const std::int64_t steps = shape.blocks() * ceil_div(shape.block(), mc);
  std::vector<std::int64_t> grid = multiples_up_to(steps);
  grid.push_back(steps);
  return allowed("pass", grid);
}

kernels::TriedAttention AttentionSpace::tried(std::size_t kind, const AttentionTiles& tiles) const {
  return kernels::try_plan_attention(m_query.attention, tiles, choice(kind), m_machine);
}

Candidate AttentionSpace::candidate(std::size_t kind, const AttentionPlan& plan) const {
  Candidate point;
  point.kind = kind;
  for (const AttentionDimension& d : k_dimensions) {
    const bool is_of_mt = d.tile == &AttentionTiles::pass;
    point.values.push_back(is_of_mt && k_kinds[kind].variant != AttentionVariant::mt ? 0 : plan.tiles.*d.tile);
  }
  point.sm_bytes = plan.sm_bytes;
  point.am_bytes = plan.am_bytes;
  point.gsm_bytes = plan.gsm_bytes;
  return point;
}

Ranking AttentionSpace::rank(std::size_t piece, std::size_t top) const {
  const std::size_t kind = m_query.kinds_explored[piece / m_mcs.size()];
  const std::int64_t mc = m_mcs[piece % m_mcs.size()];
  const kernels::AttentionBounds bounds(m_machine);
  const std::int64_t cores = m_machine.cluster.cores;
  Best best(top);
  Ranking ranking;
  for (const std::int64_t pass : pass_grid(kind, mc)) {
    // More rows in as many rounds are the same run, in more memory.
    std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> seen;
    for (const std::int64_t mr : mr_grid()) {
      const auto [plan, limit] = tried(kind, {mr, mc, pass});
      Candidate point = candidate(kind, plan);
      if (limit) {
        ranking.killed[{"", std::string(limit->memory)}].add(1, point, limit->needed, limit->available);
        continue;
      }
      if (!seen.insert({plan.share, plan.rounds(cores), plan.weight_columns}).second) continue;
      ++ranking.legal;
      point.bound_ms = 1e3 * bounds.of(plan);
      if (best.takes(point.bound_ms)) best.add(std::move(point));
    }
  }
  ranking.best = best.sorted();
  return ranking;
}

std::vector<Neighbour> AttentionSpace::neighbours(const Candidate& of) const {
  std::vector<Neighbour> found;
  for (std::size_t d = 0; d < k_dimensions.size(); ++d) {
    const auto field = k_dimensions[d].tile;
    if (of.values[d] == 0) continue;
    const std::vector<std::int64_t> grid = field == &AttentionTiles::mr   ? mr_grid()
                                           : field == &AttentionTiles::mc ? m_mcs
                                                                          : pass_grid(of.kind, tiles_of(of).mc);
    for (const std::int64_t value : values_beside(grid, of.values[d])) {
      AttentionTiles tiles = tiles_of(of);
      tiles.*field = value;
      if (tiles.pass > 0) tiles.pass = std::min(tiles.pass, pass_grid(of.kind, tiles.mc).back());
      const auto [plan, limit] = tried(of.kind, tiles);
      Neighbour neighbour{d, of.values[d], value, candidate(of.kind, plan), {}};
      if (limit)
        neighbour.why_not = fmt::format("{} bytes of {}, {} available", limit->needed, limit->memory, limit->available);
      else
        neighbour.point.bound_ms = 1e3 * kernels::AttentionBounds(m_machine).of(plan);
      found.push_back(std::move(neighbour));
    }
  }
  return found;
}

std::vector<std::pair<std::string, Candidate>> AttentionSpace::named() const {
  std::vector<std::pair<std::string, Candidate>> points;
  const std::int64_t mc = std::min(k_paper_mc, round_up(m_query.attention.block(), k_key_tile));
  const auto add = [&](const char* name, std::size_t kind, const AttentionTiles& tiles) {
    try {
      const AttentionPlan plan = kernels::plan_attention(m_query.attention, tiles, choice(kind), m_machine);
      Candidate point = candidate(kind, plan);
      if (kind < AttentionQuery::k_spaces) point.bound_ms = 1e3 * kernels::AttentionBounds(m_machine).of(plan);
      points.emplace_back(name, std::move(point));
    } catch (const kernels::CapacityError&) {  // they do not fit this machine: nothing to show
    }
  };
  add("paper's blocks", k_mt, {k_paper_mr, mc, 0});
  add("and sequence (Fig. 8)", k_paper, {k_paper_mr, mc, 0});
  add("flash", k_flash, {});
  add("unfused", k_unfused, {});
  return points;
}

bool AttentionSpace::holds(const Candidate& point) const {
  if (!m_query.explores(point.kind)) return false;
  for (std::size_t d = 0; d < k_dimensions.size(); ++d) {
    const auto only = m_query.only.find(k_dimensions[d].name);
    if (only == m_query.only.end() || point.values[d] == 0) continue;
    if (std::find(only->second.begin(), only->second.end(), point.values[d]) == only->second.end()) return false;
  }
  return true;
}

}  // namespace mtsim::scenarios
