// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/gemm_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <variant>

#include "kernels/gemm/gemm_bound.h"
#include "kernels/gemm/gemm_tile.h"
#include "kernels/round.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace {

using kernels::ceil_div;
using kernels::GemmChoice;
using kernels::GemmDataflow;
using kernels::GemmLimit;
using kernels::GemmPlan;
using kernels::GemmTiles;
using kernels::GemmVariant;
using kernels::round_up;

constexpr std::int64_t k_splits = 8;  // ways to split something evenly that are tried

/// Points of a kind. The first two are explored; small_m is what `mtsim op` takes for few rows.
struct GemmKind : PointKind {
  GemmDataflow dataflow;
  GemmVariant sequence = GemmVariant::best;
};
constexpr std::size_t k_large_m = 0, k_small_m = 2, k_paper = 3;
constexpr std::array<GemmKind, 4> k_kinds = {{{{"large_m", "Y"}, GemmDataflow::large_m},
                                              {{"w_stationary", "W"}, GemmDataflow::w_stationary},
                                              {{"small_m", "X"}, GemmDataflow::small_m},
                                              {{"paper,large_m", "Y"}, GemmDataflow::large_m, GemmVariant::paper}}};

/// Each with the tile that holds it. M2 of large_m is in Mg, the rows of all cores.
struct GemmDimension : SpaceDimension {
  std::int64_t GemmTiles::*tile;
};
constexpr std::array<GemmDimension, 11> k_dimensions = {{{{"m1", "m1"}, &GemmTiles::m1},
                                                         {{"n1", "n1"}, &GemmTiles::n1},
                                                         {{"m2", "m2", "-", "rows of a core"}, &GemmTiles::m2},
                                                         {{"mg", "mg", "-", "rows of a block of X"}, &GemmTiles::mg},
                                                         {{"n2", "n2"}, &GemmTiles::n2},
                                                         {{"k2", "k2"}, &GemmTiles::k2},
                                                         {{"kg", "kg"}, &GemmTiles::kg},
                                                         {{"x_buffers", "x"}, &GemmTiles::x_buffers},
                                                         {{"w_buffers", "w"}, &GemmTiles::w_buffers},
                                                         {{"y_buffers", "y", "auto"}, &GemmTiles::y_buffers},
                                                         {{"y_tiles", "y_tiles", "steps"}, &GemmTiles::y_tiles}}};

bool is_m2_in_mg(const GemmDimension& dimension, std::size_t kind) {
  return dimension.tile == &GemmTiles::m2 && k_kinds[kind].dataflow == GemmDataflow::large_m;
}

std::vector<std::string> words_of(DType dtype, kernels::GemmSums sums) {
  if (dtype == DType::f32) return {};
  switch (sums) {
    case kernels::GemmSums::promoted: return {"promoted"};
    case kernels::GemmSums::f16: return {"f16_sums"};
    case kernels::GemmSums::f32: return {"f32_sums"};
  }
  return {};
}

/// An equation and the bytes, of what a plan complains about.
std::string brief(const std::string& complaint) {
  const std::size_t from = complaint.find("eq. ");
  return from == std::string::npos ? complaint : complaint.substr(from);
}

}  // namespace

GemmQuery::GemmQuery(const kernels::GemmShape& its_shape, DType its_dtype, kernels::GemmSums its_sums,
                     std::int64_t promote)
    : Query(require_operator("gemm"), {its_shape.m, its_shape.n, its_shape.k}, its_dtype),
      gemm(its_shape),
      sums(its_sums),
      k_promote(promote) {
  words = words_of(dtype, sums);
}

std::span<const PointKind> GemmQuery::kinds() const {
  static const std::vector<PointKind> kinds(k_kinds.begin(), k_kinds.end());
  return kinds;
}

std::span<const SpaceDimension> gemm_dimensions() {
  static const std::vector<SpaceDimension> dimensions(k_dimensions.begin(), k_dimensions.end());
  return dimensions;
}

std::unique_ptr<Space> GemmQuery::space(const sim::MachineConfig& machine) const {
  return std::make_unique<GemmSpace>(*this, machine);
}

std::string GemmQuery::common_tile() const { return k_promote > 0 ? fmt::format("k_promote={}", k_promote) : ""; }

GemmChoice GemmQuery::choice(std::size_t kind) const {
  return {.dataflow = k_kinds[kind].dataflow, .variant = k_kinds[kind].sequence, .sums = sums};
}

