// SPDX-License-Identifier: Apache-2.0
// Races of small DSP programs, each beside the program that does it right. Every verdict is asked for in both depths
// and on machines whose DMA is ten times slower and faster: it must not depend on either.
#include <catch2/catch.hpp>

#include <optional>

#include "zone_bench.h"

using namespace mtsim::sim;

namespace {

constexpr Pointer k_ddr_start{Space::ddr, -1, 0};
constexpr Pointer k_gsm_start{Space::gsm, -1, 0};
constexpr std::int64_t k_bytes = 1024;  // of a buffer
constexpr std::int64_t k_vectors = k_bytes / 128;

MachineConfig with_dma_times(double factor) {
  MachineConfig machine = bench_machine();
  machine.dma.start_us *= factor;
  machine.dma.broadcast_rendezvous_us *= factor;
  machine.cluster.barrier_us *= factor;
  machine.ddr.bandwidth_gb_s /= factor;
  machine.cluster.gsm_bandwidth_gb_s /= factor;
  machine.cluster.port_bandwidth_gb_s /= factor;
  return machine;
}

/// What does not depend on when things happened.
std::string summary(const Finding& finding) {
  std::string text = finding.kind;
  for (const FindingEnd& end : finding.ends) {
    text += "\n  " + end.str();
  }
  return text + "\n  missing: " + finding.missing_edge + "\n  times: " + std::to_string(finding.count);
}

using Body = std::function<void(Dsp&, const Kernel& copy)>;

/// The findings of `body`, the same in all circumstances.
LaunchResult judged(const Body& body, int cores = 1) {
  std::optional<LaunchResult> first;
  std::vector<std::string> expected;
  for (const Depth depth : {Depth::functional, Depth::timing}) {
    for (const double factor : {1.0, 0.1, 10.0}) {
      Cluster& cluster = fresh({.depth = depth}, with_dma_times(factor));
      const Kernel copy = load(cluster, k_copy_kernel);
      LaunchResult result = cluster.launch([&](Dsp& dsp) { body(dsp, copy); }, cores);
      REQUIRE_FALSE(result.fault);
      std::vector<std::string> found;
      for (const auto* list : {&result.findings, &result.notes}) {
        for (const Finding& finding : *list) found.push_back(summary(finding));
      }
      if (!first) {
        first = std::move(result);
        expected = found;
      }
      INFO("DMA times scaled by " << factor << (depth == Depth::timing ? ", timing" : ", functional"));
      CHECK(found == expected);
    }
  }
  return *first;
}

std::vector<std::string> kinds(const std::vector<Finding>& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings) list.push_back(finding.kind);
  return list;
}

std::vector<std::string> kinds(const Body& body, int cores = 1) { return kinds(judged(body, cores).findings); }

using Kinds = std::vector<std::string>;
const Kinds k_clean = {};

/// Copies a buffer in AM that holds something; the scalar parameter is loaded and never used.
void copy_am(Dsp& dsp, const Kernel& copy, Pointer from, Pointer to) {
  dsp.call(copy, {from, to, Pointer{Space::sm, static_cast<std::int16_t>(dsp.thread_id()), 0}, k_vectors});
}

int load_am(Dsp& dsp, Pointer to, Pointer from = k_ddr_start) {
  return dsp.dma_p2p(from, row(k_bytes), to, row(k_bytes));
}

}  // namespace

TEST_CASE("a kernel that reads what a transfer still writes", "[hazard]") {
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          const int channel = load_am(dsp, x);
          copy_am(dsp, copy, x, y);
          dsp.dma_wait(channel);
        }) == Kinds{"read-before-complete"});
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          dsp.dma_wait(load_am(dsp, x));
          copy_am(dsp, copy, x, y);
        }) == k_clean);
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {  // polling is as good
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          const int channel = load_am(dsp, x);
          while (!dsp.dma_query(channel)) dsp.scalar_work(10);
          copy_am(dsp, copy, x, y);
        }) == k_clean);
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {  // long enough is not: nobody asked whether it is
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          const int channel = load_am(dsp, x);
          dsp.scalar_work(1'000'000);
          copy_am(dsp, copy, x, y);
          dsp.dma_wait(channel);
        }) == Kinds{"read-before-complete"});
}

