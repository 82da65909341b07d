// SPDX-License-Identifier: Apache-2.0
// Rows from place to place in DDR, nothing else touched.
#include "kernels/move/move.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "bench_cluster.h"
#include "row_reference.h"

namespace mtsim::kernels {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::int64_t k_slot = 2048;  // of the source and of the destination of a move

/// Of move i within its slots: rows that are cut otherwise on the two sides.
struct Cut {
  sim::Rows from, to;
  std::int64_t from_offset = 0, to_offset = 0;
};

std::vector<Cut> random_cuts(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t end) { return static_cast<std::int64_t>(random()) % end; };
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t piece = 2 * (1 + below(16)), a = 1 + below(4), b = 1 + below(4);
    // a * b pieces: a rows of b pieces on one side, b rows of a pieces on the other.
    cuts.push_back({{a, b * piece, 2 * below(20)}, {b, a * piece, 2 * below(20)}, 2 * below(50), 2 * below(50)});
  }
  return cuts;
}

std::vector<std::int64_t> offsets(const sim::Rows& rows) {
  std::vector<std::int64_t> all;
  for (std::int64_t row = 0; row < rows.count; ++row) {
    for (std::int64_t i = 0; i < rows.bytes; ++i) all.push_back(row * (rows.pitch()) + i);
  }
  return all;
}

std::int64_t run(const std::vector<Cut>& cuts, int cores, sim::Depth depth) {
  sim::Cluster& cluster = fresh({depth});
  std::mt19937 random(3);
  Bytes source(cuts.size() * k_slot), expected(source.size());
  for (Bytes* bytes : {&source, &expected})
    std::generate(bytes->begin(), bytes->end(), [&] { return static_cast<std::byte>(random()); });
  const sim::Pointer from = cluster.ddr_malloc(std::max<std::int64_t>(1, std::ssize(source))),
                     to = cluster.ddr_malloc(std::max<std::int64_t>(1, std::ssize(source)));
  cluster.write(from, source);
  cluster.write(to, expected);
  std::vector<RowsMove> moves;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const Cut& cut = cuts[i];
    const auto slot = static_cast<std::int64_t>(i) * k_slot;
    moves.push_back({from + (slot + cut.from_offset), cut.from, to + (slot + cut.to_offset), cut.to});
    const std::vector<std::int64_t> read = offsets(cut.from), written = offsets(cut.to);
    for (std::size_t byte = 0; byte < read.size(); ++byte)
      expected[static_cast<std::size_t>(slot + cut.to_offset + written[byte])] =
          source[static_cast<std::size_t>(slot + cut.from_offset + read[byte])];
  }
  const sim::LaunchResult result = cluster.launch(move_rows(moves), cores);
  expect_clean(result);
  CHECK(result.dma_transfers == std::ssize(moves));
  if (depth == sim::Depth::functional) {
    Bytes got(expected.size());
    cluster.read(to, got);
    CHECK(got == expected);
  }
  return result.cycles;
}

}  // namespace

TEST_CASE("move_rows moves every byte once, whatever the number of cores and moves", "[move]") {
  const std::size_t count = GENERATE(0, 1, 7, 24, 131);
  const int cores = GENERATE(1, 5, 24);
  CAPTURE(count, cores);
  const std::vector<Cut> cuts = random_cuts(count, 100 + static_cast<std::uint32_t>(count));
  CHECK(run(cuts, cores, sim::Depth::timing) == run(cuts, cores, sim::Depth::functional));
}

TEST_CASE("transfers of move_rows hide each other's start", "[move]") {
  // Alone a short transfer takes its issue, the start of the DMA and the wait. Behind each other the starts overlap,
  // and of each the issue and the wait are left: less than half.
  const std::vector<Cut> cuts(40, Cut{{1, 64, 0}, {1, 64, 0}, 0, 0});
  const sim::MachineConfig config = machine();
  const auto running = [&](const std::vector<Cut>& moves) {
    return static_cast<double>(run(moves, 1, sim::Depth::timing)) - config.cluster.launch_us * config.cycles_per_us();
  };
  const double alone = running({cuts.front()});
  CHECK(alone > config.dma.start_us * config.cycles_per_us());
  CHECK(running(cuts) < 0.5 * 40 * alone);
}

}  // namespace mtsim::kernels