GemmTiles GemmQuery::tiles(const Candidate& point) const {
  GemmTiles tiles;
  for (std::size_t d = 0; d < k_dimensions.size(); ++d) tiles.*k_dimensions[d].tile = point.values[d];
  tiles.k_promote = k_promote;
  return tiles;
}

Candidate GemmQuery::candidate(std::size_t kind, const GemmTiles& tiles) const {
  Candidate point;
  point.kind = kind;
  point.values.reserve(k_dimensions.size());
  for (const GemmDimension& dimension : k_dimensions) point.values.push_back(tiles.*dimension.tile);
  return point;
}

GemmSpace::GemmSpace(const GemmQuery& query, const sim::MachineConfig& machine) : m_query(query), m_machine(machine) {
  const std::int64_t vector = std::int64_t{16} * kernels::lanes_per_word(query.dtype);
  const bool promotes = query.dtype == kernels::DType::f16 && query.sums != kernels::GemmSums::f16;
  std::vector<std::int64_t> rows, columns;
  for (std::int64_t m = 1; m <= kernels::k_max_tile_rows; ++m) rows.push_back(m);
  for (std::int64_t v = 1; v <= kernels::k_max_tile_vectors; ++v) columns.push_back(v * vector);
  const auto require_among = [&](std::string_view name, const std::vector<std::int64_t>& grid) {
    for (const std::int64_t value : allowed(name, grid)) {
      if (std::find(grid.begin(), grid.end(), value) != grid.end()) continue;
      throw UsageError(
          fmt::format("--only {}={}: no microkernel has that; known: {}", name, value, fmt::join(grid, ", ")));
    }
  };
  require_among("m1", rows);
  require_among("n1", columns);
  for (const std::int64_t m1 : allowed("m1", rows)) {
    for (const std::int64_t n1 : allowed("n1", columns)) {
      const kernels::GemmTile tile{static_cast<int>(m1), static_cast<int>(n1 / vector), query.dtype, true, promotes};
      if (kernels::gemm_tile_fits(tile)) m_microkernels.push_back({m1, n1});
    }
  }
  if (m_microkernels.empty()) {
    throw UsageError(
        fmt::format("--only m1, n1: no such microkernel fits the registers: N1 is a multiple of {}, M1 at "
                    "most {}, both together at most {} vectors",
                    vector, kernels::k_max_tile_rows, kernels::k_max_tile_sums));
  }
}

/// Multiples of M1, and what splits all rows evenly into blocks.
std::vector<std::int64_t> GemmSpace::m2_grid(std::int64_t m1, bool all_cores) const {
  const std::int64_t rows = all_cores ? ceil_div(m_query.gemm.m, m_machine.cluster.cores) : m_query.gemm.m;
  std::vector<std::int64_t> grid;
  for (const std::int64_t times : multiples_up_to(ceil_div(rows, m1))) grid.push_back(std::min(times * m1, rows));
  for (std::int64_t blocks = 1; all_cores && blocks <= k_splits; ++blocks) {
    grid.push_back(ceil_div(rows, blocks));
    grid.push_back(std::min(rows, round_up(ceil_div(rows, blocks), m1)));
  }
  return allowed("m2", grid);
}
/// Whole N1: of all columns, or of a core's share of them, as many as leave few passes.
std::vector<std::int64_t> GemmSpace::n2_grid(std::int64_t n1, bool all_columns) const {
  std::vector<std::int64_t> grid;
  if (all_columns) {
    for (const std::int64_t times : multiples_up_to(ceil_div(m_query.gemm.n, n1))) grid.push_back(times * n1);
  } else {
    const std::int64_t vector = std::int64_t{16} * kernels::lanes_per_word(m_query.dtype);
    const std::int64_t share = ceil_div(ceil_div(m_query.gemm.n, vector), m_machine.cluster.cores) * vector;
    for (std::int64_t passes = 1; passes <= k_splits; ++passes) grid.push_back(round_up(ceil_div(share, passes), n1));
  }
  std::vector<std::int64_t> kept = allowed("n2", grid);
  std::erase_if(kept, [&](std::int64_t n2) { return n2 < n1 || n2 % n1 != 0; });
  return kept;
}
/// Rounds of M2 in a block of X.
std::vector<std::int64_t> GemmSpace::mg_grid(std::int64_t m2) const {
  std::vector<std::int64_t> grid;
  for (std::int64_t rounds = 1; rounds <= 2 * k_splits; rounds *= 2)
    grid.push_back(std::min(rounds * m2, m_query.gemm.m));
  return allowed("mg", grid);
}
std::vector<std::int64_t> GemmSpace::k2_grid() const {
  const kernels::GemmK k = kernels::gemm_k(m_query.dtype);
  std::vector<std::int64_t> grid;
  for (std::int64_t size = 32; size < m_query.gemm.k && size <= 4096; size *= 2) {
    for (const std::int64_t value : {size, size + size / 2}) {
      if (value < m_query.gemm.k && value % k.unit == 0) grid.push_back(value);
    }
  }
  grid.push_back(std::max<std::int64_t>(k.least, round_up(m_query.gemm.k, k.unit)));
  return allowed("k2", grid);
}
/// Whole k-steps; all of K in one block as the last.
std::vector<std::int64_t> GemmSpace::kg_grid(std::int64_t k2) const {
  std::vector<std::int64_t> grid;
  const std::int64_t whole = round_up(m_query.gemm.k, k2);
  for (const std::int64_t steps : multiples_up_to(whole / k2)) grid.push_back(steps * k2);
  for (std::int64_t blocks = 1; blocks <= k_splits / 2; ++blocks)
    grid.push_back(round_up(ceil_div(m_query.gemm.k, blocks), k2));
  std::vector<std::int64_t> kept = allowed("kg", grid);
  std::erase_if(kept, [&](std::int64_t kg) { return kg % k2 != 0; });
  return kept;
}

