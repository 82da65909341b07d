// SPDX-License-Identifier: Apache-2.0
// Memory that is given back while the process or a launch goes on: a core's between two operators, the host's between
// two iterations; files as part of the DDR; what a program reads of its own counters.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "hazard_bench.h"
#include "sim/observer.h"

using namespace hazard;

namespace {

/// Priorities that transfers were asked for with.
class Priorities : public Observer {
 public:
  void issued(const Issue& issue) override { seen.push_back(issue.priority); }
  std::vector<int> seen;
};

std::size_t index(Space space) { return static_cast<std::size_t>(space); }

/// A file that goes with its object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::vector<std::byte>& content) {
    std::string name = "/tmp/mtsim-map-XXXXXX";
    m_descriptor = mkstemp(name.data());
    REQUIRE(m_descriptor >= 0);
    unlink(name.c_str());
    REQUIRE(::write(m_descriptor, content.data(), content.size()) == std::ssize(content));
  }
  ~TemporaryFile() { close(m_descriptor); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  int descriptor() const { return m_descriptor; }
  std::vector<std::byte> content(std::size_t bytes) const {
    std::vector<std::byte> data(bytes);
    REQUIRE(pread(m_descriptor, data.data(), bytes, 0) == static_cast<ssize_t>(bytes));
    return data;
  }

 private:
  int m_descriptor = -1;
};

std::vector<std::byte> part(const std::vector<std::byte>& data, std::int64_t first, std::int64_t bytes) {
  return {data.begin() + first, data.begin() + first + bytes};
}

}  // namespace

TEST_CASE("after free_all a core's memory is there again, and the report has the most it had", "[free_all]") {
  Cluster& cluster = fresh();
  const LaunchResult result = cluster.launch(
      [](Dsp& dsp) {
        const Pointer whole = dsp.vector_malloc(786432);
        dsp.scalar_malloc(1024);
        CHECK(cycles_of(dsp, [&] { dsp.free_all(); }) == k_verb);
        CHECK(dsp.vector_malloc(786432) == whole);
        dsp.free_all();
        CHECK(dsp.vector_malloc(256) == whole);
        dsp.scalar_malloc(65536);
        dsp.free_all();
        dsp.free_all();  // of nothing
        CHECK(dsp.scalar_malloc(256).offset == 0);
      },
      2);
  for (const CoreReport& core : {result.cores[0], result.cores[1]}) {
    CHECK(core.am_bytes == 786432);
    CHECK(core.sm_bytes == 65536);
  }
  CHECK_THAT(refusal(cluster,
                     [](Dsp& dsp) {
                       dsp.vector_malloc(4096);
                       dsp.free_all();
                       dsp.vector_malloc(786433);
                     }),
             Catch::Contains("vector_malloc: 786433 bytes asked, 786432 of 786432 free"));
}

TEST_CASE("free_all is refused while a transfer was not waited for, and names it", "[free_all]") {
  Cluster& cluster = fresh();
  const auto program = [](std::int64_t work) {
    return [work](Dsp& dsp) {
      const Pointer x = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      dsp.raw_dma_p2p(k_ddr_start, row(k_bytes), x, row(k_bytes), 1, 5);
      dsp.scalar_work(work);
      dsp.free_all();
    };
  };
  for (const std::int64_t work : {0, 1'000'000}) {  // complete is not enough: the program does not know it
    const std::string message = refusal(cluster, program(work));
    CHECK_THAT(message, Catch::Contains("free_all: wait for all transfers first; channel 5: "));
    CHECK_THAT(message, Catch::Contains("1024 bytes"));
  }
  cluster.launch(
      [](Dsp& dsp) {
        const int channel = load_am(dsp, dsp.vector_malloc(k_bytes));
        while (!dsp.dma_query(channel)) dsp.scalar_work(10);
        dsp.free_all();  // who polls needs no wait
      },
      1);
}

TEST_CASE("free_all sets the priority of transfers back", "[free_all]") {
  Priorities priorities;
  Cluster& cluster = fresh({.observer = &priorities});
  cluster.launch(
      [](Dsp& dsp) {
        const auto load = [&] { dsp.dma_wait(load_am(dsp, dsp.vector_malloc(k_bytes))); };
        load();
        dsp.set_priority(3);
        load();
        dsp.free_all();
        load();
      },
      1);
  CHECK(priorities.seen == std::vector<int>{1, 3, 1});
}

