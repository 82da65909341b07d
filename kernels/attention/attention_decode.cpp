// SPDX-License-Identifier: Apache-2.0
// Decode over caches of ragged lengths: items (request, KV head), dealt to the cores by the host. A core goes through
// its items block of keys by block: scores of the item's rows (the query heads that share the KV head), online softmax,
// products with V, as in mt with passes of one block; but K^T and V come by its own transfers, the next block, of the
// next item too, while one is used. DDR is what it waits for: a key is 1 KB at head_dim 128 in FP32, its products are
// 21 cycles with 8 rows.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "kernels/attention/attention_ring.h"
#include "kernels/library.h"

namespace mtsim::kernels {
namespace attention {
namespace {

struct Item {
  std::int64_t index = 0;  // of q_at: request, then share of heads
  std::int64_t head = 0;   // KV head of the request
  const AttentionCache* cache = nullptr;
};

class Decode : KeyRing {
 public:
  /// `plan` is this core's own: its context is that of the item at hand.
  Decode(sim::Dsp& dsp, AttentionPlan& plan, const AttentionOperands& operands, const Kernels& kernels,
         const Memory& memory, const std::vector<Item>& items)
      : KeyRing(dsp, plan, operands, kernels, memory), m_context(plan.shape.seq_k), m_items(items) {
    for (const Item& item : m_items) {
      m_context = item.cache->length;
      m_item_steps.push_back(key_steps(m_plan));
      m_first.push_back(m_blocks);
      m_blocks += 2 * std::ssize(m_item_steps.back());
    }
    allocate_ring();
    allocate_queries();
    allocate_softmax();
    m_o = m_dsp.vector_malloc(m_sizes.o);
    m_kept = m_dsp.vector_malloc(m_sizes.kept);
  }

  void run() {
    ask_for_queries(rows_of(0));
    load_first();
    stage_queries();
    fetch_queries();
    for (std::size_t i = 0; i < m_items.size(); ++i) run_item(i);
    wait(m_o_channel);
  }

 private:
  RowBlock rows_of(std::size_t i) const { return i < m_items.size() ? RowBlock{m_items[i].index, 0, 1} : RowBlock{}; }

  void run_item(std::size_t i) {
    m_dsp.loop_iteration();
    m_context = m_items[i].cache->length;
    m_steps = m_item_steps[i];
    const RowBlock rows = rows_of(i);
    wait_for_queries();
    for (std::int64_t step = 0; step < std::ssize(m_steps); ++step) {
      const bool last = step + 1 == std::ssize(m_steps);
      begin_pass(rows, step, step + 1);
      score(step, take(true));
      if (last) ask_for_queries(rows_of(i + 1));
      wait(m_o_channel);
      softmax(m_kept, step == 0, m_o);
      const sim::Pointer v = take(true);
      if (last) stage_queries();
      multiply_values(step, v, m_o, step == 0);
    }
    fetch_queries();
    divide(m_kept, m_o);
    m_o_channel = store(m_o, rows);
  }

  std::optional<Load> block(std::int64_t i) const override {
    if (i >= m_blocks) return std::nullopt;
    const auto item = std::upper_bound(m_first.begin(), m_first.end(), i) - m_first.begin() - 1;
    const auto index = static_cast<std::size_t>(item);
    const std::int64_t at = i - m_first[index];
    return Load{at % 2 == 0 ? Matrix::k : Matrix::v, m_item_steps[index][static_cast<std::size_t>(at / 2)], item};
  }
  int fetch(const Load& load, sim::Pointer wire) override {
    const Item& item = m_items[static_cast<std::size_t>(load.item)];
    const AttentionCache& cache = *item.cache;
    const sim::Pointer block = key_block(cache.blocks, load.matrix, load.matrix == Matrix::k ? cache.kt : cache.v,
                                         ceil_div(cache.length, m_shape.block()), item.head, load.step.block);
    const KeyMove move = prepare(load.matrix, block, load.step, wire);
    set_priority(k_usual);
    return m_dsp.dma_p2p(move.from, move.from_rows, wire, move.to_rows);
  }