/// The points of one piece, dimension inside dimension: the memories a value decides about are looked at as soon as it
/// is chosen.
class GemmSpace::Walk {
 public:
  Walk(const GemmSpace& space, std::size_t kind, const Microkernel& microkernel, std::size_t top)
      : m_space(space),
        m_kind(kind),
        m_choice(space.m_query.choice(kind)),
        m_is_large_m(kind == k_large_m),
        m_bounds(space.m_machine),
        m_best(top) {
    m_tiles.k_promote = space.m_query.k_promote;
    m_tiles.m1 = microkernel.m1;
    m_tiles.n1 = microkernel.n1;
    for (const std::string_view name : {"x_buffers", "w_buffers", "y_buffers", "y_tiles"}) m_small[name] = grid(name);
    m_n2s = grid("n2");
  }

  Ranking run() {
    for (const std::int64_t k2 : grid("k2")) {
      m_tiles.k2 = k2;
      m_kgs = grid("kg");
      if (m_kgs.empty()) continue;
      for (const std::int64_t x : m_small["x_buffers"]) {
        m_tiles.x_buffers = x;
        for (const std::int64_t m2 : grid("m2")) rows(m2);
      }
    }
    m_ranking.best = m_best.sorted();
    return std::move(m_ranking);
  }

 private:
  std::vector<std::int64_t> grid(std::string_view dimension) const { return m_space.grid(dimension, m_kind, m_tiles); }
  std::variant<GemmPlan, GemmLimit> plan() const {
    return kernels::try_plan_gemm(m_space.m_query.gemm, m_space.m_query.dtype, m_tiles, m_choice, m_space.m_machine);
  }
  void kill(const GemmLimit& limit, std::size_t points) {
    m_ranking.killed[{std::string(limit.equation), std::string(limit.memory)}].add(
        static_cast<std::int64_t>(points), m_space.m_query.candidate(m_kind, m_tiles), limit.needed, limit.available);
  }

  void rows(std::int64_t m2) {
    const GemmQuery& query = m_space.m_query;
    m_tiles.m2 = m_is_large_m ? 0 : m2;
    m_mgs =
        m_is_large_m ? std::vector{std::min(m2 * m_space.m_machine.cluster.cores, query.gemm.m)} : m_space.mg_grid(m2);
    if (const auto only = m_space.allowed("mg", m_mgs);
        m_is_large_m && std::find(only.begin(), only.end(), m_mgs.front()) == only.end())
      return;
    const std::size_t below_y = m_kgs.size() * m_mgs.size() * m_small["y_tiles"].size();
    const std::size_t below_n2 = below_y * m_small["w_buffers"].size() * m_small["y_buffers"].size();
    for (std::size_t n = 0; n < m_n2s.size(); ++n) {
      m_tiles.n2 = m_n2s[n];
      for (const std::int64_t w : m_small["w_buffers"]) {
        m_tiles.w_buffers = w;
        m_automatic = {0, 0};
        for (const std::int64_t y : m_small["y_buffers"]) {
          m_tiles.y_buffers = y;
          m_tiles.y_tiles = 0;
          m_tiles.kg = m_kgs.front();
          m_tiles.mg = m_mgs.front();
          const auto least = plan();
          if (const auto* limit = std::get_if<GemmLimit>(&least)) {
            if (limit->memory == "SM") return kill(*limit, (m_n2s.size() - n) * below_n2);  // whatever N2 is
            kill(*limit, below_y);
            continue;
          }
          blocks();
        }
      }
    }
  }

