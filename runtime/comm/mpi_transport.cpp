// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/mpi_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <thread>

#include "runtime/error.h"

namespace mtsim::runtime {
namespace {

constexpr int k_talk = 0;  // number of a message between processes; those between clusters have the others
constexpr std::chrono::microseconds k_shortest_nap{20}, k_longest_nap{1000};

std::string text_of(const Bytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
Bytes bytes_of_text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace

MpiTransport::MpiTransport(int clusters, const std::vector<std::pair<std::string, std::string>>& inputs)
    : Transport(clusters), m_exceptions(std::uncaught_exceptions()) {
  agree(inputs);
  m_agreed = true;
}

MpiTransport::~MpiTransport() {
  if (m_agreed && std::uncaught_exceptions() > m_exceptions) m_ranks.abandon();
}

/// All tell rank 0, which tells all what is wrong.
void MpiTransport::agree(const std::vector<std::pair<std::string, std::string>>& inputs) {
  std::string verdict;
  if (rank() == 0) {
    for (int other = 1; other < ranks(); ++other) {
      for (const auto& [name, text] : inputs) {
        const std::string its = text_of(from_rank(other));
        if (its != text && verdict.empty())
          verdict =
              fmt::format("mpirun: rank {} has {} '{}', rank 0 '{}'; give all ranks the same", other, name, its, text);
      }
    }
    for (int other = 1; other < ranks(); ++other) m_ranks.send(other, k_talk, verdict);
  } else {
    for (const auto& [name, text] : inputs) m_ranks.send(0, k_talk, text);
    verdict = text_of(from_rank(0));
  }
  if (!verdict.empty()) throw RuntimeError(verdict);
}

void MpiTransport::poll() {
  while (std::optional<Ranks::Message> message = m_ranks.receive()) {
    Bytes bytes = bytes_of_text(message->text);
    if (message->number == k_talk) {
      m_talk[message->from].push_back(std::move(bytes));
    } else {
      const int route = message->number - 1;
      arrived(route / clusters(), route % clusters(), std::move(bytes));
    }
  }
}

void MpiTransport::wait(const std::function<bool()>& is_there) {
  auto nap = k_shortest_nap;
  for (poll(); !is_there(); poll()) {
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, k_longest_nap);
  }
}

void MpiTransport::send(int from, int to, Bytes bytes) {
  if (owns(to))
    arrived(from, to, std::move(bytes));
  else
    m_ranks.send(owner(to), 1 + from * clusters() + to, text_of(bytes));
}

std::optional<Bytes> MpiTransport::try_receive(int from, int to) {
  poll();
  return Transport::try_receive(from, to);
}

Bytes MpiTransport::receive(int from, int to) {
  if (owns(from)) return Transport::receive(from, to);
  std::optional<Bytes> bytes;
  wait([&] { return (bytes = Transport::try_receive(from, to)).has_value(); });
  return std::move(*bytes);
}

Bytes MpiTransport::from_rank(int rank) {
  std::deque<Bytes>& talk = m_talk[rank];
  wait([&] { return !talk.empty(); });
  Bytes bytes = std::move(talk.front());
  talk.pop_front();
  return bytes;
}

Bytes MpiTransport::broadcast(int from, Bytes bytes) {
  if (!owns(from)) return from_rank(owner(from));
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank()) m_ranks.send(other, k_talk, text_of(bytes));
  }
  return bytes;
}

std::vector<std::int64_t> MpiTransport::gather(std::int64_t number) {
  for (int other = 0; other < ranks(); ++other) {
    if (other != rank()) m_ranks.send(other, k_talk, std::to_string(number));
  }
  std::vector<std::int64_t> numbers;
  for (int other = 0; other < ranks(); ++other)
    numbers.push_back(other == rank() ? number : std::stoll(text_of(from_rank(other))));
  return numbers;
}

}  // namespace mtsim::runtime
