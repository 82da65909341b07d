// SPDX-License-Identifier: Apache-2.0
#include "scenarios/explore/gemm_space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>
#include <variant>

#include "isa/diagnostic.h"
#include "kernels/gemm/gemm_bound.h"
#include "kernels/gemm/gemm_tile.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

namespace {

using kernels::GemmLimit;
using kernels::GemmPlan;
using kernels::GemmTiles;

// Multiples are tried one by one up to here, then in steps that grow with them.
constexpr std::int64_t k_fine = 4;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

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

struct Dimension {
  std::string_view name;
  std::int64_t GemmTiles::*field;
};
constexpr Dimension k_fields[] = {{"m1", &GemmTiles::m1},
                                  {"n1", &GemmTiles::n1},
                                  {"m2", &GemmTiles::mg},  // in cores * M2
                                  {"n2", &GemmTiles::n2},
                                  {"k2", &GemmTiles::k2},
                                  {"kg", &GemmTiles::kg},
                                  {"x_buffers", &GemmTiles::x_buffers},
                                  {"w_buffers", &GemmTiles::w_buffers},
                                  {"y_buffers", &GemmTiles::y_buffers},
                                  {"y_tiles", &GemmTiles::y_tiles}};

}  // namespace

void Killed::add(std::int64_t count, const std::string& tile, std::int64_t its_need, std::int64_t its_limit) {
  points += count;
  if (!example.empty() && std::pair(needed - available, example) <= std::pair(its_need - its_limit, tile)) return;
  example = tile;
  needed = its_need;
  available = its_limit;
}
void Killed::add(const Killed& other) { add(other.points, other.example, other.needed, other.available); }

