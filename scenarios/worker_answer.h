// SPDX-License-Identifier: Apache-2.0
// How a child process's work comes back: its result, or the exception that ended it, as text through a pipe.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace mtsim::scenarios {

/// In the child: what `work` returned or threw. Wrong input stays distinguished from all that else goes wrong.
std::string answer_of(const std::function<std::string()>& work);
/// The answer of a child that could give none.
std::string failed_answer(const std::string& why);
/// In the parent: the result, or UsageError for wrong input and ProgramFailed for the rest; an empty answer too.
std::string result_of(const std::string& answer);

/// In the child, first: however the parent ends, its children do (by `signal`). What they find out has nobody to go to.
void end_with_parent(pid_t parent, int signal);

}  // namespace mtsim::scenarios
