// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/gemm_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "isa/diagnostic.h"
#include "kernels/gemm/gemm_bound.h"
#include "kernels/gemm/gemm_tile.h"
#include "kernels/round.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace {

using kernels::ceil_div;
using kernels::GemmLimit;
using kernels::GemmPlan;
using kernels::GemmTiles;
using kernels::round_up;

// Multiples are tried one by one up to here, then in steps that grow with them.
constexpr std::int64_t k_fine = 4;

/// 1, 2, 3, 4, 6, 8, 12, 16, 24, ...
std::vector<std::int64_t> multiples_up_to(std::int64_t most) {
  std::vector<std::int64_t> values;
  for (std::int64_t value = 1, step = 1; value <= most; value += step) {
    values.push_back(value);
    if (value >= k_fine * step) step *= 2;
  }
  return values;
}

void sort_unique(std::vector<std::int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

/// A heap of the best points, worst on top.
class Best {
 public:
  explicit Best(std::size_t count) : m_count(count) {}

  /// Whether a bound can still get in.
  bool takes(double bound_ms) const { return m_heap.size() < m_count || bound_ms <= m_heap.front().bound_ms; }
  void add(Candidate candidate) {
    m_heap.push_back(std::move(candidate));
    std::push_heap(m_heap.begin(), m_heap.end());
    if (m_heap.size() <= m_count) return;
    std::pop_heap(m_heap.begin(), m_heap.end());
    m_heap.pop_back();
  }
  std::vector<Candidate> sorted() {
    std::sort_heap(m_heap.begin(), m_heap.end());
    return std::move(m_heap);
  }

 private:
  std::size_t m_count;
  std::vector<Candidate> m_heap;
};

/// The tile that holds a dimension. M2 of large_m is in Mg, in rows of all cores.
std::int64_t GemmTiles::*field_of(std::string_view dimension, bool is_large_m) {
  static const std::map<std::string_view, std::int64_t GemmTiles::*> fields = {{"m1", &GemmTiles::m1},
                                                                               {"n1", &GemmTiles::n1},
                                                                               {"m2", &GemmTiles::m2},
                                                                               {"n2", &GemmTiles::n2},
                                                                               {"k2", &GemmTiles::k2},
                                                                               {"kg", &GemmTiles::kg},
                                                                               {"mg", &GemmTiles::mg},
                                                                               {"x_buffers", &GemmTiles::x_buffers},
                                                                               {"w_buffers", &GemmTiles::w_buffers},
                                                                               {"y_buffers", &GemmTiles::y_buffers},
                                                                               {"y_tiles", &GemmTiles::y_tiles}};
  return dimension == "m2" && is_large_m ? &GemmTiles::mg : fields.at(dimension);
}

}  // namespace

