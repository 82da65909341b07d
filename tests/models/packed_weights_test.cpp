// SPDX-License-Identifier: Apache-2.0
#include "models/packed_weights.h"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "models/convert.h"
#include "tests/models/support.h"

using namespace mtsim::models;
using namespace mtsim::models::test;

namespace {

/// A cache folder of this test's own.
class Cache {
 public:
  Cache() { ::setenv("MTSIM_MODEL_CACHE", m_folder.path("cache").c_str(), 1); }
  ~Cache() { ::unsetenv("MTSIM_MODEL_CACHE"); }
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(m_folder.path("cache")))
      names.push_back(entry.path().filename().string());
    return names;
  }
  const Folder& folder() const { return m_folder; }

 private:
  Folder m_folder;
};

template <class T>
T at(const MatrixView& view, std::int64_t row, std::int64_t column) {
  T value;
  std::memcpy(&value, view.data + (row * view.row_elements + column) * static_cast<std::int64_t>(sizeof value),
              sizeof value);
  return value;
}

const std::vector<PackedMatrix> k_matrices = {
    {{{Role::q, 1}, {Role::k, 1}, {Role::v, 1}}, true, 0},
    {{{Role::down, 0}}, false, 80},
    {{{Role::gate, 0}, {Role::up, 0}}, false, 0},
    {{{Role::attn_norm, 1}}, false, 0},
};

}  // namespace

TEST_CASE("matrices are packed as asked: joined, transposed, padded, narrowed", "[packed]") {
  const Cache cache;
  const auto checkpoint = Checkpoint::open(make_small_model(cache.folder()));
  PackedWeights weights(checkpoint, ElementType::f16, k_matrices);
  const auto& qkv = weights.matrix(0);
  CHECK(qkv.rows == 32);
  CHECK(qkv.columns == 64);  // 32 of Q, 16 of K, 16 of V
  CHECK_FALSE(qkv.borrowed);
  for (std::int64_t in = 0; in < 32; ++in) {
    CHECK(at<std::uint16_t>(qkv, in, 5) ==
          f32_to_f16(row(checkpoint.tensor(Role::q, 1), 5)[static_cast<std::size_t>(in)]));
    CHECK(at<std::uint16_t>(qkv, in, 32 + 15) ==
          f32_to_f16(row(checkpoint.tensor(Role::k, 1), 15)[static_cast<std::size_t>(in)]));
    CHECK(at<std::uint16_t>(qkv, in, 48) ==
          f32_to_f16(row(checkpoint.tensor(Role::v, 1), 0)[static_cast<std::size_t>(in)]));
  }
  const auto& down = weights.matrix(1);
  CHECK(down.rows == 32);
  CHECK(down.columns == 64);
  CHECK(down.row_elements == 80);
  for (std::int64_t in = 0; in < 80; ++in)
    CHECK(at<std::uint16_t>(down, 31, in) ==
          (in < 64 ? f32_to_f16(row(checkpoint.tensor(Role::down, 0), 31)[static_cast<std::size_t>(in)]) : 0));
  const auto& gate_up = weights.matrix(2);
  CHECK(gate_up.rows == 128);
  CHECK(at<std::uint16_t>(gate_up, 64, 3) == f32_to_f16(row(checkpoint.tensor(Role::up, 0), 0)[3]));
  const auto& norm = weights.matrix(3);
  CHECK(norm.rows == 1);
  CHECK(norm.columns == 32);
  CHECK(at<std::uint16_t>(norm, 0, 31) == f32_to_f16(row(checkpoint.tensor(Role::attn_norm, 1), 0)[31]));
  CHECK(reinterpret_cast<std::uintptr_t>(norm.data) % 4096 == 0);
}

TEST_CASE("what lies as asked is borrowed, and no cache is made for it", "[packed]") {
  const Cache cache;
  const auto checkpoint =
      Checkpoint::open(make_small_model(cache.folder(), [](RandomModel& model) { model.type = ElementType::f32; }));
  PackedWeights weights(checkpoint, ElementType::f32,
                        {{{{Role::down, 0}}, false, 0}, {{{Role::final_norm, 0}}, true, 32}});
  CHECK(weights.matrix(0).borrowed);
  CHECK(weights.matrix(1).borrowed);
  CHECK(static_cast<const void*>(weights.matrix(0).data) ==
        static_cast<const void*>(checkpoint.tensor(Role::down, 0).bytes.data()));
  CHECK_FALSE(weights.cache());
  CHECK_FALSE(std::filesystem::exists(cache.folder().path("cache")));
}