TEST_CASE("a transfer that reads what another still writes", "[hazard]") {
  const auto body = [](bool wait) {
    return [wait](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes);
      const int in = load_am(dsp, x);
      if (wait) dsp.dma_wait(in);
      const int out = dsp.dma_p2p(x, row(k_bytes), k_ddr_start + 65536, row(k_bytes));
      if (!wait) dsp.dma_wait(in);
      dsp.dma_wait(out);
    };
  };
  CHECK(kinds(body(false)) == Kinds{"read-before-complete"});
  CHECK(kinds(body(true)) == k_clean);
}

TEST_CASE("a buffer that is overwritten while a transfer still reads it", "[hazard]") {
  const auto by_kernel = [](bool wait) {
    return [wait](Dsp& dsp, const Kernel& copy) {
      const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      copy_am(dsp, copy, x, y);
      const int out = dsp.dma_p2p(y, row(k_bytes), k_ddr_start + 65536, row(k_bytes));
      if (wait) dsp.dma_wait(out);
      copy_am(dsp, copy, x, y);
      if (!wait) dsp.dma_wait(out);
    };
  };
  CHECK(kinds(by_kernel(false)) == Kinds{"overwrite-in-use"});
  CHECK(kinds(by_kernel(true)) == k_clean);
  const auto by_transfer = [](std::int64_t apart) {
    return [apart](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes + apart);
      dsp.dma_wait(load_am(dsp, x));
      const int out = dsp.dma_p2p(x, row(k_bytes), k_ddr_start + 65536, row(k_bytes));
      const int in = load_am(dsp, x + apart);
      dsp.dma_wait(in);
      dsp.dma_wait(out);
    };
  };
  CHECK(kinds(by_transfer(0)) == Kinds{"overwrite-in-use"});
  CHECK(kinds(by_transfer(k_bytes - 1)) == Kinds{"overwrite-in-use"});
  CHECK(kinds(by_transfer(k_bytes)) == k_clean);
}

TEST_CASE("two writes that nothing orders", "[hazard]") {
  const auto body = [](bool wait) {
    return [wait](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes);
      const int first = load_am(dsp, x);
      if (wait) dsp.dma_wait(first);
      const int second = load_am(dsp, x + k_bytes / 2, k_ddr_start + 4096);
      dsp.dma_wait(second);
      if (!wait) dsp.dma_wait(first);
    };
  };
  // x + k_bytes / 2 reaches beyond the buffer, where nothing else lies.
  CHECK(kinds(body(false)) == Kinds{"unordered-writes"});
  CHECK(kinds(body(true)) == k_clean);
}

TEST_CASE("bytes that nobody wrote, used by a kernel, moved, or left in the DDR", "[hazard]") {
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          copy_am(dsp, copy, x, y);
        }) == Kinds{"never-written"});
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {  // what the kernel wrote may be read
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes), z = dsp.vector_malloc(k_bytes);
          dsp.dma_wait(load_am(dsp, x));
          copy_am(dsp, copy, x, y);
          copy_am(dsp, copy, y, z);
        }) == k_clean);
  CHECK(kinds([](Dsp& dsp, const Kernel&) {
          const Pointer x = dsp.vector_malloc(k_bytes);
          dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_ddr_start, row(k_bytes)));
        }) == Kinds{"never-written"});
  // A pipeline's first turn stores what it does not have yet: nobody sees it.
  CHECK(kinds([](Dsp& dsp, const Kernel&) {
          const Pointer x = dsp.vector_malloc(k_bytes);
          for (int turn = 0; turn < 2; ++turn) {
            dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_ddr_start + 65536, row(k_bytes)));
            dsp.dma_wait(load_am(dsp, x));
          }
        }) == k_clean);
  // A first transfer only there so that the loop's wait has something to wait for.
  CHECK(kinds([](Dsp& dsp, const Kernel& copy) {
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          int channel = load_am(dsp, x, k_ddr_start + 65536);
          for (int turn = 0; turn < 2; ++turn) {
            dsp.dma_wait(channel);
            channel = load_am(dsp, x);
          }
          dsp.dma_wait(channel);
          copy_am(dsp, copy, x, y);
        }) == k_clean);
}

