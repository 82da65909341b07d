// SPDX-License-Identifier: Apache-2.0
// How a child process's work comes back: its result, or the exception that ended it, as text through a socket.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

namespace mtsim::scenarios {

/// In the child: what `work` returned or threw. Wrong input stays distinguished from all that else goes wrong.
std::string answer_of(const std::function<std::string()>& work);
/// The answer of a child that could give none.
std::string failed_answer(const std::string& why);
/// In the parent: the result, or UsageError for wrong input and ProgramFailed for the rest; an empty answer too.
std::string result_of(const std::string& answer);

/// A child process and the socket to it.
struct Child {
  pid_t pid = 0;
  int socket = -1;
};
/// Starts one that does `body` with its end of the socket and exits. However the parent ends, it does (by `signal`):
/// what it finds out has nobody to go to. Throws std::system_error.
Child start_child(int signal, const std::function<void(int socket)>& body);
/// False when nobody reads any more.
bool write_all(int socket, std::string_view bytes);

}  // namespace mtsim::scenarios
