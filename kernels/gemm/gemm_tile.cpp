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
                  {"STEPS", loop.steps},
                  {"PARTS", loop.parts}});
}

/// Cycles of a k-step that no schedule of the loop can go below: VMAC, the chain that brings X1 to all lanes, the
/// branch, and the sums, each of which waits for its own last multiply-add.
double bound(const GemmTile& tile, const GemmTileLoop& loop, const isa::Pipeline& pipeline) {
  const isa::Row& multiply = isa::row(tile.dtype == DType::f16 ? isa::Mnemonic::VFMULAH16 : isa::Mnemonic::VFMULAS32);
  const int multipliers = std::popcount(pipeline.units_of(multiply));
  const int products = loop.steps * tile.rows * tile.vectors;
  const int cycles = std::max({(products + multipliers - 1) / multipliers, loop.steps * tile.rows,
                               pipeline.branch_cycles(), pipeline.of(multiply) * loop.steps / loop.parts});
  return static_cast<double>(cycles) / loop.steps;
}

/// Every loop the template offers for the element type, the fastest first, the smallest first among equals.
std::vector<GemmTileLoop> candidates(const GemmTile& tile, const isa::Pipeline& pipeline) {
  std::vector<GemmTileLoop> loops;
  for (const int steps : {1, 2, 4}) {
    if (tile.dtype == DType::f16 && steps != 4) continue;  // four FP16 come with one scalar load
    for (int parts = 1; parts <= steps; parts *= 2) {
      const int needed = tile.rows * tile.vectors * parts + tile.vectors + 1;  // sums, a row of W1, an X1
      if (needed <= k_vector_registers) loops.push_back({steps, parts});
    }
  }
  std::stable_sort(loops.begin(), loops.end(), [&](const GemmTileLoop& a, const GemmTileLoop& b) {
    return std::tuple(bound(tile, a, pipeline), a.parts, a.steps) <
           std::tuple(bound(tile, b, pipeline), b.parts, b.steps);
  });
  return loops;
}

struct Choice {
  GemmTileLoop loop;
  const isa::Program* program;
};

const Choice& choose(const GemmTile& tile, const isa::Pipeline& pipeline) {
  static std::map<std::pair<GemmTile, std::string>, Choice> chosen;
  const auto key = std::pair(tile, pipeline.str());
  if (const auto found = chosen.find(key); found != chosen.end()) return found->second;
  if (tile.rows < 1 || tile.rows > k_max_tile_rows || tile.vectors < 1) {
    throw KernelError(fmt::format("gemm tile of {} x {} vectors: 1 to {} rows and at least one vector", tile.rows,
                                  tile.vectors, k_max_tile_rows));
  }
  std::string why =
      fmt::format("its sums and a row of W take {} of {}", tile.rows * tile.vectors + tile.vectors, k_vector_registers);
  for (const GemmTileLoop& loop : candidates(tile, pipeline)) {
    try {
      return chosen.emplace(key, Choice{loop, &generate(tile, loop, pipeline)}).first->second;
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

}  // namespace mtsim::kernels
