// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/gemm_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "isa/diagnostic.h"

namespace mtsim::kernels {
namespace {

constexpr int k_vector_registers = isa::k_registers_in_file[static_cast<int>(isa::RegisterFile::VR)];

const isa::Program& generate(const GemmTile& tile, const GemmTileLoop& loop, const isa::Pipeline& pipeline) {
  return program("gemm_tile", pipeline,
                 {{"M1", tile.rows},
                  {"V", tile.vectors},
                  {"F16", tile.dtype == DType::f16 ? 1 : 0},
                  {"F32_SUMS", tile.promotes ? 1 : 0},
                  {"STEPS", loop.steps},
                  {"PARTS", loop.parts},
                  {"PASSES", loop.passes}});
}

/// Cycles of a pass that no schedule of the loop can go below: VMAC, the chain that brings X1 to all lanes, the
/// branch, and the sums, each of which waits for its own last multiply-add.
int bound(const GemmTile& tile, const GemmTileLoop& loop, const isa::Pipeline& pipeline) {
  const isa::Row& multiply = isa::row(tile.dtype == DType::f16 ? isa::Mnemonic::VFMULAH16 : isa::Mnemonic::VFMULAS32);
  const int multipliers = std::popcount(pipeline.units_of(multiply));
  const int products = loop.steps * tile.sums();
  return std::max({(products + multipliers - 1) / multipliers, loop.steps * tile.rows, pipeline.branch_cycles(),
                   pipeline.of(multiply) * loop.steps / loop.parts});
}

/// Every loop the template offers for the element type, the fastest first, the smallest first among equals.
std::vector<GemmTileLoop> candidates(const GemmTile& tile, const isa::Pipeline& pipeline) {
  std::vector<GemmTileLoop> loops;
  const GemmK k = gemm_k(tile.dtype);
  for (const int steps : {1, 2, 4}) {
    if (tile.dtype == DType::f16 && steps != 4) continue;  // four FP16 come with one scalar load
    if (tile.in_order && k.unit % steps != 0) continue;
    for (int parts = 1; parts <= (tile.in_order ? 1 : steps); parts *= 2) {
      const int needed = tile.sums() * parts + tile.vectors + 1;  // sums, a row of W1, an X1
      if (needed <= k_vector_registers) loops.push_back({steps, parts, tile.in_order ? k.least / steps : 1});
    }
  }
  const auto of_a_step = [&](const GemmTileLoop& l) { return static_cast<double>(bound(tile, l, pipeline)) / l.steps; };
  std::stable_sort(loops.begin(), loops.end(), [&](const GemmTileLoop& a, const GemmTileLoop& b) {
    return std::tuple(of_a_step(a), a.parts, a.steps) < std::tuple(of_a_step(b), b.parts, b.steps);
  });
  return loops;
}

struct Choice {
  GemmTileLoop loop;
  const isa::Program* program;
  std::uint64_t fingerprint;
};

using Choices = std::map<std::pair<GemmTile, std::string>, Choice>;

Choices& choices() {
  static Choices chosen;
  return chosen;
}

const Choice& choose(const GemmTile& tile, const isa::Pipeline& pipeline) {
  Choices& chosen = choices();
  const auto key = std::pair(tile, pipeline.str());
  if (const auto found = chosen.find(key); found != chosen.end()) return found->second;
  if (tile.rows < 1 || tile.rows > k_max_tile_rows || tile.vectors < 1) {
    throw KernelError(fmt::format("gemm tile of {} x {} vectors: 1 to {} rows and at least one vector", tile.rows,
                                  tile.vectors, k_max_tile_rows));
  }
  if (tile.promotes && tile.dtype != DType::f16) {
    throw KernelError(fmt::format("gemm tile of {} x {} vectors: {} has no FP16 sums to promote", tile.rows,
                                  tile.vectors, to_string(tile.dtype)));
  }
  std::string why =
      fmt::format("its sums and a row of W take {} of {}", tile.rows * tile.vectors + tile.vectors, k_vector_registers);
  for (const GemmTileLoop& loop : candidates(tile, pipeline)) {
    try {
      const isa::Program& program = generate(tile, loop, pipeline);
      return chosen.emplace(key, Choice{loop, &program, program.fingerprint()}).first->second;
    } catch (const isa::IsaError& error) {
      why = error.what();  // the last is the one that needs the fewest registers
    }
  }
  throw KernelError(
      fmt::format("gemm tile of {} rows x {} vectors ({} columns, {}) does not fit the registers: {}; "
                  "use fewer rows or columns",
                  tile.rows, tile.vectors, tile.columns(), to_string(tile.dtype), why));
}

}  // namespace

GemmTileLoop gemm_tile_loop(const GemmTile& tile, const isa::Pipeline& pipeline) { return choose(tile, pipeline).loop; }

const isa::Program& gemm_tile_program(const GemmTile& tile, const isa::Pipeline& pipeline) {
  return *choose(tile, pipeline).program;
}

const sim::Kernel& TileKernels::kernel(const GemmTile& tile, bool accumulate) {
  const auto [found, is_new] = m_loaded.try_emplace({tile, accumulate});
  if (is_new) {
    found->second = m_cluster->load(gemm_tile_program(tile, m_cluster->machine().pipeline),
                                    accumulate ? "accumulate" : "write_only");
  }
  return found->second;
}

const GemmTile& gemm_tile_of(const isa::Program& program) {
  const std::uint64_t fingerprint = program.fingerprint();
  for (const auto& [key, choice] : choices()) {
    if (choice.fingerprint == fingerprint) return key.first;
  }
  throw KernelError(fmt::format("{} is no generated gemm tile; ask for programs of gemm_tile_program", program.name));
}

namespace {

/// Of the pipelined loop, and beside it.
struct TileCycles {
  std::int64_t loop, fill;
};
TileCycles cycles_of(const GemmTile& tile, std::int64_t k, const isa::Pipeline& pipeline) {
  const std::vector<GemmTileLoop> loops = candidates(tile, pipeline);
  if (loops.empty())
    throw KernelError(fmt::format("gemm tile of {} x {} vectors has no loop", tile.rows, tile.vectors));
  // Fill and drain: row for row X1 comes to the first products and Y1 comes and goes.
  std::int64_t fill = 16 + 5 * tile.rows;
  if (tile.promotes) {  // a vector of Y1 a cycle, or as fast as pairs of registers become free
    const std::int64_t pairs = std::max(1, (62 - tile.sums()) / 2);  // PROMOTED of gemm_tile.s
    fill = std::max(fill, 36 + tile.rows + std::max<std::int64_t>(tile.sums(), 16 * tile.sums() / pairs));
  }
  return {bound(tile, loops.front(), pipeline) * ((k + loops.front().steps - 1) / loops.front().steps), fill};
}

}  // namespace

std::int64_t gemm_tile_cycles(const GemmTile& tile, std::int64_t k, const isa::Pipeline& pipeline) {
  const TileCycles cycles = cycles_of(tile, k, pipeline);
  return cycles.loop + cycles.fill;
}

std::int64_t gemm_tile_least_cycles(const GemmTile& tile, std::int64_t k, const isa::Pipeline& pipeline) {
  const TileCycles cycles = cycles_of(tile, k, pipeline);
  return cycles.loop + cycles.fill / 2;
}

std::int64_t gemm_main_cycles(std::int64_t k, bool promotes) { return 8 * k + (promotes ? 39 : 22); }

}  // namespace mtsim::kernels
