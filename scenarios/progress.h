// SPDX-License-Identifier: Apache-2.0
// A bar on stderr for work over two seconds, on a terminal only. A thread draws it, so that one long launch shows life
// too.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace mtsim::scenarios {

class Progress {
 public:
  /// `total` steps; 0 when unknown (then only the elapsed time moves).
  explicit Progress(std::string title, std::int64_t total = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step() { ++m_done; }

 private:
  void draw_until_stopped();

  std::string m_title;
  std::int64_t m_total;
  std::atomic<std::int64_t> m_done = 0;
  std::mutex m_mutex;
  std::condition_variable m_stopped;
  bool m_stop = false;
  std::thread m_thread;
};

}  // namespace mtsim::scenarios