  std::int64_t& m_context;  // seq_k of the plan
  const std::vector<Item>& m_items;
  std::vector<std::vector<KeyStep>> m_item_steps;
  std::vector<std::int64_t> m_first;  // block of each item
  std::int64_t m_blocks = 0;
  sim::Pointer m_o, m_kept;  // AM
  Channel m_o_channel;
};

/// To each core its items: the longest first, to the core with the fewest keys.
std::vector<std::vector<Item>> deal(const AttentionPlan& plan, const std::vector<AttentionCache>& caches,
                                    std::int64_t cores) {
  const std::int64_t parts = plan.shape.heads / plan.share, per_head = parts / plan.shape.kv_heads;
  std::vector<Item> all;
  for (std::size_t request = 0; request < caches.size(); ++request) {
    for (std::int64_t part = 0; part < parts; ++part)
      all.push_back({static_cast<std::int64_t>(request) * parts + part, part / per_head, &caches[request]});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Item& a, const Item& b) { return a.cache->length > b.cache->length; });
  std::vector<std::vector<Item>> dealt(static_cast<std::size_t>(cores));
  std::vector<std::int64_t> keys(dealt.size());
  for (const Item& item : all) {
    const auto core = static_cast<std::size_t>(std::min_element(keys.begin(), keys.end()) - keys.begin());
    dealt[core].push_back(item);
    keys[core] += item.cache->length;
  }
  return dealt;
}

}  // namespace
}  // namespace attention

AttentionPlan plan_attention_decode(const AttentionShape& shape, const AttentionTiles& given,
                                    const sim::MachineConfig& machine) {
  if (shape.seq_q != 1 || shape.causal)
    throw KernelError(fmt::format("attention decode: {} tokens a request{}; one, which sees all its keys", shape.seq_q,
                                  shape.causal ? ", causal" : ""));
  if (given.mr > 0 || given.pass > 0)
    throw KernelError(
        "attention decode: mr is the query heads that share a KV head, and a pass one block; give mc alone");
  AttentionTiles tiles = given;
  tiles.mr = std::min<std::int64_t>(shape.group(), 64);
  return plan_attention(shape, tiles, {AttentionVariant::mt, AttentionSequence::best}, machine);
}

sim::DspProgram attention_decode(sim::Cluster& cluster, const AttentionPlan& plan, sim::Pointer q, sim::Pointer o,
                                 const std::vector<AttentionCache>& caches) {
  const AttentionShape& shape = plan.shape;
  if (std::ssize(caches) != shape.batch)
    throw KernelError(fmt::format("attention decode: {} caches for {} requests", caches.size(), shape.batch));
  for (std::size_t i = 0; i < caches.size(); ++i) {
    if (caches[i].length < 1 || caches[i].length > shape.seq_k)
      throw KernelError(fmt::format("attention decode: request {} has {} positions; 1 to {} (seq_k)", i,
                                    caches[i].length, shape.seq_k));
    attention::check_blocks(caches[i].blocks, ceil_div(caches[i].length, shape.block()), true);
    if (shape.kv_block == 0 && caches[i].length != shape.seq_k)
      throw KernelError("attention decode: lengths differ; give kv_block, the positions of a block of the cache");
  }
  const attention::Kernels kernels = attention::load_kernels(cluster, plan);
  const attention::Memory memory{cluster.gsm_malloc(plan.gsm_bytes), {}};
  struct Work {
    std::vector<AttentionCache> caches;
    std::vector<std::vector<attention::Item>> items;  // by core, into caches
  };
  const auto work = std::make_shared<Work>();
  work->caches = caches;
  work->items = attention::deal(plan, work->caches, cluster.machine().cluster.cores);
  return [=](sim::Dsp& dsp) {
    const auto& items = work->items.at(static_cast<std::size_t>(dsp.thread_id()));
    AttentionPlan own = plan;
    if (!items.empty()) attention::Decode(dsp, own, {q, {}, {}, o}, kernels, memory, items).run();
  };
}

}  // namespace mtsim::kernels