TEST_CASE("what the host allocates holds nothing until it writes", "[hazard]") {
  const auto findings = [](Depth depth, Space space, bool write) {
    Cluster& cluster = fresh({.depth = depth});
    const Pointer x = space == Space::ddr ? cluster.ddr_malloc(k_bytes) : cluster.gsm_malloc(k_bytes);
    const Pointer y = cluster.ddr_malloc(k_bytes);
    if (write) cluster.write(x, numbers(k_bytes));
    const LaunchResult result = cluster.launch(
        [&](Dsp& dsp) {
          const Pointer buffer = dsp.vector_malloc(k_bytes);
          dsp.dma_wait(load_am(dsp, buffer, x));
          dsp.dma_wait(dsp.dma_p2p(buffer, row(k_bytes), y, row(k_bytes)));
        },
        1);
    if (!result.findings.empty()) {
      CHECK_THAT(result.findings[0].message, Catch::Contains("_malloc") && Catch::Contains("let the host write"));
    }
    return kinds(result.findings);
  };
  for (const Depth depth : {Depth::functional, Depth::timing}) {
    for (const Space space : {Space::ddr, Space::gsm}) {
      CHECK(findings(depth, space, true) == k_clean);
      // In timing depth the host has nothing to write to the DDR.
      const bool counts_as_written = depth == Depth::timing && space == Space::ddr;
      CHECK(findings(depth, space, false) == (counts_as_written ? k_clean : Kinds{"never-written"}));
    }
  }
}

TEST_CASE("padding may hold nothing as long as only padding is made of it", "[hazard]") {
  const auto body = [](std::int64_t stored) {
    return [stored](Dsp& dsp, const Kernel& copy) {
      const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(dsp.dma_p2p(k_ddr_start, {8, 64, 0}, x, {8, 64, 64}));  // half of each vector
      copy_am(dsp, copy, x, y);
      dsp.dma_wait(dsp.dma_p2p(y, {8, stored, 128 - stored}, k_ddr_start + 65536, {8, stored, 0}));
    };
  };
  CHECK(kinds(body(64)) == k_clean);
  CHECK(kinds(body(66)) == Kinds{"never-written"});
}

TEST_CASE("a load whose value is never used is a note", "[hazard]") {
  const LaunchResult result = judged([](Dsp& dsp, const Kernel& copy) {
    const Pointer scale = dsp.scalar_malloc(256);
    const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
    dsp.dma_wait(load_am(dsp, x));
    const int channel = dsp.dma_p2p(k_ddr_start, row(64), scale, row(64));
    dsp.call(copy, {x, y, scale, k_vectors});
    dsp.dma_wait(channel);
  });
  CHECK(kinds(result.findings) == k_clean);
  REQUIRE(kinds(result.notes) == Kinds{"dead-over-read"});
  CHECK(result.notes[0].severity == Severity::note);
}

