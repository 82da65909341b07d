// SPDX-License-Identifier: Apache-2.0
// The transport between processes of an mpirun.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/comm/ranks.h"
#include "runtime/comm/transport.h"

namespace mtsim::runtime {

class MpiTransport final : public Transport {
 public:
  /// Joins the other processes, which have to say the same `inputs` (what they compute, of which model, on which
  /// machine): by name and text. Throws RuntimeError with the first that differs, in every process.
  MpiTransport(int clusters, const std::vector<std::pair<std::string, std::string>>& inputs);

  /// Behind an error of this process alone the others are ended.
  ~MpiTransport() override;

  int rank() const override { return m_ranks.rank(); }
  int ranks() const override { return m_ranks.size(); }
  void send(int from, int to, Bytes bytes) override;
  std::optional<Bytes> try_receive(int from, int to) override;
  Bytes receive(int from, int to) override;
  Bytes broadcast(int from, Bytes bytes) override;
  std::vector<std::int64_t> gather(std::int64_t number) override;

 private:
  void agree(const std::vector<std::pair<std::string, std::string>>& inputs);
  /// Takes what has come.
  void poll();
  /// Until `is_there`: polls, and leaves the processor to others.
  void wait(const std::function<bool()>& is_there);
  Bytes from_rank(int rank);

  Ranks m_ranks;
  bool m_agreed = false;
  const int m_exceptions;                   // under way when this began
  std::map<int, std::deque<Bytes>> m_talk;  // by rank: what goes from process to process
};

}  // namespace mtsim::runtime
