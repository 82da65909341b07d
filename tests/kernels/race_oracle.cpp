// SPDX-License-Identifier: Apache-2.0
#include "race_oracle.h"

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string_view>

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_word = 2;  // the smallest element

int memory_of(sim::Pointer pointer) { return static_cast<int>(pointer.space) * 64 + pointer.core + 1; }

Tile tile_of(sim::Pointer pointer, const sim::Rows& rows) { return {pointer, rows.count, rows.bytes, rows.pitch()}; }

}  // namespace

void RaceOracle::launch(int cores) {
  m_cores = cores;
  m_nodes.clear();
  m_last.clear();
  m_accesses.clear();
  m_histories.assign(1, {});
  m_words.clear();
  m_channels.assign(static_cast<std::size_t>(cores), {});
  m_joining.clear();
  m_verdict = {};
  for (int core = 0; core < cores; ++core) {
    m_nodes.push_back({});
    m_last.push_back(core);
  }
}

int RaceOracle::node(int core) {
  m_nodes.push_back({{m_last[static_cast<std::size_t>(core)]}});
  if (m_nodes.size() > k_max_nodes) throw std::logic_error("the oracle is for small launches");
  return m_last[static_cast<std::size_t>(core)] = static_cast<int>(m_nodes.size()) - 1;
}

/// Of the tile's memory, enough for it.
RaceOracle::Words& RaceOracle::words(sim::Pointer pointer, const Tile& tile) {
  Words& words = m_words[memory_of(pointer)];
  const std::int64_t end = static_cast<std::int64_t>(pointer.offset) + (tile.rows - 1) * tile.pitch + tile.bytes;
  if (std::ssize(words) * k_word < end) words.resize(static_cast<std::size_t>(2 * end / k_word + 1));
  return words;
}

template <class Visit>
void RaceOracle::for_each_word(const Tile& tile, Visit visit) {
  Words& all = words(tile.at, tile);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    const std::int64_t first = static_cast<std::int64_t>(tile.at.offset) + row * tile.pitch;
    for (std::int64_t at = first / k_word; at * k_word < first + tile.bytes; ++at) {
      visit(all[static_cast<std::size_t>(at)]);
    }
  }
}

std::pair<int, int> RaceOracle::written(const Tile& tile) {
  std::pair<int, int> count;
  for_each_word(tile, [&](std::int32_t word) {
    count.first += m_histories[static_cast<std::size_t>(word)].written ? 1 : 0;
    ++count.second;
  });
  return count;
}

void RaceOracle::touch(int access, const Tile& tile, bool write) {
  // Neighbours mostly share their history, and share the new one then.
  std::vector<std::pair<std::int32_t, std::int32_t>> extended;
  for_each_word(tile, [&](std::int32_t& word) {
    for (auto known = extended.rbegin(); known != extended.rend(); ++known) {
      if (known->first == word) {
        word = known->second;
        return;
      }
    }
    const History old = m_histories[static_cast<std::size_t>(word)];
    if (old.access == access && old.write == write) return;
    m_histories.push_back({word, access, write, old.written || write});
    extended.emplace_back(word, static_cast<std::int32_t>(m_histories.size()) - 1);
    word = extended.back().second;
  });
}

void RaceOracle::issued(const Issue& issue) {
  const int core = issue.verb.core;
  auto& channels = m_channels[static_cast<std::size_t>(core)];
  if (channels.count(issue.channel) > 0) ++m_verdict.unknown_transfers;
  // Two nodes of its own: it begins after what came before the issue and ends whenever it likes.
  const int issued = node(core);
  m_nodes.push_back({{issued}});
  const int begin = static_cast<int>(m_nodes.size()) - 1;
  m_nodes.push_back({{begin}});
  const Transfer transfer{begin, begin + 1, std::string_view(issue.verb.name) == "dma_broadcast"};
  // A channel that is taken again has been waited for by then, if late: the verb blocks.
  if (const auto old = channels.find(issue.channel); old != channels.end()) {
    m_nodes[static_cast<std::size_t>(issued)].after.push_back(old->second.end);
  }
  channels[issue.channel] = transfer;
  if (transfer.is_broadcast) m_joining.push_back(transfer);
  const int access = static_cast<int>(m_accesses.size());
  m_accesses.push_back({transfer.begin, transfer.end});
  const Tile source = tile_of(issue.move.source, issue.move.source_rows);
  if (source.at.space != sim::Space::ddr) {
    const auto [some, all] = written(source);
    if (some < all) ++m_verdict.empty_reads;
  }
  touch(access, source, false);
  touch(access, tile_of(issue.move.destination, issue.move.destination_rows), true);
}

