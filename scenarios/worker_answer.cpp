// SPDX-License-Identifier: Apache-2.0
#include "scenarios/worker_answer.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

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

Child start_child(int signal, const std::function<void(int socket)>& body) {
  const auto check = [](bool done, const char* what) {
    if (done) return;
    if (errno == EMFILE)
      throw UsageError(
          "too few files may be open at once for this many worker processes; raise the limit (ulimit -n) or ask for "
          "fewer processes (explore: --jobs)");
    throw std::system_error(errno, std::generic_category(), what);
  };
  int ends[2];
  check(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  check(pid >= 0, "fork");
  if (pid == 0) {
    if (::prctl(PR_SET_PDEATHSIG, signal) != 0 || ::getppid() != parent) ::_exit(1);
    ::close(ends[0]);
    body(ends[1]);
    ::_exit(0);  // what the parent has open and would flush is the parent's
  }
  ::close(ends[1]);
  return {pid, ends[0]};
}

bool write_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace mtsim::scenarios
