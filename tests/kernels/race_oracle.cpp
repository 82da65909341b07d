// SPDX-License-Identifier: Apache-2.0
#include "race_oracle.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/gemm/gemm_tile.h"

namespace mtsim::kernels {
namespace {

constexpr std::int64_t k_word = 4;  // what GEMM moves and computes with

int memory_of(sim::Pointer pointer) { return static_cast<int>(pointer.space) * 64 + pointer.core + 1; }

}  // namespace

void RaceOracle::launch(int cores) {
  m_cores = cores;
  m_nodes.clear();
  m_last.clear();
  m_accesses.clear();
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

RaceOracle::Word& RaceOracle::word(sim::Pointer pointer, std::int64_t byte) {
  auto& words = m_words[memory_of(pointer)];
  const std::size_t index = (pointer.offset + static_cast<std::uint64_t>(byte)) / k_word;
  if (words.size() <= index) words.resize(2 * index + 1);
  return words[index];
}

std::pair<int, int> RaceOracle::written(sim::Pointer pointer, std::int64_t rows, std::int64_t bytes,
                                        std::int64_t pitch) {
  std::pair<int, int> count;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t byte = 0; byte < bytes; byte += k_word, ++count.second) {
      count.first += word(pointer, row * pitch + byte).written ? 1 : 0;
    }
  }
  return count;
}

void RaceOracle::touch(int access, sim::Pointer pointer, const sim::Rows& rows, bool write) {
  touch_tile(access, pointer, rows.count, rows.bytes, rows.pitch(), write);
}

void RaceOracle::touch_tile(int access, sim::Pointer pointer, std::int64_t rows, std::int64_t bytes, std::int64_t pitch,
                            bool write) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t byte = 0; byte < bytes; byte += k_word) {
      Word& its = word(pointer, row * pitch + byte);
      if (!its.accesses.empty() && its.accesses.back() == std::pair(access, write)) continue;
      its.accesses.emplace_back(access, write);
      its.written = its.written || write;
    }
  }
}