TEST_CASE("neighbouring tiles of one buffer may move while others are computed", "[hazard]") {
  const auto body = [](std::int64_t column) {  // 128 of each 256 bytes move while the other 128 are read
    return [column](Dsp& dsp, const Kernel& copy) {
      const Pointer x = dsp.vector_malloc(2 * k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(dsp.dma_p2p(k_ddr_start, row(2 * k_bytes), x, row(2 * k_bytes)));
      const int channel = dsp.dma_p2p(k_ddr_start, {8, 128, 0}, x + column, {8, 128, 128});
      for (int i = 0; i < 8; ++i) dsp.call(copy, {x + i * 256, y, Pointer{Space::sm, 0, 0}, 1});
      dsp.dma_wait(channel);
    };
  };
  CHECK(kinds(body(128)) == k_clean);
  CHECK(kinds(body(120)) == Kinds{"read-before-complete"});
}

TEST_CASE("cores need a meeting between a write and a read of the GSM", "[hazard][cores]") {
  enum Sync { none, barrier, barrier_before_wait };
  const auto body = [](Sync sync) {
    return [sync](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes);
      if (dsp.thread_id() == 0) {
        const int channel = dsp.dma_p2p(k_ddr_start, row(k_bytes), k_gsm_start, row(k_bytes));
        if (sync == barrier_before_wait) dsp.group_barrier(0);
        dsp.dma_wait(channel);
        if (sync == barrier) dsp.group_barrier(0);
      } else {
        if (sync != none) dsp.group_barrier(0);
        dsp.dma_wait(load_am(dsp, x, k_gsm_start));
      }
    };
  };
  CHECK(kinds(body(none), 2) == Kinds{"read-before-complete"});
  CHECK(kinds(body(barrier_before_wait), 2) == Kinds{"read-before-complete"});
  CHECK(kinds(body(barrier), 2) == k_clean);
  // The launch is a meeting too.
  CHECK(kinds(
            [](Dsp& dsp, const Kernel&) {
              const Pointer x = dsp.vector_malloc(k_bytes);
              dsp.dma_wait(load_am(dsp, x, k_gsm_start));
            },
            4) == k_clean);
}

TEST_CASE("never-written GSM that another core may write in time is a race, whoever comes first", "[hazard][cores]") {
  const auto kinds_of = [](double factor) {
    Cluster& cluster = fresh({}, with_dma_times(factor));
    const Pointer shared = cluster.gsm_malloc(k_bytes);
    return kinds(cluster
                     .launch(
                         [&](Dsp& dsp) {
                           const Pointer x = dsp.vector_malloc(k_bytes);
                           if (dsp.thread_id() == 0) {
                             dsp.scalar_work(2000);
                             dsp.dma_wait(dsp.dma_p2p(k_ddr_start, row(k_bytes), shared, row(k_bytes)));
                           } else {
                             for (int i = 0; i < 8; ++i) dsp.dma_wait(load_am(dsp, x));
                             dsp.dma_wait(load_am(dsp, x, shared));
                             dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_ddr_start + 65536, row(k_bytes)));
                           }
                         },
                         2)
                     .findings);
  };
  CHECK(kinds_of(0.1) == Kinds{"read-before-complete"});
  CHECK(kinds_of(10) == Kinds{"read-before-complete"});
}

TEST_CASE("cores that write the same DDR bytes in one phase, row by row", "[hazard][cores]") {
  const auto body = [](std::int64_t apart) {
    return [apart](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      dsp.dma_wait(dsp.dma_p2p(x, {8, 64, 0}, k_ddr_start + 65536 + dsp.thread_id() * apart, {8, 64, 1024 - 64}));
    };
  };
  CHECK(kinds(body(64), 4) == k_clean);
  const LaunchResult result = judged(body(60), 4);
  REQUIRE(kinds(result.findings) == Kinds{"unordered-writes"});
  CHECK(result.findings[0].count == 3);
  CHECK(result.findings[0].ends[0].core == 0);
  CHECK(result.findings[0].ends[1].core == 1);
}

