// SPDX-License-Identifier: Apache-2.0
// The shared program of low-density operators, driven by the add microkernel.
#include "kernels/stream/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "bench_cluster.h"
#include "kernels/add/add.h"
#include "kernels/gather/gather.h"
#include "kernels/library.h"
#include "reference.h"

namespace mtsim::kernels {
namespace {

const sim::ClusterOptions k_functional{sim::Depth::functional, false};

constexpr std::int64_t k_guard = 1024;
constexpr float k_guard_value = 7;

struct Area {  // DDR with guards around it
  sim::Pointer data;
  std::int64_t count = 0;

  Area(sim::Cluster& cluster, std::int64_t values) : count(values) {
    const sim::Pointer whole = cluster.ddr_malloc(4 * (values + 2 * k_guard));
    const std::vector<float> untouched(static_cast<std::size_t>(values + 2 * k_guard), k_guard_value);
    cluster.write(whole, std::as_bytes(std::span(untouched)));
    data = whole + 4 * k_guard;
  }
  std::vector<float> read(const sim::Cluster& cluster) const {
    std::vector<float> all(count + 2 * k_guard);
    cluster.read(data + -4 * k_guard, std::as_writable_bytes(std::span(all)));
    const auto untouched = [](float v) { return v == k_guard_value; };
    CHECK(std::all_of(all.begin(), all.begin() + k_guard, untouched));
    CHECK(std::all_of(all.end() - k_guard, all.end(), untouched));
    return {all.begin() + k_guard, all.end() - k_guard};
  }
};

void expect_clean(const sim::LaunchResult& result) {
  for (const sim::Finding& finding : result.findings) FAIL_CHECK(finding.message);
  if (result.fault) FAIL_CHECK(result.fault->str());
}

std::string complaint(const StreamShape& shape, std::int64_t tile, const sim::MachineConfig& config = machine()) {
  try {
    plan_stream(shape, tile, config);
  } catch (const KernelError& error) {
    return error.what();
  }
  return "no complaint";
}

}  // namespace

TEST_CASE("elements are streamed in tiles of any size, every one once and nothing else", "[stream]") {
  struct Case {
    std::int64_t elements, tile;
  };
  const auto [elements, tile] = GENERATE(values<Case>({{1, 0},
                                                       {127, 0},
                                                       {128, 0},
                                                       {129, 0},
                                                       {24 * 128, 0},
                                                       {24 * 128 + 1, 0},
                                                       {100'003, 0},
                                                       {100'003, 128},
                                                       {20'000, 300}}));
  INFO(elements << " elements, tile " << tile);
  const std::vector<float> x = random_matrix(1, elements, 1), a = random_matrix(1, elements, 2);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_x(cluster, elements), in_a(cluster, elements), out(cluster, elements);
  cluster.write(in_x.data, std::as_bytes(std::span(x)));
  cluster.write(in_a.data, std::as_bytes(std::span(a)));
  const StreamPlan plan = plan_add(elements, DType::f32, tile, machine());
  expect_clean(cluster.launch(add(cluster, plan, DType::f32, {in_x.data, in_a.data, out.data})));
  const std::vector<float> y = out.read(cluster);
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (!same_bits(y[i], x[i] + a[i])) FAIL_CHECK(fmt::format("element {}: {} + {} gave {}", i, x[i], a[i], y[i]));
  }
  CHECK(in_x.read(cluster) == x);
}

TEST_CASE("a result may overwrite its input in DDR", "[stream]") {
  const std::int64_t elements = 30'011;
  const std::vector<float> x = random_matrix(1, elements, 3), a = random_matrix(1, elements, 4);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in_x(cluster, elements), in_a(cluster, elements);
  cluster.write(in_x.data, std::as_bytes(std::span(x)));
  cluster.write(in_a.data, std::as_bytes(std::span(a)));
  expect_clean(cluster.launch(
      add(cluster, plan_add(elements, DType::f32, 0, machine()), DType::f32, {in_x.data, in_a.data, in_x.data})));
  const std::vector<float> y = in_x.read(cluster);
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(same_bits(y[i], x[i] + a[i]));
}

TEST_CASE("rows have a pitch in AM and in DDR, and pads hold what the operator asked for", "[stream]") {
  const std::int64_t rows = GENERATE(1, 23, 200), columns = 35, stride = 40;
  const bool in_place = GENERATE(true, false);
  INFO(rows << " rows, in place " << in_place);
  const std::vector<float> x = random_matrix(rows, columns, 5);
  std::vector<float> bias = random_matrix(1, 64, 6);
  bias.insert(bias.end(), bias.begin(), bias.begin() + 64);  // a block is two rows
  sim::Cluster& cluster = fresh(k_functional);
  const Area in(cluster, rows * columns), constant(cluster, 128), out(cluster, rows * stride);
  cluster.write(in.data, std::as_bytes(std::span(x)));
  cluster.write(constant.data, std::as_bytes(std::span(bias)));
  // Infinities in the pads: taken for values, they would show.
  constexpr std::uint64_t k_infinities = 0x7F800000'7F800000;
  const StreamShape shape{.op = "row add",
                          .items = rows,
                          .inputs = {{"x", 4 * columns, 256, 0, k_infinities}},
                          .outputs = {{"y", 4 * columns, 256, 4 * stride}},
                          .constants = {{"bias", 512}},
                          .in_place = in_place};
  const sim::Kernel add_blocks = cluster.load(program("add"), "add_f32"), fill = cluster.load(program("fill_am"));
  const auto row_add = [&](sim::Dsp& dsp, const StreamTile& tile) {
    const std::int64_t bytes = whole_blocks(tile.items * 256);
    if (!in_place) {
      dsp.call(fill, {tile.outputs[0], bytes, 0});
      dsp.call(add_blocks, {tile.outputs[0], tile.inputs[0], bytes});
    }
    for (std::int64_t block = 0; block < bytes; block += 512)
      dsp.call(add_blocks, {tile.outputs[0] + block, tile.constants[0], 512});
  };
  expect_clean(cluster.launch(
      stream(cluster, plan_stream(shape, 3, machine()), {{in.data}, {out.data}, {constant.data}}, row_add)));
  const std::vector<float> y = out.read(cluster);
  for (std::int64_t i = 0; i < rows * stride; ++i) {
    const std::int64_t row = i / stride, column = i % stride;
    const float expected = column < columns ? x[row * columns + column] + bias[column] : k_guard_value;
    if (y[i] != expected) FAIL_CHECK(fmt::format("row {} column {}: {} and not {}", row, column, y[i], expected));
  }
}

TEST_CASE("a microkernel has scratch, zero at first, and constants padded as far as it reads", "[stream]") {
  const std::int64_t rows = 50, columns = 128, pitch = 4 * columns;
  const std::vector<float> x = random_matrix(rows, columns, 7), few = random_matrix(1, 35, 8);
  sim::Cluster& cluster = fresh(k_functional);
  const Area in(cluster, rows * columns), constant(cluster, 35), out(cluster, rows * columns);
  cluster.write(in.data, std::as_bytes(std::span(x)));
  cluster.write(constant.data, std::as_bytes(std::span(few)));
  constexpr std::uint64_t k_ones = 0x3F800000'3F800000, k_twos = 0x40000000'40000000;
  const StreamShape shape{.op = "sum",
                          .items = rows,
                          .inputs = {{"x", pitch}},
                          .outputs = {{"y", pitch}},
                          .constants = {{"few", 4 * 35, k_twos, 2 * pitch}},
                          .scratch_bytes = pitch,
                          .scratch_item_bytes = pitch};
  const sim::Kernel add_blocks = cluster.load(program("add"), "add_f32"), fill = cluster.load(program("fill_am"));
  const auto sum = [&](sim::Dsp& dsp, const StreamTile& tile) {
    dsp.call(fill, {tile.scratch_items, tile.items * pitch, k_ones});
    dsp.call(fill, {tile.outputs[0], tile.items * pitch, 0});
    dsp.call(add_blocks, {tile.outputs[0], tile.inputs[0], tile.items * pitch});
    dsp.call(add_blocks, {tile.outputs[0], tile.scratch_items, tile.items * pitch});
    for (std::int64_t row = 0; row < tile.items; ++row) {
      dsp.call(add_blocks, {tile.outputs[0] + row * pitch, tile.constants[0] + pitch, pitch});
      dsp.call(add_blocks, {tile.outputs[0] + row * pitch, tile.scratch, pitch});
    }
  };
  expect_clean(
      cluster.launch(stream(cluster, plan_stream(shape, 2, machine()), {{in.data}, {out.data}, {constant.data}}, sum)));
  const std::vector<float> y = out.read(cluster);
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(same_bits(y[i], x[i] + 1 + 2));
}

TEST_CASE("a tile that does not fit AM is refused with the bytes and what to do", "[stream]") {
  const StreamShape shape{.op = "scale", .items = 1000, .inputs = {{"x", 4096}}, .outputs = {{"y", 4096}}};
  CHECK(complaint({.op = "scale", .items = 10'000, .inputs = {{"x", 4096}}, .outputs = {{"y", 4096}}}, 64) ==
        "scale: buffers for tiles of 64 items need 1048576 bytes of AM, 786432 available; use a smaller tile");
  CHECK(complaint({.op = "scale", .items = 1000, .inputs = {{"x", 1 << 20}}, .outputs = {{"y", 1 << 20}}}, 0) ==
        "scale: buffers for tiles of 1 items need 4194304 bytes of AM, 786432 available; an item is too long: "
        "cut it to 18 % of its length");
  CHECK(complaint(shape, 0) == "no complaint");
  CHECK(complaint(shape, 0, machine({"dma.channels=3"})) ==
        "scale needs 4 DMA channels, the machine has 3 (dma.channels)");
}

TEST_CASE("a stream of additions is limited by the DDR, not by its program", "[stream]") {
  const DType dtype = GENERATE(DType::f32, DType::f16);
  const std::int64_t elements = 4'000'000;
  sim::Cluster& cluster = fresh({sim::Depth::timing});
  const StreamPlan plan = plan_add(elements, dtype, 0, machine());
  const std::int64_t bytes = elements * bytes_of(dtype);
  const AddOperands operands{cluster.ddr_malloc(bytes), cluster.ddr_malloc(bytes), cluster.ddr_malloc(bytes)};
  const std::int64_t cycles = cluster.launch(add(cluster, plan, dtype, operands)).cycles;
  const sim::MachineConfig config = machine();
  const double running = static_cast<double>(cycles) - config.cluster.launch_us * config.cycles_per_us();
  const double least = plan.ideal_bytes() / config.bytes_per_cycle(config.ddr.bandwidth_gb_s);
  INFO(least / running);
  CHECK(least / running >= 0.95);
}

TEST_CASE("gather copies the rows its ids name, repeated ones too, and refuses an id that is no row", "[gather]") {
  constexpr std::int64_t k_columns = 33, k_vocabulary = 50;
  sim::Cluster& cluster = fresh(k_functional);
  const std::vector<float> values = random_matrix(k_vocabulary, k_columns, 7);
  const Area table(cluster, k_vocabulary * k_columns), out(cluster, 61 * k_columns);
  cluster.write(table.data, std::as_bytes(std::span(values)));
  GatherOperands operands{table.data, out.data, {}};
  for (std::int32_t i = 0; i < 61; ++i) operands.ids.push_back(i * 13 % 50);
  operands.ids[60] = operands.ids[59] = 49;
  expect_clean(cluster.launch(gather(cluster, 4 * k_columns, k_vocabulary, operands)));
  const std::vector<float> y = out.read(cluster);
  for (std::int64_t row = 0; row < 61; ++row) {
    const auto from = values.begin() + operands.ids[static_cast<std::size_t>(row)] * k_columns;
    CHECK(std::equal(from, from + k_columns, y.begin() + row * k_columns));
  }
  operands.ids[3] = 50;
  CHECK_THROWS_WITH(gather(cluster, 4 * k_columns, k_vocabulary, operands),
                    "gather: id 50 at 3 is no row of the table, which has 50");
  operands.ids[3] = -1;
  CHECK_THROWS_AS(gather(cluster, 4 * k_columns, k_vocabulary, operands), KernelError);
}

}  // namespace mtsim::kernels
