// SPDX-License-Identifier: Apache-2.0
// Bytes between clusters, wherever they are computed: in this process, or in others that mpirun started. The time that
// messages take on the machine is sim/link.h's; this moves values.
//
// Clusters are numbered through all pools. Each process owns some and computes values for them; all processes run the
// same program, and messages of one route arrive in the order they were sent.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace mtsim::runtime {

using Bytes = std::vector<std::byte>;

class Transport {
 public:
  /// Of so many clusters, numbered from 0.
  explicit Transport(int clusters) : m_clusters(clusters) {}
  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  virtual int rank() const { return 0; }
  virtual int ranks() const { return 1; }
  int clusters() const { return m_clusters; }
  /// The process that computes it: neighbours share one.
  int owner(int cluster) const;
  bool owns(int cluster) const { return owner(cluster) == rank(); }

  /// Of a cluster this process owns. Returns at once.
  virtual void send(int from, int to, Bytes bytes);
  /// The next message of that route, to a cluster this process owns, if it has come.
  virtual std::optional<Bytes> try_receive(int from, int to);
  /// Waits for it. Throws RuntimeError when it cannot come any more.
  virtual Bytes receive(int from, int to);

  /// What the owner of `from` gives, in all processes. Each calls it, in the same order.
  virtual Bytes broadcast(int from, Bytes bytes);
  /// One number of each process, by rank. Each calls it, in the same order.
  virtual std::vector<std::int64_t> gather(std::int64_t number);

 protected:
  void arrived(int from, int to, Bytes bytes) { m_mail[{from, to}].push_back(std::move(bytes)); }

 private:
  const int m_clusters;
  std::map<std::pair<int, int>, std::deque<Bytes>> m_mail;
};

}  // namespace mtsim::runtime