TEST_CASE("a broadcast is a meeting, and its bytes are there when a core has waited for its own", "[hazard][cores]") {
  const auto body = [](bool wait) {
    return [wait](Dsp& dsp, const Kernel& copy) {
      const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes), z = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      if (dsp.thread_id() == 0) dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_gsm_start, row(k_bytes)));
      const int channel = dsp.dma_broadcast(k_ddr_start, row(k_bytes), y, row(k_bytes), 0);
      dsp.dma_wait(load_am(dsp, x, k_gsm_start));  // written before the broadcast
      if (wait) dsp.dma_wait(channel);
      copy_am(dsp, copy, y, z);
      if (!wait) dsp.dma_wait(channel);
    };
  };
  CHECK(kinds(body(true), 4) == k_clean);
  const LaunchResult result = judged(body(false), 4);
  REQUIRE(kinds(result.findings) == Kinds{"read-before-complete"});
  CHECK(result.findings[0].count == 4);
}

TEST_CASE("a broadcast's source is free when any core has received it and the cores have met", "[hazard][cores]") {
  const auto body = [](bool meet) {
    return [meet](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      const int channel = dsp.dma_broadcast(k_gsm_start, row(k_bytes), y, row(k_bytes), 0);
      if (dsp.thread_id() == 1) dsp.dma_wait(channel);
      if (meet) dsp.group_barrier(1);
      if (dsp.thread_id() == 2) dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_gsm_start, row(k_bytes)));
      if (dsp.thread_id() != 1) dsp.dma_wait(channel);
    };
  };
  CHECK(kinds(body(true), 3) == k_clean);
  CHECK_FALSE(kinds(body(false), 3) == k_clean);
}

TEST_CASE("row_syn starts a transfer only after what the others of its mask did before theirs", "[hazard][cores]") {
  const auto body = [](bool before) {
    return [before](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      const auto put = [&] { dsp.dma_wait(dsp.dma_p2p(x, row(k_bytes), k_gsm_start, row(k_bytes))); };
      if (dsp.thread_id() == 1 && before) put();
      const int channel = dsp.dma_p2p(k_ddr_start, {4, 256, 0}, y, {4, 256, 0}, true, 0b11);
      if (dsp.thread_id() == 1 && !before) put();
      dsp.dma_wait(channel);
      if (dsp.thread_id() == 0) dsp.dma_wait(load_am(dsp, x, k_gsm_start));
    };
  };
  CHECK(kinds(body(true), 2) == k_clean);
  CHECK(kinds(body(false), 2) == Kinds{"read-before-complete"});
}

TEST_CASE("a transfer into another core's AM is compared with that core's kernels", "[hazard][cores]") {
  const auto body = [](bool meet) {
    return [meet](Dsp& dsp, const Kernel& copy) {
      const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      if (dsp.thread_id() == 0) dsp.dma_wait(load_am(dsp, {Space::am, 1, x.offset}, k_ddr_start + 4096));
      if (meet) dsp.group_barrier(0);
      if (dsp.thread_id() == 1) copy_am(dsp, copy, x, y);
    };
  };
  CHECK(kinds(body(false), 2) == Kinds{"read-before-complete", "unordered-writes"});  // and core 1's own load of x
  CHECK(kinds(
            [](Dsp& dsp, const Kernel& copy) {
              const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
              if (dsp.thread_id() == 0) dsp.dma_wait(load_am(dsp, {Space::am, 1, x.offset}));
              dsp.group_barrier(0);
              if (dsp.thread_id() == 1) copy_am(dsp, copy, x, y);
            },
            2) == k_clean);
  const auto again = [](Dsp& dsp, const Kernel& copy) {  // a call as before a meeting is another access
    const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
    dsp.dma_wait(load_am(dsp, x));
    if (dsp.thread_id() == 1) copy_am(dsp, copy, x, y);
    dsp.group_barrier(0);
    if (dsp.thread_id() == 1) copy_am(dsp, copy, x, y);
    if (dsp.thread_id() == 0) dsp.dma_wait(load_am(dsp, {Space::am, 1, x.offset}));
  };
  CHECK(kinds(again, 2) == Kinds{"read-before-complete"});
}