GemmSpace::GemmSpace(const GemmQuery& query, const sim::MachineConfig& machine, Restrictions restrictions)
    : m_query(query), m_machine(machine), m_restrictions(std::move(restrictions)) {
  for (const std::string& dataflow : query.dataflows) {
    if (std::find(k_gemm_dataflows.begin(), k_gemm_dataflows.end(), dataflow) != k_gemm_dataflows.end()) continue;
    throw UsageError(
        fmt::format("--dataflow {}: no such dataflow; known: {}", dataflow, fmt::join(k_gemm_dataflows, ", ")));
  }
  for (const auto& [name, values] : m_restrictions) {
    if (std::find(k_gemm_dimensions.begin(), k_gemm_dimensions.end(), name) == k_gemm_dimensions.end()) {
      throw UsageError(fmt::format("--only {}: no such dimension; known: {}{}", name,
                                   fmt::join(k_gemm_dimensions, ", "),
                                   isa::did_you_mean(name, {k_gemm_dimensions.begin(), k_gemm_dimensions.end()})));
    }
  }
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

std::vector<std::int64_t> GemmSpace::allowed(std::string_view dimension, std::vector<std::int64_t> grid) const {
  const auto only = m_restrictions.find(dimension);
  if (only != m_restrictions.end()) grid = only->second;
  sort_unique(grid);
  return grid;
}

/// Multiples of M1, and what splits all rows evenly into blocks.
std::vector<std::int64_t> GemmSpace::m2_grid(std::int64_t m1, bool all_cores) const {
  const std::int64_t rows = all_cores ? ceil_div(m_query.shape.m, m_machine.cluster.cores) : m_query.shape.m;
  std::vector<std::int64_t> grid;
  for (const std::int64_t times : multiples_up_to(ceil_div(rows, m1))) grid.push_back(std::min(times * m1, rows));
  for (std::int64_t blocks = 1; all_cores && blocks <= 2 * k_fine; ++blocks) {
    grid.push_back(ceil_div(rows, blocks));
    grid.push_back(std::min(rows, round_up(ceil_div(rows, blocks), m1)));
  }
  return allowed("m2", grid);
}
/// Whole N1: of all columns, or of a core's share of them, as many as leave few passes.
std::vector<std::int64_t> GemmSpace::n2_grid(std::int64_t n1, bool all_columns) const {
  std::vector<std::int64_t> grid;
  if (all_columns) {
    for (const std::int64_t times : multiples_up_to(ceil_div(m_query.shape.n, n1))) grid.push_back(times * n1);
  } else {
    const std::int64_t vector = std::int64_t{16} * kernels::lanes_per_word(m_query.dtype);
    const std::int64_t share = ceil_div(ceil_div(m_query.shape.n, vector), m_machine.cluster.cores) * vector;
    for (std::int64_t passes = 1; passes <= 2 * k_fine; ++passes) grid.push_back(round_up(ceil_div(share, passes), n1));
  }
  std::vector<std::int64_t> kept = allowed("n2", grid);
  std::erase_if(kept, [&](std::int64_t n2) { return n2 < n1 || n2 % n1 != 0; });
  return kept;
}
/// Rounds of M2 in a block of X.
std::vector<std::int64_t> GemmSpace::mg_grid(std::int64_t m2) const {
  std::vector<std::int64_t> grid;
  for (std::int64_t rounds = 1; rounds <= 4 * k_fine; rounds *= 2)
    grid.push_back(std::min(rounds * m2, m_query.shape.m));
  return allowed("mg", grid);
}
std::vector<std::int64_t> GemmSpace::k2_grid() const {
  const kernels::GemmK k = kernels::gemm_k(m_query.dtype);
  std::vector<std::int64_t> grid;
  for (std::int64_t size = 32; size < m_query.shape.k && size <= 4096; size *= 2) {
    for (const std::int64_t value : {size, size + size / 2}) {
      if (value < m_query.shape.k && value % k.unit == 0) grid.push_back(value);
    }
  }
  grid.push_back(std::max<std::int64_t>(k.least, round_up(m_query.shape.k, k.unit)));
  return allowed("k2", grid);
}
/// Whole k-steps; all of K in one block as the last.
std::vector<std::int64_t> GemmSpace::kg_grid(std::int64_t k2) const {
  std::vector<std::int64_t> grid;
  const std::int64_t whole = round_up(m_query.shape.k, k2);
  for (const std::int64_t steps : multiples_up_to(whole / k2)) grid.push_back(steps * k2);
  for (std::int64_t blocks = 1; blocks <= k_fine; ++blocks)
    grid.push_back(round_up(ceil_div(m_query.shape.k, blocks), k2));
  std::vector<std::int64_t> kept = allowed("kg", grid);
  std::erase_if(kept, [&](std::int64_t kg) { return kg % k2 != 0; });
  return kept;
}

kernels::GemmChoice GemmSpace::choice(std::string_view dataflow) const {
  return {.dataflow = dataflow == "large_m" ? kernels::GemmDataflow::large_m : kernels::GemmDataflow::w_stationary,
          .sums = m_query.sums};
}

std::string GemmSpace::tile_text(std::string_view dataflow, const GemmTiles& tiles) const {
  std::string text =
      fmt::format("m1={},n1={},mg={},n2={},k2={},kg={}", tiles.m1, tiles.n1, tiles.mg, tiles.n2, tiles.k2, tiles.kg);
  if (dataflow != "large_m") text += fmt::format(",m2={}", tiles.m2);
  if (m_query.k_promote > 0) text += fmt::format(",k_promote={}", m_query.k_promote);
  text += fmt::format(",x_buffers={},w_buffers={}", tiles.x_buffers, tiles.w_buffers);
  if (tiles.y_buffers > 0) text += fmt::format(",y_buffers={}", tiles.y_buffers);
  if (tiles.y_tiles > 0) text += fmt::format(",y_tiles={}", tiles.y_tiles);
  return text;
}

/// The points of one piece, dimension inside dimension: the memories a value decides about are looked at as soon as it
/// is chosen.
class GemmSpace::Walk {
 public:
  Walk(const GemmSpace& space, std::string dataflow, const Microkernel& microkernel, std::size_t top)
      : m_space(space),
        m_dataflow(std::move(dataflow)),
        m_choice(space.choice(m_dataflow)),
        m_is_large_m(m_dataflow == "large_m"),
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
  std::vector<std::int64_t> grid(std::string_view dimension) const {
    return m_space.grid(dimension, m_dataflow, m_tiles);
  }
  std::variant<GemmPlan, GemmLimit> plan() const {
    return kernels::try_plan_gemm(m_space.m_query.shape, m_space.m_query.dtype, m_tiles, m_choice, m_space.m_machine);
  }
  void kill(const GemmLimit& limit, std::size_t points) {
    m_ranking.killed[{std::string(limit.equation), std::string(limit.memory)}].add(
        static_cast<std::int64_t>(points), m_space.tile_text(m_dataflow, m_tiles), limit.needed, limit.available);
  }

  void rows(std::int64_t m2) {
    const GemmQuery& query = m_space.m_query;
    m_tiles.m2 = m_is_large_m ? 0 : m2;
    m_mgs =
        m_is_large_m ? std::vector{std::min(m2 * m_space.m_machine.cluster.cores, query.shape.m)} : m_space.mg_grid(m2);
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
          m_best.add({m_dataflow, m_space.tile_text(m_dataflow, m_tiles), bound, point.sm_bytes, point.am_bytes,
                      point.gsm_bytes});
        }
      }
    }
  }

  const GemmSpace& m_space;
  const std::string m_dataflow;
  const kernels::GemmChoice m_choice;
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
std::vector<std::int64_t> GemmSpace::grid(std::string_view dimension, const std::string& dataflow,
                                          const GemmTiles& tiles) const {
  const bool is_large_m = dataflow == "large_m";
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
  const std::size_t kinds = m_microkernels.size();
  return Walk(*this, m_query.dataflows[piece / kinds], m_microkernels[piece % kinds], top).run();
}

