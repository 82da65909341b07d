// SPDX-License-Identifier: Apache-2.0
#include "sim/memory_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/error.h"

namespace mtsim::sim {
namespace {

/// rows * row_cost + bytes / bandwidth. Rows that follow each other without a gap are one row to the DDR.
class BandwidthModel : public MemoryModel {
 public:
  explicit BandwidthModel(const MachineConfig& machine)
      : m_bytes_per_cycle(machine.bytes_per_cycle(machine.ddr.bandwidth_gb_s)),
        m_row_cost_cycles(machine.ddr.row_cost_ns * machine.core.clock_ghz) {}

  double service_cycles(const Request& request) const override {
    const bool contiguous = request.pitch_bytes == request.row_bytes;
    const auto rows = static_cast<double>(contiguous ? 1 : request.rows);
    const double bytes = static_cast<double>(request.rows) * static_cast<double>(request.row_bytes);
    return rows * m_row_cost_cycles / request.row_sharers + bytes / m_bytes_per_cycle;
  }

 private:
  double m_bytes_per_cycle;
  double m_row_cost_cycles;
};

struct Entry {
  const char* name;
  std::unique_ptr<MemoryModel> (*make)(const MachineConfig&);
};

template <class Model>
std::unique_ptr<MemoryModel> make(const MachineConfig& machine) {
  return std::make_unique<Model>(machine);
}

/// A new model is a class above and a line here.
constexpr Entry k_models[] = {{"bandwidth", make<BandwidthModel>}};

}  // namespace

std::vector<std::string> memory_model_names() {
  std::vector<std::string> names;
  for (const Entry& entry : k_models) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<MemoryModel> make_memory_model(const MachineConfig& machine) {
  for (const Entry& entry : k_models) {
    if (machine.ddr.memory_model == entry.name) return entry.make(machine);
  }
  throw SimError(fmt::format("unknown DDR model '{}' (ddr.memory_model); known models: {}", machine.ddr.memory_model,
                             fmt::join(memory_model_names(), ", ")));
}

}  // namespace mtsim::sim
