// SPDX-License-Identifier: Apache-2.0
#include "scenarios/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace mtsim::scenarios {

using Clock = std::chrono::steady_clock;

Progress::Progress(std::string title, std::int64_t total) : m_title(std::move(title)), m_total(total) {
  if (isatty(STDERR_FILENO)) m_thread = std::thread([this] { draw_until_stopped(); });
}

Progress::~Progress() {
  if (!m_thread.joinable()) return;
  {
    std::lock_guard lock(m_mutex);
    m_stop = true;
  }
  m_stopped.notify_one();
  m_thread.join();
}

void Progress::draw_until_stopped() {
  constexpr int k_width = 32;
  constexpr auto k_quiet = std::chrono::seconds(2);
  constexpr auto k_refresh = std::chrono::milliseconds(200);
  const auto start = Clock::now();
  std::unique_lock lock(m_mutex);
  if (m_stopped.wait_for(lock, k_quiet, [this] { return m_stop; })) return;
  do {
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (m_total > 0) {
      const std::int64_t done = m_done;
      const auto filled = static_cast<std::size_t>(k_width * done / m_total);
      const std::string left = done > 0 ? fmt::format(", {:.0f} s left", seconds / static_cast<double>(done) *
                                                                             static_cast<double>(m_total - done))
                                        : "";
      fmt::print(stderr, "\r{} [{:<{}}] {}/{}  {:.0f} s{} ", m_title, std::string(filled, '#'), k_width, done, m_total,
                 seconds, left);
    } else {
      fmt::print(stderr, "\r{}  {:.0f} s ", m_title, seconds);
    }
    std::fflush(stderr);
  } while (!m_stopped.wait_for(lock, k_refresh, [this] { return m_stop; }));
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
}

}  // namespace mtsim::scenarios
