// SPDX-License-Identifier: Apache-2.0
#include "scenarios/worker_pool.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>
#include <utility>

#include "scenarios/error.h"
#include "scenarios/worker_answer.h"

namespace mtsim::scenarios {

namespace {

constexpr const char* k_died = "a worker process died; is the host short of memory?";

/// A message is its length and its bytes.
bool write_message(int fd, const std::string& text) {
  const std::uint64_t size = text.size();
  return write_all(fd, {reinterpret_cast<const char*>(&size), sizeof size}) && write_all(fd, text);
}

std::optional<std::string> read_message(int fd) {
  const auto read_all = [fd](char* at, std::size_t size) {
    while (size > 0) {
      const ssize_t n = ::read(fd, at, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      size -= static_cast<std::size_t>(n);
    }
    return true;
  };
  std::uint64_t size = 0;
  if (!read_all(reinterpret_cast<char*>(&size), sizeof size)) return std::nullopt;
  std::string text(size, '\0');
  if (!read_all(text.data(), size)) return std::nullopt;
  return text;
}

void serve(int socket, const std::function<std::string(const std::string&)>& work) {
  while (const auto request = read_message(socket)) {
    if (!write_message(socket, answer_of([&] { return work(*request); }))) break;
  }
}

}  // namespace

WorkerPool::WorkerPool(std::size_t processes, std::function<std::string(const std::string&)> work) {
  for (std::size_t i = 0; i < std::max<std::size_t>(1, processes); ++i) {
    const Child child = start_child(SIGKILL, [&](int socket) {
      std::signal(SIGINT, SIG_IGN);  // of a terminal's Ctrl-C: the parent's to act on
      for (const Process& other : m_processes) ::close(other.socket);
      serve(socket, work);
    });
    m_processes.push_back({child.pid, child.socket});
  }
}

WorkerPool::~WorkerPool() {
  for (const Process& process : m_processes) {
    ::close(process.socket);
    ::kill(process.pid, SIGKILL);
    while (::waitpid(process.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

bool WorkerPool::has_idle() const {
  return std::any_of(m_processes.begin(), m_processes.end(), [](const Process& process) { return !process.busy; });
}

void WorkerPool::start(std::size_t index, const std::string& request) {
  Process& process = *std::find_if(m_processes.begin(), m_processes.end(), [](const Process& p) { return !p.busy; });
  process.index = index;
  process.busy = true;
  if (!write_message(process.socket, request)) throw ProgramFailed(k_died);
}

void WorkerPool::answers(int timeout_ms, const std::function<void(std::size_t, std::string)>& on_answer) {
  std::vector<pollfd> polled;
  std::vector<Process*> busy;
  for (Process& process : m_processes) {
    if (!process.busy) continue;
    polled.push_back({process.socket, POLLIN, 0});
    busy.push_back(&process);
  }
  if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    if (polled[i].revents == 0) continue;
    auto answer = read_message(busy[i]->socket);
    if (!answer) throw ProgramFailed(k_died);
    busy[i]->busy = false;
    on_answer(busy[i]->index, std::move(*answer));
  }
}

}  // namespace mtsim::scenarios