Candidate GemmSpace::candidate(const std::string& dataflow, const GemmTiles& tiles) const {
  try {
    const GemmPlan plan = kernels::plan_gemm(m_query.shape, m_query.dtype, tiles, choice(dataflow), m_machine);
    const double bound = 1e3 * kernels::GemmBounds(m_machine).of(plan);
    return {dataflow, tile_text(dataflow, plan.tiles), bound, plan.sm_bytes, plan.am_bytes, plan.gsm_bytes};
  } catch (const kernels::KernelError& error) {
    throw UsageError(error.what());
  }
}

Candidate GemmSpace::paper_point() const {
  GemmTiles tiles = GemmTiles::of(m_query.dtype, choice("large_m"));
  if (m_query.k_promote > 0) tiles.k_promote = m_query.k_promote;
  return candidate("large_m", tiles);
}

std::optional<Candidate> GemmSpace::small_m_point() const {
  const kernels::GemmChoice choice{.sums = m_query.sums};
  GemmTiles tiles = GemmTiles::of(m_query.dtype, choice);
  if (m_query.k_promote > 0) tiles.k_promote = m_query.k_promote;
  try {
    const GemmPlan plan = kernels::plan_gemm(m_query.shape, m_query.dtype, tiles, choice, m_machine);
    if (plan.dataflow != kernels::GemmDataflow::small_m) return std::nullopt;
    const std::string tile = m_query.k_promote > 0 ? fmt::format("k_promote={}", m_query.k_promote) : "";
    return Candidate{k_own_choice, tile, 0, plan.sm_bytes, plan.am_bytes, plan.gsm_bytes};
  } catch (const kernels::KernelError&) {  // nothing fits
    return std::nullopt;
  }
}

bool GemmSpace::holds(const Candidate& point) const {
  const auto& dataflows = m_query.dataflows;
  if (std::find(dataflows.begin(), dataflows.end(), point.variant) == dataflows.end()) return false;
  const bool is_large_m = point.variant == "large_m";
  const GemmTiles tiles = kernels::parse_gemm_tiles(point.tile, m_query.dtype, choice(point.variant));
  return std::all_of(m_restrictions.begin(), m_restrictions.end(), [&](const auto& only) {
    const auto& [dimension, values] = only;
    const std::int64_t value = dimension == "m2" && is_large_m ? ceil_div(tiles.mg, m_machine.cluster.cores)
                                                               : tiles.*field_of(dimension, is_large_m);
    return std::find(values.begin(), values.end(), value) != values.end();
  });
}

std::vector<Neighbour> GemmSpace::neighbours(const Candidate& of) const {
  const bool is_large_m = of.variant == "large_m";
  const GemmTiles tiles = kernels::parse_gemm_tiles(of.tile, m_query.dtype, choice(of.variant));
  const std::int64_t cores = m_machine.cluster.cores;
  std::vector<Neighbour> found;
  for (const std::string_view dimension : k_gemm_dimensions) {
    std::int64_t GemmTiles::*const field = field_of(dimension, is_large_m);
    const bool in_all_cores = dimension == "m2" && is_large_m;
    const std::int64_t now = in_all_cores ? ceil_div(tiles.mg, cores) : tiles.*field;
    std::vector<std::int64_t> values = grid(dimension, of.variant, tiles);
    sort_unique(values);
    std::vector<std::int64_t> beside;
    if (const auto below = std::lower_bound(values.begin(), values.end(), now); below != values.begin())
      beside.push_back(*(below - 1));
    if (const auto above = std::upper_bound(values.begin(), values.end(), now); above != values.end())
      beside.push_back(*above);
    for (const std::int64_t value : beside) {
      GemmTiles other = tiles;
      other.*field = in_all_cores ? std::min(value * cores, m_query.shape.m) : value;
      // What has to be whole multiples follows.
      if (dimension == "n1") other.n2 = round_up(other.n2, value);
      if (dimension == "k2") other.kg = std::max(value, other.kg / value * value);
      Neighbour neighbour{std::string(dimension), now, value, {}, {}};
      try {
        neighbour.point = candidate(of.variant, other);
      } catch (const UsageError& error) {
        neighbour.why_not = error.what();
      }
      if (neighbour.point.key() != of.key()) found.push_back(std::move(neighbour));
    }
  }
  return found;
}

}  // namespace mtsim::scenarios
