// SPDX-License-Identifier: Apache-2.0
// How long the DDR is busy with a transfer. One small interface, so that another DDR model can be put in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/config/machine.h"

namespace mtsim::sim {

/// Called once when a transfer that touches the DDR starts; the Fabric shares the DDR among transfers max-min fairly,
/// in units of the service time returned here.
class MemoryModel {
 public:
  struct Request {
    std::uint64_t start = 0;  // DDR offset of the first byte
    std::int64_t rows = 1;
    std::int64_t row_bytes = 0;
    std::int64_t pitch_bytes = 0;  // from row start to row start
    bool is_write = false;
    int row_sharers = 1;  // cores of a row_syn group that share each row's cost
  };
  virtual ~MemoryModel() = default;
  /// Cycles the DDR needs for the request when nothing else uses it.
  virtual double service_cycles(const Request& request) const = 0;
};

/// Constructs the model `machine.ddr.memory_model` names; throws SimError listing the known names.
std::unique_ptr<MemoryModel> make_memory_model(const MachineConfig& machine);
std::vector<std::string> memory_model_names();

}  // namespace mtsim::sim