TEST_CASE("operators with a free_all in between do not race for the memory they had", "[free_all][hazard]") {
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {
          for (const std::int64_t shift : {0, 256, 512}) {  // other buffers each time
            if (shift > 0) dsp.vector_malloc(shift);
            const Pointer y = dsp.vector_malloc(k_bytes), x = dsp.vector_malloc(k_bytes);
            dsp.dma_wait(load_am(dsp, x));
            copy_am(dsp, copy, x, y);
            dsp.dma_wait(dsp.dma_p2p(y, row(k_bytes), k_ddr_start + (65536 + shift * 4), row(k_bytes)));
            dsp.free_all();
          }
        }) == k_clean);
  // The same line allocates more than before: nothing of the old allocation is left.
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {
          for (const std::int64_t bytes : {k_bytes, 2 * k_bytes, k_bytes}) {
            const Pointer x = dsp.vector_malloc(bytes), y = dsp.vector_malloc(k_bytes);
            dsp.dma_wait(dsp.dma_p2p(k_ddr_start, row(bytes), x, row(bytes)));
            copy_am(dsp, copy, x + (bytes - k_bytes), y);
            dsp.free_all();
          }
        }) == k_clean);
}

TEST_CASE("what an operator left in a core's memory is not the next one's", "[free_all][hazard]") {
  const auto body = [](bool frees) {
    return [frees](Dsp& dsp, const Kernel& copy) {
      Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      if (frees) {
        dsp.free_all();
        x = dsp.vector_malloc(k_bytes);
        y = dsp.vector_malloc(k_bytes);
      }
      copy_am(dsp, copy, x, y);
    };
  };
  CHECK(kinds(body(false)) == k_clean);
  CHECK(kinds(body(true)) == Kinds{"never-written"});
}

TEST_CASE("free_all is no meeting: a race between cores is found across it", "[free_all][hazard][cores]") {
  const auto body = [](Pointer shared, bool meets) {
    return [shared, meets](Dsp& dsp, const Kernel&) {
      if (dsp.thread_id() == 0) {
        const Pointer x = dsp.vector_malloc(k_bytes);
        dsp.dma_wait(load_am(dsp, x));
        dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), shared, row(k_bytes)));
      }
      dsp.free_all();
      if (meets) dsp.group_barrier(0);
      if (dsp.thread_id() == 1) dsp.dma_wait(load_am(dsp, dsp.vector_malloc(k_bytes), shared));
      dsp.free_all();
    };
  };
  for (const Pointer shared : {k_gsm_start, k_ddr_start + 65536}) {
    INFO(shared.str());
    CHECK(kinds(body(shared, false), 2) == Kinds{"read-before-complete"});
    CHECK(kinds(body(shared, true), 2) == k_clean);
  }
  const auto writers = [](bool meets) {
    return [meets](Dsp& dsp, const Kernel&) {
      for (int turn = 0; turn < 2; ++turn) {
        if (dsp.thread_id() == turn) {
          const Pointer x = dsp.vector_malloc(k_bytes);
          dsp.dma_wait(load_am(dsp, x));
          dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_gsm_start, row(k_bytes)));
        }
        dsp.free_all();
        if (meets) dsp.group_barrier(0);
      }
    };
  };
  CHECK(kinds(writers(false), 2) == Kinds{"unordered-writes"});
  CHECK(kinds(writers(true), 2) == k_clean);
}

