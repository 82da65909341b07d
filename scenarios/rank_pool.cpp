// SPDX-License-Identifier: Apache-2.0
#include "scenarios/rank_pool.h"
#include "runtime/comm/mpirun.h"
#include "runtime/comm/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "scenarios/error.h"
#include "scenarios/worker_answer.h"

namespace mtsim::scenarios {

namespace {

// Numbers of messages: from k_first on a request's index.
constexpr int k_hello = 0;   // a helper's first word: how many processes it has, and what it is about
constexpr int k_end = 1;     // rank 0 needs no more; the helper's answer is its last word
constexpr int k_failed = 2;  // a helper cannot go on
constexpr int k_first = 3;

// MPI and the processes' sockets cannot be waited for together.
constexpr int k_poll_ms = 1;

runtime::Ranks::Message await(runtime::Ranks& ranks) {
  for (;;) {
    if (auto message = ranks.receive()) return std::move(*message);
    std::this_thread::sleep_for(std::chrono::milliseconds(k_poll_ms));
  }
}

}  // namespace

RankPool::RankPool(std::size_t processes, std::function<std::string(const std::string&)> work, const std::string& about)
    : m_pool(processes, std::move(work)) {
  if (!runtime::mpirun::is_there()) return;
  m_ranks = std::make_unique<runtime::Ranks>();
  try {
    meet(about);
  } catch (...) {
    end_helpers();
    throw;
  }
}

void RankPool::refuse(const std::string& why) {
  runtime::Ranks ranks;
  ranks.send(0, k_failed, why);
  while (await(ranks).number != k_end) {
  }
  ranks.send(0, k_end, "");
}

bool RankPool::leads() const { return !m_ranks || m_ranks->rank() == 0; }

RankPool::~RankPool() {
  if (m_ranks) end_helpers();
}

void RankPool::meet(const std::string& about) {
  if (!leads()) return m_ranks->send(0, k_hello, fmt::format("{} {}", m_pool.processes(), about));
  m_helpers.resize(static_cast<std::size_t>(m_ranks->size()));
  std::string other, refused;
  for (int i = 1; i < m_ranks->size(); ++i) {
    const runtime::Ranks::Message hello = await(*m_ranks);
    if (hello.number == k_failed) {
      refused = fmt::format("rank {}: {}", hello.from, hello.text);
      continue;
    }
    const std::size_t blank = hello.text.find(' ');
    m_helpers[static_cast<std::size_t>(hello.from)].processes = std::stoul(hello.text.substr(0, blank));
    if (hello.text.substr(blank + 1) != about)
      other = fmt::format("rank {} has {}, rank 0 {}", hello.from, hello.text.substr(blank + 1), about);
  }
  if (!refused.empty()) throw UsageError(refused);
  if (!other.empty())
    throw UsageError(fmt::format("mpirun: all ranks have to run the same command of the same program: {}", other));
}

/// What helpers were about to send is received, so that they can leave.
void RankPool::end_helpers() noexcept {
  if (!leads()) return;
  for (int rank = 1; rank < m_ranks->size(); ++rank) m_ranks->send(rank, k_end, "");
  for (int left = m_ranks->size() - 1; left > 0;) {
    if (await(*m_ranks).number == k_end) --left;
  }
}

std::size_t RankPool::processes() const {
  std::size_t all = m_pool.processes();
  for (const Helper& helper : m_helpers) all += helper.processes;
  return all;
}

void RankPool::run(const std::vector<std::string>& requests,
                   const std::function<void(std::size_t, const std::string&)>& on_answer) {
  std::size_t next = 0, done = 0;
  const auto take = [&](std::size_t index, const std::string& answer) {
    ++done;
    on_answer(index, result_of(answer));
  };
  while (done < requests.size()) {
    for (; next < requests.size() && m_pool.has_idle(); ++next) m_pool.start(next, requests[next]);
    for (std::size_t rank = 0; rank < m_helpers.size(); ++rank) {
      for (Helper& helper = m_helpers[rank]; next < requests.size() && helper.busy < helper.processes; ++next) {
        m_ranks->send(static_cast<int>(rank), k_first + static_cast<int>(next), requests[next]);
        ++helper.busy;
      }
    }
    m_pool.answers(m_ranks ? k_poll_ms : -1, take);
    while (m_ranks) {
      const auto message = m_ranks->receive();
      if (!message) break;
      if (message->number == k_failed) throw ProgramFailed(fmt::format("rank {}: {}", message->from, message->text));
      --m_helpers[static_cast<std::size_t>(message->from)].busy;
      take(static_cast<std::size_t>(message->number - k_first), message->text);
    }
  }
}

void RankPool::serve() {
  const auto answer = [&](std::size_t number, std::string text) {
    m_ranks->send(0, static_cast<int>(number), std::move(text));
  };
  try {
    for (;;) {
      while (const auto message = m_ranks->receive()) {
        if (message->number == k_end) return m_ranks->send(0, k_end, "");
        m_pool.start(static_cast<std::size_t>(message->number), message->text);
      }
      m_pool.answers(k_poll_ms, answer);
    }
  } catch (const std::exception& error) {
    m_ranks->send(0, k_failed, error.what());
  }
  while (await(*m_ranks).number != k_end) {
  }
  m_ranks->send(0, k_end, "");
}

}  // namespace mtsim::scenarios
