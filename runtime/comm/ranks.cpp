// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/ranks.h"

#include <mpi.h>

#include <list>
#include <utility>

namespace mtsim::runtime {

/// Keeps each text until it is there.
struct Ranks::Sending {
  struct Text {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::list<Text> texts;
};

Ranks::Ranks() : m_sending(std::make_unique<Sending>()) {
  // The default error handler ends all ranks with a message: nothing here could go on without one of them.
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(MPI_COMM_WORLD, &m_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &m_size);
}

Ranks::~Ranks() {
  // mpirun ends the others when a process goes without MPI_Finalize, which would wait for them.
  if (m_abandoned) return;
  for (Sending::Text& sending : m_sending->texts) MPI_Wait(&sending.request, MPI_STATUS_IGNORE);
  MPI_Finalize();
}

void Ranks::send(int to, int number, std::string text) {
  forget_what_arrived();
  Sending::Text& sending = m_sending->texts.emplace_back();
  sending.text = std::move(text);
  MPI_Isend(sending.text.data(), static_cast<int>(sending.text.size()), MPI_CHAR, to, number, MPI_COMM_WORLD,
            &sending.request);
}

std::optional<Ranks::Message> Ranks::receive() {
  forget_what_arrived();
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  Message message{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(message.text.data(), size, MPI_CHAR, message.from, message.number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return message;
}

void Ranks::forget_what_arrived() {
  m_sending->texts.remove_if([](Sending::Text& sending) {
    int is_done = 0;
    MPI_Test(&sending.request, &is_done, MPI_STATUS_IGNORE);
    return is_done != 0;
  });
}

}  // namespace mtsim::runtime
