// SPDX-License-Identifier: Apache-2.0
// Processes that live as long as the work: each elaborates its machine and schedules its microkernels once, then
// answers request after request. workers.h starts a process a piece instead.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace mtsim::scenarios {

class WorkerPool {
 public:
  /// `work` runs in the processes, from request to answer; at most one process a request at a time. Processes start
  /// here: before MPI, threads and SystemC. They end with the pool and with its process, however that dies.
  WorkerPool(std::size_t processes, std::function<std::string(const std::string&)> work);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  std::size_t processes() const { return m_processes.size(); }
  bool has_idle() const;
  /// Gives a request to an idle process; `index` comes back with the answer.
  void start(std::size_t index, const std::string& request);
  /// Waits `timeout_ms` (-1: for good) for at least one answer; gives all there are, as worker_answer.h writes them.
  /// ProgramFailed for a process that died.
  void answers(int timeout_ms, const std::function<void(std::size_t, std::string)>& on_answer);

 private:
  struct Process {
    pid_t pid = 0;
    int socket = -1;
    std::size_t index = 0;
    bool busy = false;
  };

  std::vector<Process> m_processes;
};

}  // namespace mtsim::scenarios
