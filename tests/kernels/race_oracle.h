// SPDX-License-Identifier: Apache-2.0
// An independent judge of races, for programs small enough: writes down what a launch did and asks, for every two
// accesses to one word of which one writes, whether a path of edges leads from the end of one to the start of the
// other. It shares no code with the hazard monitor: a graph of all events instead of clocks, words instead of blocks,
// and the footprints of the microkernels as their register contracts state them.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "kernel_contracts.h"
#include "sim/observer.h"

namespace mtsim::kernels {

class RaceOracle : public sim::Observer {
 public:
  explicit RaceOracle(const KernelFacts& facts) : m_facts(facts) {}

  void launch(int cores) override;
  void call(const Verb& verb, const sim::Kernel& kernel, std::span<const sim::Argument> arguments, std::int64_t,
            std::int64_t) override;
  void issued(const Issue& issue) override;
  void known_complete(const Verb& verb, int channel) override;
  void met(std::int64_t cycle) override;

  struct Verdict {
    int races = 0;  // pairs of accesses in no order
    /// Nobody asked whether they are complete, at all or before their channel was taken again.
    int unknown_transfers = 0;
    int empty_reads = 0;    // kernel inputs of which no word was written before, and moves of words never written
    int partial_reads = 0;  // kernel inputs of which some words were not: harmless when nothing depends on those
    bool clean() const { return races == 0 && unknown_transfers == 0 && empty_reads == 0; }
  };
  /// Of everything since launch().
  Verdict judge();

 private:
  static constexpr std::size_t k_max_nodes = 8192;
  using Reach = std::bitset<k_max_nodes>;
  struct Node {
    std::vector<int> after;  // edges come from these
  };
  struct Access {
    int begin = 0, end = 0;  // nodes
  };
  /// What was done to a word, as a list that words share: the last access and what came before it.
  struct History {
    int before = -1;
    int access = -1;
    bool write = false;
    bool written = false;  // by some access of the list
  };
  using Words = std::vector<std::int32_t>;  // a history each; 0 is the empty one
  struct Transfer {
    int begin = 0, end = 0;
    bool is_broadcast = false;
  };

  int node(int core);  // the core's next, behind its last
  Words& words(sim::Pointer pointer, const Tile& tile);
  template <class Visit>
  void for_each_word(const Tile& tile, Visit visit);
  /// How many of the tile's words were written before, and of how many.
  std::pair<int, int> written(const Tile& tile);
  void touch(int access, const Tile& tile, bool write);
  std::vector<Reach> pasts() const;

  const KernelFacts m_facts;
  int m_cores = 0;
  std::vector<Node> m_nodes;
  std::vector<int> m_last;  // node, by core
  std::vector<Access> m_accesses;
  std::vector<History> m_histories;
  std::map<int, Words> m_words;                     // by memory
  std::vector<std::map<int, Transfer>> m_channels;  // by core: what is not known to be complete
  std::vector<Transfer> m_joining;                  // a broadcast that gathers its cores
  Verdict m_verdict;
};

}  // namespace mtsim::kernels
