// SPDX-License-Identifier: Apache-2.0
// Races between cores, each beside the program that does it right.
#include "hazard_bench.h"

using namespace hazard;

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

TEST_CASE("two cores that walk through the DDR meet in single transfers of their walks", "[hazard][cores]") {
  // Core 0 writes 20 rows `step` bytes apart, core 1 reads as many; the first row both touch is core 0's #12.
  const auto body = [](std::int64_t step, std::int64_t distance) {
    return [=](Dsp& dsp, const Kernel&) {
      const Pointer x = dsp.vector_malloc(k_bytes);
      dsp.dma_wait(load_am(dsp, x));
      const bool writes = dsp.thread_id() == 0;
      for (std::int64_t i = 0; i < 20; ++i) {
        const Pointer at = k_ddr_start + 65536 + i * step;
        dsp.dma_wait(writes ? dsp.dma_p2p(x, row(k_bytes), at, row(k_bytes)) : load_am(dsp, x, at + distance));
      }
    };
  };
  for (const std::int64_t step : {k_bytes, 3 * k_bytes}) {
    CAPTURE(step);
    CHECK(kinds(body(step, 20 * step), 2) == k_clean);
    CHECK(kinds(body(step, step - k_bytes), 2) == (step == k_bytes ? Kinds{"read-before-complete"} : k_clean));
    const LaunchResult result = judged(body(step, 11 * step), 2);
    REQUIRE(kinds(result.findings) == Kinds{"read-before-complete"});
    CHECK(result.findings[0].count == 9);
    CHECK(result.findings[0].ends[0].iteration == 12);
    CHECK(result.findings[0].ends[1].iteration == 2);  // behind load_am of x
    CHECK(judged(body(step, 11 * step + 1), 2).findings[0].count == (step == k_bytes ? 17 : 9));
  }
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
