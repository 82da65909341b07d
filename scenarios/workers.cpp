// SPDX-License-Identifier: Apache-2.0
#include "scenarios/workers.h"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "scenarios/worker_answer.h"

namespace mtsim::scenarios {

namespace {

struct Piece {
  std::size_t index = 0;
  Child child;
};

Piece start(const std::function<std::string(std::size_t)>& work, std::size_t index) {
  return {index, start_child(SIGTERM, [&](int socket) { write_all(socket, answer_of([&] { return work(index); })); })};
}

}  // namespace

std::size_t usable_cores(int sharing) {
  // mpirun may have bound this process to some of them.
  cpu_set_t mine;
  const std::size_t all = std::max(1U, std::thread::hardware_concurrency());
  const std::size_t bound =
      ::sched_getaffinity(0, sizeof mine, &mine) == 0 ? static_cast<std::size_t>(CPU_COUNT(&mine)) : all;
  return std::max<std::size_t>(1, std::min(bound, all / static_cast<std::size_t>(sharing)));
}

std::vector<std::string> in_workers(std::size_t count, const std::function<std::string(std::size_t)>& work,
                                    const std::function<void()>& on_done) {
  const std::size_t parallel = usable_cores();
  std::vector<std::string> sent(count);
  std::vector<Piece> running;
  for (std::size_t next = 0; next < count || !running.empty();) {
    while (next < count && running.size() < parallel) running.push_back(start(work, next++));
    std::vector<pollfd> polled;
    for (const Piece& piece : running) polled.push_back({piece.child.socket, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    for (std::size_t i = running.size(); i-- > 0;) {
      if (polled[i].revents == 0) continue;
      char part[4096];
      const ssize_t n = ::read(running[i].child.socket, part, sizeof part);
      if (n < 0 && errno == EINTR) continue;
      if (n > 0) {
        sent[running[i].index].append(part, static_cast<std::size_t>(n));
        continue;
      }
      ::close(running[i].child.socket);
      int status = 0;
      while (::waitpid(running[i].child.pid, &status, 0) < 0 && errno == EINTR) {
      }
      if (!WIFEXITED(status))
        sent[running[i].index] = failed_answer(fmt::format("a worker process died ({})", strsignal(WTERMSIG(status))));
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      if (on_done) on_done();
    }
  }
  for (std::string& text : sent) text = result_of(text);
  return sent;
}

}  // namespace mtsim::scenarios