TEST_CASE("what the host allocated behind a mark is there again after release", "[release]") {
  Cluster& cluster = fresh();
  const Pointer kept = cluster.ddr_malloc(1000);
  cluster.write(kept, numbers(1000));
  const Cluster::Allocations mark = cluster.allocations();
  CHECK(mark.ddr == 1024);
  CHECK(mark.gsm == 0);
  for (int turn = 0; turn < 2; ++turn) {
    CHECK(cluster.ddr_malloc((std::int64_t{20} << 30) - 1024).offset == 1024);  // all there is
    CHECK(cluster.gsm_malloc(6 << 20).offset == 0);
    CHECK_THROWS_WITH(cluster.gsm_malloc(1), Catch::Contains("0 of 6291456 free"));
    cluster.release(mark);
    CHECK(cluster.allocations().ddr == mark.ddr);
    CHECK(cluster.allocations().gsm == 0);
  }
  CHECK(read(cluster, kept, 1000) == numbers(1000));
  const Cluster::Allocations later{1 << 20, 1 << 20};
  cluster.release(later);  // of nothing
  CHECK(cluster.allocations().ddr == mark.ddr);
  CHECK_THAT(refusal(cluster, [&](Dsp&) { cluster.release(mark); }), Catch::Contains("release: a launch is running"));
}

TEST_CASE("the hazard monitor knows an allocation from the one before in its place", "[release][hazard]") {
  const bool in_gsm = GENERATE(true, false);
  Cluster& cluster = fresh();
  const auto allocate = [&](std::int64_t bytes) {
    return in_gsm ? cluster.gsm_malloc(bytes) : cluster.ddr_malloc(bytes);
  };
  const Pointer result = cluster.ddr_malloc(k_bytes);
  const Cluster::Allocations mark = cluster.allocations();
  const auto read_by_program = [&](Pointer from) {
    return cluster
        .launch(
            [=](Dsp& dsp) {
              const Pointer x = dsp.vector_malloc(k_bytes);
              dsp.dma_wait(load_am(dsp, x, from));
              dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), result, row(k_bytes)));
            },
            1)
        .findings;
  };
  // Never written, then written: no memory of the old one.
  allocate(4 * k_bytes);
  cluster.release(mark);
  const Pointer written = allocate(2 * k_bytes);
  cluster.write(written, numbers(2 * k_bytes));
  CHECK(kinds(read_by_program(written + k_bytes)) == k_clean);
  // Written, then never written.
  cluster.release(mark);
  const Pointer empty = allocate(3 * k_bytes);
  REQUIRE(empty == written);
  const std::vector<Finding> findings = read_by_program(empty + k_bytes);
  REQUIRE(kinds(findings) == Kinds{"never-written"});
  CHECK_THAT(findings[0].message, Catch::Contains("3072"));  // the allocation it names is the new one
  // Past the end of a smaller one lies nothing that was allocated.
  cluster.release(mark);
  const Pointer small = allocate(k_bytes);
  cluster.write(small, numbers(k_bytes));
  CHECK(kinds(read_by_program(small)) == k_clean);
}

TEST_CASE("a file's bytes are in the DDR at any offset, and writes there stay out of it", "[map]") {
  const std::vector<std::byte> content = numbers(20000);
  const TemporaryFile file(content);
  Cluster& cluster = fresh();
  const Pointer before = cluster.ddr_malloc(100);
  cluster.write(before, numbers(100));
  struct Part {
    std::int64_t offset, bytes;
    Pointer at;
  };
  std::vector<Part> parts{{0, 1, {}},       {0, 20000, {}},   {4095, 2, {}},
                          {4096, 4096, {}}, {5001, 9000, {}}, {19999, 1, {}}};
  for (Part& part : parts) {
    part.at = cluster.ddr_map(file.descriptor(), part.offset, part.bytes);
    CHECK(part.at.offset % 256 == static_cast<std::uint64_t>(part.offset % 256));
  }
  const Pointer behind = cluster.ddr_malloc(100);
  cluster.write(behind, numbers(100));
  for (const Part& p : parts)
    CHECK(read(cluster, p.at, static_cast<std::size_t>(p.bytes)) == part(content, p.offset, p.bytes));
  CHECK(read(cluster, before, 100) == numbers(100));

  // By the host and by a program, over the end of a page.
  cluster.write(parts[1].at + 100, std::vector<std::byte>(50, std::byte{0xAA}));
  const LaunchResult result = cluster.launch(
      [&](Dsp& dsp) {
        const Pointer x = dsp.vector_malloc(k_bytes);
        dsp.dma_wait(load_am(dsp, x, parts[4].at));
        dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), parts[1].at + 7900, row(k_bytes)));
      },
      1);
  CHECK(kinds(result.findings) == k_clean);
  std::vector<std::byte> expected = content;
  std::fill_n(expected.begin() + 100, 50, std::byte{0xAA});
  std::copy_n(content.begin() + 5001, k_bytes, expected.begin() + 7900);
  CHECK(read(cluster, parts[1].at, 20000) == expected);
  CHECK(read(cluster, parts[4].at, 9000) == part(content, 5001, 9000));  // the same pages of the file, mapped apart
  CHECK(file.content(20000) == content);
  CHECK(read(cluster, behind, 100) == numbers(100));

  cluster.reset();
  for (const Part& part : parts)
    CHECK(read(cluster, part.at, static_cast<std::size_t>(part.bytes)) ==
          std::vector<std::byte>(static_cast<std::size_t>(part.bytes)));
  CHECK(file.content(20000) == content);
}

