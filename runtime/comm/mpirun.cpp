// SPDX-License-Identifier: Apache-2.0
#include "runtime/comm/mpirun.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

namespace mtsim::runtime::mpirun {

namespace {

int number_of(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  int number = otherwise;
  if (text != nullptr) std::from_chars(text, text + std::string_view(text).size(), number);
  return number;
}

}  // namespace

bool is_there() { return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr; }
int ranks_on_this_host() { return std::max(1, number_of("OMPI_COMM_WORLD_LOCAL_SIZE", 1)); }
int rank() { return number_of("OMPI_COMM_WORLD_RANK", 0); }
// mpirun A : B has two command lines.
bool repeats_rank_0() { return rank() != 0 && number_of("OMPI_NUM_APP_CTX", 1) == 1; }

}  // namespace mtsim::runtime::mpirun
