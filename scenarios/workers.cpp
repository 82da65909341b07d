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
#include <system_error>
#include <thread>

#include "scenarios/worker_answer.h"

namespace mtsim::scenarios {

namespace {

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;  // nobody reads any more
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

struct Child {
  std::size_t index = 0;
  pid_t pid = 0;
  int fd = -1;
};

Child start(const std::function<std::string(std::size_t)>& work, std::size_t index) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid == 0) {
    end_with_parent(parent, SIGTERM);
    ::close(ends[0]);
    write_all(ends[1], answer_of([&] { return work(index); }));
    ::_exit(0);  // what the parent has open and would flush is the parent's
  }
  ::close(ends[1]);
  return {index, pid, ends[0]};
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
  std::vector<Child> running;
  for (std::size_t next = 0; next < count || !running.empty();) {
    while (next < count && running.size() < parallel) running.push_back(start(work, next++));
    std::vector<pollfd> polled;
    for (const Child& child : running) polled.push_back({child.fd, POLLIN, 0});
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;
    for (std::size_t i = running.size(); i-- > 0;) {
      if (polled[i].revents == 0) continue;
      char part[4096];
      const ssize_t n = ::read(running[i].fd, part, sizeof part);
      if (n < 0 && errno == EINTR) continue;
      if (n > 0) {
        sent[running[i].index].append(part, static_cast<std::size_t>(n));
        continue;
      }
      ::close(running[i].fd);
      int status = 0;
      while (::waitpid(running[i].pid, &status, 0) < 0 && errno == EINTR) {
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