  void blocks() {
    for (const std::int64_t kg : m_kgs) {
      for (const std::int64_t mg : m_mgs) {
        m_tiles.kg = kg;
        m_tiles.mg = mg;
        m_tiles.y_tiles = 0;
        const auto all = plan();
        if (const auto* limit = std::get_if<GemmLimit>(&all)) {
          kill(*limit, m_small["y_tiles"].size());
          continue;
        }
        GemmPlan point = std::get<GemmPlan>(all);
        const std::pair buffers(point.y_buffers, point.y_transfers);
        // The same points by another name.
        if (m_tiles.y_buffers == 0) m_automatic = buffers;
        if (m_tiles.y_buffers != 0 && buffers == m_automatic) continue;
        if (point.tiles.w_buffers != m_tiles.w_buffers) continue;
        for (const std::int64_t parts : m_small["y_tiles"]) {
          if (parts > 0 && kg == m_tiles.k2) continue;
          point.tiles.y_tiles = m_tiles.y_tiles = parts;
          ++m_ranking.legal;
          const double bound = 1e3 * m_bounds.of(point);
          if (!m_best.takes(bound)) continue;
          Candidate candidate = m_space.m_query.candidate(m_kind, m_tiles);
          candidate.bound_ms = bound;
          candidate.sm_bytes = point.sm_bytes;
          candidate.am_bytes = point.am_bytes;
          candidate.gsm_bytes = point.gsm_bytes;
          m_best.add(std::move(candidate));
        }
      }
    }
  }

  const GemmSpace& m_space;
  const std::size_t m_kind;
  const GemmChoice m_choice;
  const bool m_is_large_m;
  const kernels::GemmBounds m_bounds;
  Best m_best;
  Ranking m_ranking;
  GemmTiles m_tiles;
  std::map<std::string_view, std::vector<std::int64_t>> m_small;
  std::vector<std::int64_t> m_n2s, m_kgs, m_mgs;
  std::pair<std::int64_t, std::int64_t> m_automatic;  // Y2 in AM that y_buffers=0 chose
};

/// The values of a dimension, those before it given in `tiles`.
std::vector<std::int64_t> GemmSpace::grid(std::string_view dimension, std::size_t kind, const GemmTiles& tiles) const {
  const bool is_large_m = kind == k_large_m;
  std::vector<std::int64_t> values;
  if (dimension == "m1" || dimension == "n1") {  // beside the other
    for (const Microkernel& m : m_microkernels) {
      if (dimension == "m1" && m.n1 == tiles.n1) values.push_back(m.m1);
      if (dimension == "n1" && m.m1 == tiles.m1) values.push_back(m.n1);
    }
    return values;
  }
  if (dimension == "m2") return m2_grid(tiles.m1, is_large_m);
  if (dimension == "n2") return n2_grid(tiles.n1, is_large_m);
  if (dimension == "k2") return k2_grid();
  if (dimension == "kg") return kg_grid(tiles.k2);
  if (dimension == "mg") return is_large_m ? values : mg_grid(tiles.m2);
  if (dimension == "y_buffers") return allowed(dimension, {0, 2, 3});
  if (dimension == "y_tiles") return allowed(dimension, {0, 1});
  return allowed(dimension, {1, 2});
}

Ranking GemmSpace::rank(std::size_t piece, std::size_t top) const {
  const std::size_t tiles = m_microkernels.size();
  return Walk(*this, m_query.kinds_explored[piece / tiles], m_microkernels[piece % tiles], top).run();
}