TEST_CASE("mapped memory is released as other memory is", "[map][release]") {
  const std::vector<std::byte> content = numbers(20000);
  const TemporaryFile file(content);
  Cluster& cluster = fresh();
  const Cluster::Allocations mark = cluster.allocations();
  cluster.ddr_map(file.descriptor(), 4097, 10000);
  cluster.release(mark);
  CHECK(cluster.allocations().ddr == mark.ddr);
  const Pointer plain = cluster.ddr_malloc(20000);
  cluster.write(plain, std::vector<std::byte>(20000, std::byte{1}));
  CHECK(file.content(20000) == content);
  cluster.release(mark);
  const Pointer again = cluster.ddr_map(file.descriptor(), 0, 20000);
  CHECK(read(cluster, again, 20000) == content);
}

TEST_CASE("a file that cannot be mapped is refused, in functional depth alone", "[map]") {
  CHECK_THROWS_WITH(fresh().ddr_map(-1, 0, 4096), Catch::Contains("cannot map 4096 bytes of a file"));
  Cluster& timing = fresh({.depth = Depth::timing});
  const Pointer first = timing.ddr_map(-1, 5, 4096), second = timing.ddr_map(-1, 5, 4096);  // no byte is read
  CHECK(second.offset >= first.offset + 4096);
}

TEST_CASE("a program reads its counters at no cost, and they end as the launch reports them", "[counters]") {
  const Depth depth = GENERATE(Depth::functional, Depth::timing);
  Cluster& cluster = fresh({.depth = depth});
  const Kernel copy = load(cluster, k_copy_kernel);
  std::vector<CoreReport> last(2);
  PathBytes moved;
  const LaunchResult result = cluster.launch(
      [&](Dsp& dsp) {
        const auto core = static_cast<std::size_t>(dsp.thread_id());
        const auto check = [&](std::int64_t calls) {
          CHECK(dsp.counters().total() == dsp.now());
          CHECK(dsp.counters().kernel_calls == calls);
        };
        check(0);
        CHECK(cycles_of(dsp, [&] { dsp.counters(), dsp.moved(); }) == 0);
        const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
        dsp.dma_wait(load_am(dsp, x));
        check(0);
        CHECK(of(dsp.counters(), CycleClass::dma_wait) > 0);
        copy_am(dsp, copy, x, y);
        check(1);
        dsp.group_barrier(0);
        check(1);
        CHECK(dsp.moved().read[index(Space::ddr)][index(Space::am)] == 2 * k_bytes);  // both cores'
        if (core == 1) {
          dsp.dma_wait(dsp.dma_p2p(y, row(k_bytes), k_gsm_start, row(k_bytes)));
          moved = dsp.moved();
        }
        dsp.free_all();
        check(1);
        CHECK(dsp.counters().am_bytes == 2 * k_bytes);
        last[core] = dsp.counters();
      },
      2);
  for (std::size_t core = 0; core < 2; ++core) {
    CHECK(last[core].packets == result.cores[core].packets);
    CHECK(last[core].instructions == result.cores[core].instructions);
    CHECK(last[core].kernel_calls == result.cores[core].kernel_calls);
    CHECK(last[core].units == result.cores[core].units);
  }
  CHECK(moved.read == result.bytes.read);
  CHECK(moved.written == result.bytes.written);
  CHECK(moved.written[index(Space::am)][index(Space::gsm)] == k_bytes);
  CHECK(last[1].cycles == result.cores[1].cycles);  // the one that ends last has no idle tail
}
