// SPDX-License-Identifier: Apache-2.0
// An independent judge of races, for programs small enough: writes down what a launch did and asks, for every two
// accesses to one word of which one writes, whether a path of edges leads from the end of one to the start of the
// other. It shares no code with the hazard monitor: a graph of all events instead of clocks, words instead of blocks,
// and the footprints of the GEMM microkernels as their register contracts state them.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/observer.h"

namespace mtsim::kernels {

class RaceOracle : public sim::Observer {
 public:
  void launch(int cores) override;
  void call(const Verb& verb, const sim::Kernel& kernel, std::span<const sim::Argument> arguments, std::int64_t,
            std::int64_t) override;
  void issued(const Issue& issue) override;
  void known_complete(const Verb& verb, int channel) override;
  void met(std::int64_t cycle) override;

  struct Verdict {
    int races = 0;  // pairs of accesses in no order
    int unknown_transfers =
        0;                // nobody asked whether they are complete, at all or before their channel was taken again
    int empty_reads = 0;  // kernel inputs of which no word was written before, and moves of words never written
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
  struct Word {
    std::vector<std::pair<int, bool>> accesses;  // which, and whether it writes; in the order of the log
    bool written = false;                        // with values
  };
  struct Transfer {
    int begin = 0, end = 0;
    bool is_broadcast = false;
  };

  int node(int core);  // the core's next, behind its last
  Word& word(sim::Pointer pointer, std::int64_t byte);
  /// How many of the tile's words were written before, and of how many.
  std::pair<int, int> written(sim::Pointer pointer, std::int64_t rows, std::int64_t bytes, std::int64_t pitch);
  void touch(int access, sim::Pointer pointer, const sim::Rows& rows, bool write);
  void touch_tile(int access, sim::Pointer pointer, std::int64_t rows, std::int64_t bytes, std::int64_t pitch,
                  bool write);
  /// gemm_narrow_6x256: writes all of Y1, but values only where the sums hold some: not all of M1 x N1 is computed.
  void narrow(int access, sim::Pointer sums, std::int64_t sums_pitch, sim::Pointer y, std::int64_t y_pitch, bool merge);

  int m_cores = 0;
  std::vector<Node> m_nodes;
  std::vector<int> m_last;  // node, by core
  std::vector<Access> m_accesses;
  std::map<int, std::vector<Word>> m_words;         // by memory
  std::vector<std::map<int, Transfer>> m_channels;  // by core: what is not known to be complete
  std::vector<Transfer> m_joining;                  // a broadcast that gathers its cores
  Verdict m_verdict;
};

}  // namespace mtsim::kernels