void RaceOracle::narrow(int access, sim::Pointer sums, std::int64_t sums_pitch, sim::Pointer y, std::int64_t y_pitch,
                        bool merge) {
  constexpr std::int64_t k_rows = 6, k_groups = 4, k_sums_bytes = 256, k_y_bytes = 128;  // groups of 64 columns
  const auto whole = [&](sim::Pointer at, std::int64_t bytes) {
    const auto [some, all] = written(at, 1, bytes, bytes);
    return some == all;
  };
  for (std::int64_t row = 0; row < k_rows; ++row) {
    std::vector<bool> has_values;
    for (std::int64_t g = 0; g < k_groups; ++g) {
      has_values.push_back(whole(sums + row * sums_pitch + g * k_sums_bytes, k_sums_bytes) &&
                           (!merge || whole(y + row * y_pitch + g * k_y_bytes, k_y_bytes)));
    }
    for (std::int64_t g = 0; g < k_groups; ++g) {
      const sim::Pointer to = y + row * y_pitch + g * k_y_bytes;
      for (std::int64_t byte = 0; byte < k_y_bytes; byte += k_word) {
        Word& its = word(to, byte);
        its.accesses.emplace_back(access, true);
        its.written = has_values[static_cast<std::size_t>(g)];
      }
    }
  }
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
  if (const sim::Pointer source = issue.move.source; source.space != sim::Space::ddr) {
    const sim::Rows& rows = issue.move.source_rows;
    const auto [some, all] = written(source, rows.count, rows.bytes, rows.pitch());
    if (some < all) ++m_verdict.empty_reads;
  }
  touch(access, issue.move.source, issue.move.source_rows, false);
  touch(access, issue.move.destination, issue.move.destination_rows, true);
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
  const std::string& program = kernel.program->program().name;
  const auto number = [&](std::size_t i) { return static_cast<std::int64_t>(arguments[i].value); };
  const auto input = [&](sim::Pointer pointer, std::int64_t rows, std::int64_t bytes, std::int64_t pitch) {
    if (written(pointer, rows, bytes, pitch).first == 0) ++m_verdict.empty_reads;
    touch_tile(access, pointer, rows, bytes, pitch, false);
  };
  constexpr std::int64_t k_rows = 6;
  if (program == "gemm_f32_6x128" || program == "gemm_f16_6x256") {  // x, w, y, k, x_pitch, w_pitch, y_pitch
    const bool is_f16 = program == "gemm_f16_6x256";
    const std::int64_t bytes = is_f16 ? 2 : 4, columns = is_f16 ? 256 : 128;
    const std::int64_t sum_bytes = kernel.entry.ends_with("_f32") ? 4 : bytes;
    input(arguments[0].pointer, k_rows, number(3) * bytes, number(4));
    input(arguments[1].pointer, number(3), columns * bytes, number(5));
    if (kernel.entry.starts_with("accumulate")) {
      input(arguments[2].pointer, k_rows, columns * sum_bytes, number(6));
    }
    touch_tile(access, arguments[2].pointer, k_rows, columns * sum_bytes, number(6), true);
  } else if (program == "gemm_tile") {  // as above
    const GemmTile& tile = gemm_tile_of(kernel.program->program());
    const std::int64_t bytes = bytes_of(tile.dtype), sum_bytes = tile.promotes ? 4 : bytes;
    input(arguments[0].pointer, tile.rows, number(3) * bytes, number(4));
    input(arguments[1].pointer, number(3), tile.columns() * bytes, number(5));
    if (kernel.entry == "accumulate") {
      input(arguments[2].pointer, tile.rows, tile.columns() * sum_bytes, number(6));
    }
    touch_tile(access, arguments[2].pointer, tile.rows, tile.columns() * sum_bytes, number(6), true);
  } else if (program == "gemm_narrow_6x256") {  // sums, y, sums_pitch, y_pitch
    input(arguments[0].pointer, k_rows, 256 * 4, number(2));
    const bool merge = kernel.entry == "merge";
    if (merge) input(arguments[1].pointer, k_rows, 256 * 2, number(3));
    narrow(access, arguments[0].pointer, number(2), arguments[1].pointer, number(3), merge);
  } else if (program == "zero_sm_column") {  // x, rows, pitch
    touch_tile(access, arguments[0].pointer, number(1), 8, number(2), true);
  } else if (program == "zero_am") {  // w, bytes
    touch_tile(access, arguments[0].pointer, 1, number(1), 0, true);
  } else {
    throw std::logic_error("the oracle does not know " + program);
  }
}

RaceOracle::Verdict RaceOracle::judge() {
  for (const auto& channels : m_channels) m_verdict.unknown_transfers += static_cast<int>(channels.size());
  // Edges may come from nodes made later (a transfer's begin waits for its meeting): reach in topological order.
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
  std::vector<Reach> past(m_nodes.size());  // nodes that happen before
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
  const auto ordered = [&](const Access& a, const Access& b) {
    return past[static_cast<std::size_t>(b.begin)][static_cast<std::size_t>(a.end)] ||
           past[static_cast<std::size_t>(a.begin)][static_cast<std::size_t>(b.end)];
  };
  std::set<std::pair<int, int>> seen;
  const std::vector<std::pair<int, bool>>* last = nullptr;  // neighbouring words mostly have the same accesses
  for (const auto& [memory, words] : m_words) {
    for (const Word& word : words) {
      if (word.accesses.empty() || (last != nullptr && *last == word.accesses)) continue;
      last = &word.accesses;
      for (std::size_t i = 0; i < word.accesses.size(); ++i) {
        for (std::size_t j = i + 1; j < word.accesses.size(); ++j) {
          const auto [a, a_writes] = word.accesses[i];
          const auto [b, b_writes] = word.accesses[j];
          if (a == b || (!a_writes && !b_writes) || !seen.insert({a, b}).second) continue;
          if (!ordered(m_accesses[static_cast<std::size_t>(a)], m_accesses[static_cast<std::size_t>(b)])) {
            ++m_verdict.races;
          }
        }
      }
    }
  }
  return m_verdict;
}

}  // namespace mtsim::kernels
