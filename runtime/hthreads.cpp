// SPDX-License-Identifier: Apache-2.0
#include "runtime/hthreads.h"

#include <memory>
#include <utility>

namespace mtsim::runtime {

sim::LaunchResult ThreadGroup::exec(const sim::DspProgram& program) { return m_cluster.launch(program); }

sim::DspProgram unified_kernel(std::vector<sim::DspProgram> programs, ProgramMet met) {
  const auto all = std::make_shared<const std::vector<sim::DspProgram>>(std::move(programs));
  return [all, met = std::move(met)](sim::Dsp& dsp) {
    if (met) met(0, dsp);
    for (std::size_t i = 0; i < all->size(); ++i) {
      (*all)[i](dsp);
      dsp.free_all();
      dsp.group_barrier(0);
      if (met) met(i + 1, dsp);
    }
  };
}

}  // namespace mtsim::runtime