GemmSpace::GemmSpace(const GemmQuery& query, const sim::MachineConfig& machine, Restrictions restrictions)
    : m_query(query), m_machine(machine), m_restrictions(std::move(restrictions)) {
  m_choice.dataflow = kernels::GemmDataflow::large_m;
  m_choice.sums = query.sums;
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
  for (const std::int64_t m1 : allowed("m1", rows)) {
    for (const std::int64_t n1 : allowed("n1", columns)) {
      if (n1 % vector != 0 || m1 > kernels::k_max_tile_rows || n1 / vector > kernels::k_max_tile_vectors) continue;
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
std::vector<std::int64_t> GemmSpace::m2_grid(std::int64_t m1) const {
  const std::int64_t rows = ceil_div(m_query.shape.m, m_machine.cluster.cores);
  std::vector<std::int64_t> grid;
  for (const std::int64_t times : multiples_up_to(ceil_div(rows, m1))) grid.push_back(std::min(times * m1, rows));
  for (std::int64_t blocks = 1; blocks <= 2 * k_fine; ++blocks) {
    grid.push_back(ceil_div(rows, blocks));
    grid.push_back(std::min(rows, round_up(ceil_div(rows, blocks), m1)));
  }
  return allowed("m2", grid);
}
std::vector<std::int64_t> GemmSpace::n2_grid(std::int64_t n1) const {
  std::vector<std::int64_t> grid;
  for (const std::int64_t times : multiples_up_to(ceil_div(m_query.shape.n, n1))) grid.push_back(times * n1);
  std::vector<std::int64_t> kept = allowed("n2", grid);
  std::erase_if(kept, [&](std::int64_t n2) { return n2 < n1 || n2 % n1 != 0; });
  return kept;
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

std::string GemmSpace::tile_text(const GemmTiles& tiles) const {
  std::string text =
      fmt::format("m1={},n1={},mg={},n2={},k2={},kg={}", tiles.m1, tiles.n1, tiles.mg, tiles.n2, tiles.k2, tiles.kg);
  if (m_query.k_promote > 0) text += fmt::format(",k_promote={}", m_query.k_promote);
  text += fmt::format(",x_buffers={},w_buffers={}", tiles.x_buffers, tiles.w_buffers);
  if (tiles.y_buffers > 0) text += fmt::format(",y_buffers={}", tiles.y_buffers);
  if (tiles.y_tiles > 0) text += fmt::format(",y_tiles={}", tiles.y_tiles);
  return text;
}

Ranking GemmSpace::rank(std::size_t piece, std::size_t top) const {
  const kernels::GemmBounds bounds(m_machine);
  Ranking ranking;
  Best best(top);
  GemmTiles tiles;
  tiles.k_promote = m_query.k_promote;
  tiles.m1 = m_microkernels[piece].m1;
  tiles.n1 = m_microkernels[piece].n1;
  const auto m2s = m2_grid(tiles.m1), n2s = n2_grid(tiles.n1);
  const auto x_buffers = allowed("x_buffers", {1, 2}), w_buffers = allowed("w_buffers", {1, 2});
  const auto y_buffers = allowed("y_buffers", {0, 2, 3}), y_tiles = allowed("y_tiles", {0, 1});
  const auto plan = [&] { return kernels::try_plan_gemm(m_query.shape, m_query.dtype, tiles, m_choice, m_machine); };
  const auto kill = [&](const GemmLimit& limit, std::size_t points) {
    ranking.killed[{std::string(limit.equation), std::string(limit.memory)}].add(
        static_cast<std::int64_t>(points), tile_text(tiles), limit.needed, limit.available);
  };
  for (const std::int64_t k2 : k2_grid()) {
    tiles.k2 = k2;
    const auto kgs = kg_grid(k2);
    if (kgs.empty()) continue;
    const std::size_t below_y = kgs.size() * y_tiles.size(), below_n2 = below_y * w_buffers.size() * y_buffers.size();
    for (const std::int64_t x : x_buffers) {
      for (const std::int64_t m2 : m2s) {
        tiles.x_buffers = x;
        tiles.mg = std::min(m2 * m_machine.cluster.cores, m_query.shape.m);
        bool fits_sm = true;
        for (std::size_t n = 0; n < n2s.size() && fits_sm; ++n) {
          tiles.n2 = n2s[n];
          for (const std::int64_t w : w_buffers) {
            std::pair<std::int64_t, std::int64_t> automatic{0, 0};  // buffers that y_buffers=0 chose
            for (const std::int64_t y : y_buffers) {
              tiles.w_buffers = w;
              tiles.y_buffers = y;
              tiles.y_tiles = 0;
              tiles.kg = kgs.front();
              const auto least = plan();
              if (const auto* limit = std::get_if<GemmLimit>(&least)) {
                // What is too large for SM is so for every N2; the rest of this one is counted here too.
                fits_sm = limit->memory != "SM";
                kill(*limit, fits_sm ? below_y : (n2s.size() - n) * below_n2);
                if (!fits_sm) break;
                continue;
              }
              for (const std::int64_t kg : kgs) {
                tiles.kg = kg;
                tiles.y_tiles = 0;
                const auto all = plan();
                if (const auto* limit = std::get_if<GemmLimit>(&all)) {
                  kill(*limit, y_tiles.size());
                  continue;
                }
                GemmPlan point = std::get<GemmPlan>(all);
                const std::pair buffers(point.y_buffers, point.y_transfers);
                if (y == 0) automatic = buffers;
                if (y != 0 && buffers == automatic) continue;  // the same point by another name
                for (const std::int64_t parts : y_tiles) {
                  if (parts > 0 && kg == k2) continue;  // likewise
                  point.tiles.y_tiles = tiles.y_tiles = parts;
                  ++ranking.legal;
                  const double bound = 1e3 * bounds.of(point).total;
                  if (!best.takes(bound)) continue;
                  best.add({"large_m", tile_text(tiles), bound, point.sm_bytes, point.am_bytes, point.gsm_bytes});
                }
              }
            }
            if (!fits_sm) break;
          }
        }
      }
    }
  }
  ranking.best = best.sorted();
  return ranking;
}

Candidate GemmSpace::candidate(const GemmTiles& tiles) const {
  try {
    const GemmPlan plan = kernels::plan_gemm(m_query.shape, m_query.dtype, tiles, m_choice, m_machine);
    const double bound = 1e3 * kernels::GemmBounds(m_machine).of(plan).total;
    return {"large_m", tile_text(plan.tiles), bound, plan.sm_bytes, plan.am_bytes, plan.gsm_bytes};
  } catch (const kernels::KernelError& error) {
    throw UsageError(error.what());
  }
}

Candidate GemmSpace::paper_point() const {
  GemmTiles tiles = GemmTiles::of(m_query.dtype, m_choice);
  if (m_query.k_promote > 0) tiles.k_promote = m_query.k_promote;
  return candidate(tiles);
}

std::vector<Neighbour> GemmSpace::neighbours(const Candidate& of) const {
  const GemmTiles tiles = kernels::parse_gemm_tiles(of.tile, m_query.dtype, m_choice);
  const std::int64_t cores = m_machine.cluster.cores;
  std::vector<Neighbour> found;
  for (const Dimension& dimension : k_fields) {
    std::vector<std::int64_t> grid;
    const bool is_m2 = dimension.name == "m2";
    const std::int64_t now = is_m2 ? ceil_div(tiles.mg, cores) : tiles.*dimension.field;
    if (dimension.name == "m1" || dimension.name == "n1") {
      for (const Microkernel& m : m_microkernels) {
        if (dimension.name == "m1" ? m.n1 == tiles.n1 : m.m1 == tiles.m1)
          grid.push_back(dimension.name == "m1" ? m.m1 : m.n1);
      }
    } else if (is_m2) {
      grid = m2_grid(tiles.m1);
    } else if (dimension.name == "n2") {
      grid = n2_grid(tiles.n1);
    } else if (dimension.name == "k2") {
      grid = k2_grid();
    } else if (dimension.name == "kg") {
      grid = kg_grid(tiles.k2);
    } else {
      const bool is_y = dimension.name == "y_buffers", is_parts = dimension.name == "y_tiles";
      grid = allowed(dimension.name, is_y       ? std::vector<std::int64_t>{0, 2, 3}
                                     : is_parts ? std::vector<std::int64_t>{0, 1}
                                                : std::vector<std::int64_t>{1, 2});
    }
    sort_unique(grid);
    const auto above = std::upper_bound(grid.begin(), grid.end(), now);
    const auto below = std::lower_bound(grid.begin(), grid.end(), now);
    std::vector<std::int64_t> beside;
    if (below != grid.begin()) beside.push_back(*(below - 1));
    if (above != grid.end()) beside.push_back(*above);
    for (const std::int64_t value : beside) {
      GemmTiles other = tiles;
      other.*dimension.field = is_m2 ? std::min(value * cores, m_query.shape.m) : value;
      if (dimension.name == "n1") other.n2 = std::max(value, other.n2 / value * value);
      if (dimension.name == "k2") other.kg = std::max(value, other.kg / value * value);
      Neighbour neighbour{std::string(dimension.name), now, value, {}, {}};
      try {
        neighbour.point = candidate(other);
      } catch (const UsageError& error) {
        neighbour.why_not = error.what();
      }
      if (neighbour.point.key() != of.key()) found.push_back(std::move(neighbour));
    }
  }
  return found;
}

}  // namespace mtsim::scenarios