void RaceOracle::known_complete(const Verb& verb, int channel) {
  auto& channels = m_channels[static_cast<std::size_t>(verb.core)];
  const auto transfer = channels.find(channel);
  if (transfer == channels.end()) return;
  m_nodes[static_cast<std::size_t>(node(verb.core))].after.push_back(transfer->second.end);
  channels.erase(transfer);
}

void RaceOracle::met(std::int64_t) {
  std::vector<int> all;
  for (int core = 0; core < m_cores; ++core) all.push_back(node(core));
  m_nodes.push_back({all});
  const int meeting = static_cast<int>(m_nodes.size()) - 1;
  for (int core = 0; core < m_cores; ++core) m_nodes[static_cast<std::size_t>(node(core))].after.push_back(meeting);
  for (const Transfer& transfer : m_joining) m_nodes[static_cast<std::size_t>(transfer.begin)].after.push_back(meeting);
  m_joining.clear();
}

void RaceOracle::call(const Verb& verb, const sim::Kernel& kernel, std::span<const sim::Argument> arguments,
                      std::int64_t, std::int64_t) {
  const int at = node(verb.core);
  const int access = static_cast<int>(m_accesses.size());
  m_accesses.push_back({at, at});
  const KernelContract contract = contract_of(kernel, arguments, m_facts);
  for (const Tile& input : contract.reads) {
    const auto [some, all] = written(input);
    if (some == 0) {
      ++m_verdict.empty_reads;
    } else if (some < all) {
      ++m_verdict.partial_reads;
    }
  }
  for (const Tile& input : contract.reads) touch(access, input, false);
  for (const Tile& output : contract.writes) touch(access, output, true);
}

/// By node: those that happen before it.
std::vector<RaceOracle::Reach> RaceOracle::pasts() const {
  // Edges may come from nodes made later (a transfer's begin waits for its meeting): in topological order.
  std::vector<std::vector<int>> before(m_nodes.size());
  std::vector<int> left(m_nodes.size());
  for (std::size_t i = 0; i < m_nodes.size(); ++i) {
    left[i] = static_cast<int>(m_nodes[i].after.size());
    for (const int from : m_nodes[i].after) before[static_cast<std::size_t>(from)].push_back(static_cast<int>(i));
  }
  std::vector<int> ready;
  for (std::size_t i = 0; i < m_nodes.size(); ++i) {
    if (left[i] == 0) ready.push_back(static_cast<int>(i));
  }
  std::vector<Reach> past(m_nodes.size());
  for (std::size_t next = 0; next < ready.size(); ++next) {
    const auto at = static_cast<std::size_t>(ready[next]);
    for (const int from : m_nodes[at].after) {
      past[at] |= past[static_cast<std::size_t>(from)];
      past[at].set(static_cast<std::size_t>(from));
    }
    for (const int to : before[at]) {
      if (--left[static_cast<std::size_t>(to)] == 0) ready.push_back(to);
    }
  }
  return past;
}

RaceOracle::Verdict RaceOracle::judge() {
  for (const auto& channels : m_channels) m_verdict.unknown_transfers += static_cast<int>(channels.size());
  const std::vector<Reach> past = pasts();
  const auto ordered = [&](const Access& a, const Access& b) {
    return past[static_cast<std::size_t>(b.begin)][static_cast<std::size_t>(a.end)] ||
           past[static_cast<std::size_t>(a.begin)][static_cast<std::size_t>(b.end)];
  };
  // Every list that some word has had: its last access against those before.
  std::set<std::pair<int, int>> races;
  for (const History& last : m_histories) {
    for (int at = last.before; at > 0; at = m_histories[static_cast<std::size_t>(at)].before) {
      const History& other = m_histories[static_cast<std::size_t>(at)];
      if (other.access == last.access || (!other.write && !last.write)) continue;
      if (!ordered(m_accesses[static_cast<std::size_t>(other.access)],
                   m_accesses[static_cast<std::size_t>(last.access)])) {
        races.insert({other.access, last.access});
      }
    }
  }
  m_verdict.races = static_cast<int>(races.size());
  return m_verdict;
}

}  // namespace mtsim::kernels
