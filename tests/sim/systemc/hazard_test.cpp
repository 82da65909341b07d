// SPDX-License-Identifier: Apache-2.0
// Races of small DSP programs, each beside the program that does it right.
#include "hazard_bench.h"

using namespace hazard;

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