TEST_CASE("a finding names both ends, the bytes, the line and what is missing", "[hazard]") {
  unsigned issue_line = 0, call_line = 0, malloc_line = 0;
  const LaunchResult result = judged([&](Dsp& dsp, const Kernel& copy) {
    malloc_line = __LINE__ + 1;
    const Pointer x = dsp.vector_malloc(2 * k_bytes);
    const Pointer y = dsp.vector_malloc(k_bytes);
    dsp.dma_wait(load_am(dsp, x + k_bytes));
    for (int i = 0; i < 3; ++i) {
      issue_line = __LINE__ + 1;
      const int channel = dsp.raw_dma_p2p(k_ddr_start, row(k_bytes), x + (i < 1 ? 0 : k_bytes), row(k_bytes), 1, 7);
      call_line = __LINE__ + 1;
      dsp.call(copy, {x + k_bytes, y, Pointer{Space::sm, 0, 0}, k_vectors});
      dsp.dma_wait(channel);
    }
  });
  REQUIRE(result.findings.size() == 1);
  const Finding& finding = result.findings[0];
  CHECK(finding.kind == "read-before-complete");
  CHECK(finding.count == 2);
  REQUIRE(finding.ends.size() == 2);
  CHECK(finding.ends[0].what == "raw_dma_p2p");
  CHECK(finding.ends[0].channel == 7);
  CHECK(finding.ends[0].iteration == 2);
  CHECK(finding.ends[0].line == static_cast<int>(issue_line));
  CHECK(finding.ends[0].file == "systemc/hazard_test.cpp");
  CHECK_THAT(finding.ends[0].function, Catch::Contains("Dsp&, const"));  // of the lambda
  CHECK_THAT(finding.ends[0].buffer, Catch::Contains("writes am[0]+0x400 (1024 bytes; byte 1024 of vector_malloc") &&
                                         Catch::Contains(":" + std::to_string(malloc_line)));
  CHECK(finding.ends[1].what == "call of bench");
  CHECK(finding.ends[1].iteration == 2);
  CHECK(finding.ends[1].line == static_cast<int>(call_line));
  CHECK(finding.missing_edge == "dma_wait(7) on core 0 between the two");
}

TEST_CASE("findings cost nothing simulated, and none are made when the monitor is off", "[hazard]") {
  const auto run = [](bool hazards) {
    Cluster& cluster = fresh({.hazards = hazards});
    const Kernel copy = load(cluster, k_copy_kernel);
    return cluster.launch(
        [&](Dsp& dsp) {
          const Pointer x = dsp.vector_malloc(k_bytes), y = dsp.vector_malloc(k_bytes);
          load_am(dsp, x);
          copy_am(dsp, copy, x, y);
        },
        2);
  };
  const LaunchResult on = run(true), off = run(false);
  CHECK(on.cycles == off.cycles);
  CHECK(kinds(on.findings) == Kinds{"read-before-complete", "wait-never-made"});
  CHECK(kinds(off.findings) == k_clean);
}

TEST_CASE("a kernel whose addresses depend on data is not looked at, and says so", "[hazard]") {
  Cluster& cluster = fresh();
  const Kernel kernel = load(cluster,
                             ".param at, R10, pointer sm\n SMVAGA.M1 R10, AR8\n SNOP 2\n SLDW *AR8, R20\n SNOP 7\n"
                             " SMVAGA.M1 R20, AR9\n SNOP 2\n SLDW *AR9, R21\n SBR R63\n SNOP 6\n");
  const LaunchResult result = cluster.launch(
      [&](Dsp& dsp) {
        const Pointer at = dsp.scalar_malloc(256);
        for (int i = 0; i < 2; ++i) dsp.call(kernel, {at});
      },
      1);
  CHECK(kinds(result.findings) == k_clean);
  REQUIRE(kinds(result.notes) == Kinds{"not-covered"});
  CHECK(result.notes[0].count == 2);
  CHECK_THAT(result.notes[0].message, Catch::Contains("call of bench") && Catch::Contains("SLDW"));
}
