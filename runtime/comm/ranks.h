// SPDX-License-Identifier: Apache-2.0
// The processes that mpirun started side by side: texts between them, each with a number that says what it is about.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace mtsim::runtime {

class Ranks {
 public:
  /// Joins the others. A process does so once, after the last fork of one that has to outlive it.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  /// The others are not to be waited for: this process ends with an error, which ends them too.
  void abandon() { m_abandoned = true; }

  int rank() const { return m_rank; }
  int size() const { return m_size; }

  struct Message {
    int from = 0, number = 0;
    std::string text;
  };
  /// Returns at once; the text is kept until it is there. `number` >= 0.
  void send(int to, int number, std::string text);
  /// The next message if one has come.
  std::optional<Message> receive();

 private:
  struct Sending;
  void forget_what_arrived();

  int m_rank = 0, m_size = 1;
  bool m_abandoned = false;
  std::unique_ptr<Sending> m_sending;  // all texts under way
};

}  // namespace mtsim::runtime
