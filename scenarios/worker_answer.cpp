// SPDX-License-Identifier: Apache-2.0
#include "scenarios/worker_answer.h"

#include <sys/prctl.h>
#include <unistd.h>

#include "isa/diagnostic.h"
#include "isa/file_use.h"
#include "kernels/library.h"
#include "scenarios/error.h"
#include "sim/config/yaml.h"

namespace mtsim::scenarios {

namespace {

// The first byte of an answer.
constexpr char k_result = 'r', k_usage = 'u', k_failed = 'f';

}  // namespace

std::string answer_of(const std::function<std::string()>& work) {
  try {
    return k_result + work();
  } catch (const UsageError& error) {
    return k_usage + std::string(error.what());
  } catch (const sim::ConfigError& error) {
    return k_usage + std::string(error.what());
  } catch (const isa::FileClash& error) {
    return k_usage + std::string(error.what());
  } catch (const kernels::KernelError& error) {
    return k_usage + std::string(error.what());
  } catch (const isa::IsaError& error) {
    return k_usage + std::string(error.what());
  } catch (const std::exception& error) {
    return failed_answer(error.what());
  }
}

std::string failed_answer(const std::string& why) { return k_failed + why; }

std::string result_of(const std::string& answer) {
  if (answer.empty()) throw ProgramFailed("");
  if (answer.front() == k_usage) throw UsageError(answer.substr(1));
  if (answer.front() != k_result) throw ProgramFailed(answer.substr(1));
  return answer.substr(1);
}

void end_with_parent(pid_t parent, int signal) {
  if (::prctl(PR_SET_PDEATHSIG, signal) != 0 || ::getppid() != parent) ::_exit(1);
}

}  // namespace mtsim::scenarios
