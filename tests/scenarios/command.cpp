// SPDX-License-Identifier: Apache-2.0
#include "tests/scenarios/command.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace mtsim::test {

namespace fs = std::filesystem;

Folder::Folder() {
  std::string pattern = (fs::temp_directory_path() / "mtsim_test_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  m_path = pattern;
}

Folder::~Folder() {
  std::error_code ignored;
  fs::remove_all(m_path, ignored);
}

void Folder::write(const std::string& name, std::string_view text) const {
  std::ofstream out(m_path / name, std::ios::binary);
  out << text;
}

std::string Folder::read(const std::string& name) const {
  std::ifstream in(m_path / name, std::ios::binary);
  if (!in) throw std::runtime_error("no file " + name);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

CommandResult Folder::mtsim(const std::string& arguments) const { return shell(MTSIM_COMMAND " " + arguments); }

CommandResult Folder::mpirun(int ranks, const std::string& arguments) const {
  return shell(mpirun_command() + " -n " + std::to_string(ranks) + " " MTSIM_COMMAND " " + arguments);
}

CommandResult Folder::shell(const std::string& line) const {
  const std::string all = "cd " + m_path.string() + " && export MTSIM_MEMO=memo.json && { " + line +
                          "; } >command.out 2>command.err </dev/null";
  const int status = std::system(all.c_str());
  CommandResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read("command.out");
  result.err = read("command.err");
  return result;
}

std::string mpirun_command() {
  // It wants an ssh even where all ranks are on this host; any program there is will do.
  return "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=sh "
         "HWLOC_HIDE_ERRORS=2 " MTSIM_MPIRUN " --oversubscribe";
}

std::string source(const std::string& path) { return std::string(MTSIM_SOURCE) + "/" + path; }

}  // namespace mtsim::test