Candidate GemmSpace::planned(std::size_t kind, const GemmTiles& tiles) const {
  const GemmPlan plan = kernels::plan_gemm(m_query.gemm, m_query.dtype, tiles, m_query.choice(kind), m_machine);
  Candidate point = m_query.candidate(kind, plan.tiles);
  point.sm_bytes = plan.sm_bytes;
  point.am_bytes = plan.am_bytes;
  point.gsm_bytes = plan.gsm_bytes;
  if (kind < GemmQuery::k_spaces) point.bound_ms = 1e3 * kernels::GemmBounds(m_machine).of(plan);
  return point;
}

std::vector<std::pair<std::string, Candidate>> GemmSpace::named() const {
  std::vector<std::pair<std::string, Candidate>> points;
  const auto tiles_of = [&](std::size_t kind) {
    GemmTiles tiles = GemmTiles::of(m_query.dtype, m_query.choice(kind));
    if (m_query.k_promote > 0) tiles.k_promote = m_query.k_promote;
    return tiles;
  };
  try {
    const GemmTiles paper = tiles_of(k_large_m);
    const Candidate blocks = planned(k_large_m, paper);
    // The paper prints those of FP32.
    points.emplace_back(m_query.dtype == DType::f32 ? "paper's blocks" : "default blocks", blocks);
    Candidate sequence = blocks;
    sequence.kind = k_paper;
    points.emplace_back("and sequence (Fig. 7)", sequence);
    GemmTiles whole = m_query.tiles(sequence);
    whole.y_tiles = 1;
    Candidate untiled = sequence;
    untiled.values = m_query.candidate(k_paper, whole).values;
    points.emplace_back("Y2 untiled (Fig. 6)", untiled);
  } catch (const kernels::KernelError&) {  // they do not fit this machine: nothing to show
  }
  GemmChoice choice = m_query.choice(k_small_m);
  choice.dataflow = GemmDataflow::automatic;
  try {
    const GemmPlan plan = kernels::plan_gemm(m_query.gemm, m_query.dtype, tiles_of(k_small_m), choice, m_machine);
    if (plan.dataflow != GemmDataflow::small_m) return points;
    Candidate point;
    point.kind = k_small_m;
    point.values.assign(k_dimensions.size(), 0);
    point.sm_bytes = plan.sm_bytes;
    point.am_bytes = plan.am_bytes;
    point.gsm_bytes = plan.gsm_bytes;
    points.emplace_back(k_kinds[k_small_m].variant, point);
  } catch (const kernels::KernelError&) {  // nothing fits
  }
  return points;
}

bool GemmSpace::holds(const Candidate& point) const {
  if (!m_query.explores(point.kind)) return false;
  for (std::size_t d = 0; d < k_dimensions.size(); ++d) {
    const auto only = m_query.only.find(k_dimensions[d].name);
    if (only == m_query.only.end()) continue;
    const std::int64_t value = is_m2_in_mg(k_dimensions[d], point.kind)
                                   ? ceil_div(m_query.tiles(point).mg, m_machine.cluster.cores)
                                   : point.values[d];
    if (std::find(only->second.begin(), only->second.end(), value) == only->second.end()) return false;
  }
  return true;
}

std::vector<Neighbour> GemmSpace::neighbours(const Candidate& of) const {
  const GemmTiles tiles = m_query.tiles(of);
  const std::int64_t cores = m_machine.cluster.cores;
  std::vector<Neighbour> found;
  for (std::size_t d = 0; d < k_dimensions.size(); ++d) {
    const GemmDimension& dimension = k_dimensions[d];
    const bool in_mg = is_m2_in_mg(dimension, of.kind);
    const std::int64_t now = in_mg ? ceil_div(tiles.mg, cores) : of.values[d];
    for (const std::int64_t value : values_beside(grid(dimension.name, of.kind, tiles), now)) {
      GemmTiles other = tiles;
      if (in_mg)
        other.mg = std::min(value * cores, m_query.gemm.m);
      else
        other.*dimension.tile = value;
      // What has to be whole multiples follows.
      if (dimension.tile == &GemmTiles::n1) other.n2 = round_up(other.n2, value);
      if (dimension.tile == &GemmTiles::k2) other.kg = std::max(value, other.kg / value * value);
      Neighbour neighbour{d, now, value, m_query.candidate(of.kind, other), {}};
      try {
        neighbour.point = planned(of.kind, other);
      } catch (const kernels::KernelError& error) {
        neighbour.why_not = brief(error.what());
      }
      if (!neighbour.point.is_same(of)) found.push_back(std::move(neighbour));
    }
  }
  return found;
}

}  // namespace mtsim::scenarios