TEST_CASE("a borrowed weight that is no number is found when its matrix is asked for", "[packed]") {
  const Cache cache;
  const std::string model =
      make_small_model(cache.folder(), [](RandomModel& random) { random.type = ElementType::f32; });
  change_safetensors(model + "/model.safetensors", [&](Json& header, std::string& data) {
    const auto begin = header["model.norm.weight"]["data_offsets"][0].get<std::size_t>();
    std::memset(&data[begin + 8], 0xFF, 4);
  });
  const auto checkpoint = Checkpoint::open(model);
  PackedWeights weights(checkpoint, ElementType::f32, {{{{Role::final_norm, 0}}, false, 0}});
  CHECK(error_of([&] { weights.matrix(0); }).find("tensor 'model.norm.weight': element [2] is ") != std::string::npos);
}

TEST_CASE("the cache serves until the checkpoint or the wish changes", "[packed]") {
  const Cache cache;
  const std::string model = make_small_model(cache.folder());
  int packed = 0;
  const auto pack = [&](ElementType type, const std::vector<PackedMatrix>& matrices) {
    const auto checkpoint = Checkpoint::open(model);
    const int before = packed;
    PackedWeights weights(checkpoint, type, matrices,
                          [&](std::uint64_t done, std::uint64_t all) { packed += done == all ? 1 : 0; });
    return packed > before;
  };
  CHECK(pack(ElementType::f16, k_matrices));
  CHECK_FALSE(pack(ElementType::f16, k_matrices));
  CHECK(cache.files().size() == 1);
  CHECK(pack(ElementType::f32, k_matrices));
  CHECK(cache.files().size() == 2);
  auto other = k_matrices;
  other[1].row_elements = 96;
  CHECK(pack(ElementType::f16, other));  // in the place of the first
  CHECK(cache.files().size() == 2);
  CHECK(pack(ElementType::f16, k_matrices));
  const auto file = std::filesystem::path(model) / "model.safetensors";
  std::filesystem::last_write_time(file, std::filesystem::last_write_time(file) + std::chrono::seconds(1));
  CHECK(pack(ElementType::f16, k_matrices));
  // One that is cut short is made again.
  for (const auto& name : cache.files()) {
    const auto path = cache.folder().path("cache/" + name);
    std::filesystem::resize_file(path, std::filesystem::file_size(path) - 4096);
  }
  CHECK(pack(ElementType::f16, k_matrices));
  CHECK_FALSE(pack(ElementType::f16, k_matrices));
}

TEST_CASE("a weight that is no number leaves no cache behind", "[packed]") {
  const Cache cache;
  const std::string model = make_small_model(cache.folder());
  change_safetensors(model + "/model.safetensors", [&](Json& header, std::string& data) {
    const auto begin = header["model.layers.1.self_attn.v_proj.weight"]["data_offsets"][0].get<std::size_t>();
    std::memset(&data[begin + 2 * (3 * 32 + 1)], 0xFF, 2);
  });
  const auto checkpoint = Checkpoint::open(model);
  CHECK(error_of([&] {
          PackedWeights(checkpoint, ElementType::f16, k_matrices);
        }).find("v_proj.weight': element [3, 1] is ") != std::string::npos);
  CHECK(cache.files().empty());
}

TEST_CASE("processes that want the same cache at once make it once", "[packed]") {
  const Cache cache;
  const std::string model =
      make_small_model(cache.folder(), [](RandomModel& random) { random.config.vocab_size = 20000; });
  const std::vector<PackedMatrix> matrices = {{{{Role::head, 0}}, true, 0}};
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      bool packed = false;
      try {
        const auto checkpoint = Checkpoint::open(model);
        PackedWeights weights(checkpoint, ElementType::f16, matrices,
                              [&](std::uint64_t, std::uint64_t) { packed = true; });
        const bool right = at<std::uint16_t>(weights.matrix(0), 31, 19999) ==
                           f32_to_f16(row(checkpoint.tensor(Role::head), 19999)[31]);
        ::_exit(right ? (packed ? 1 : 0) : 2);
      } catch (...) {
        ::_exit(3);
      }
    }
    children.push_back(child);
  }
  int packed = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) <= 1);
    packed += WEXITSTATUS(status);
  }
  CHECK(packed == 1);
  CHECK(cache.files().size() == 1);
}

TEST_CASE("a cache that cannot be written is an error that says where else", "[packed]") {
  const Folder folder;
  const auto checkpoint = Checkpoint::open(make_small_model(folder));
  folder.write("file", "x");
  ::setenv("MTSIM_MODEL_CACHE", folder.path("file/cache").c_str(), 1);
  const auto error = error_of([&] { PackedWeights(checkpoint, ElementType::f16, k_matrices); });
  ::unsetenv("MTSIM_MODEL_CACHE");
  CHECK(error.find("set MTSIM_MODEL_CACHE to another") != std::string::npos);
}
