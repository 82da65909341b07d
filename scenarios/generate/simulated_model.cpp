// SPDX-License-Identifier: Apache-2.0
#include "scenarios/generate/simulated_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/hash.h"
#include "runtime/comm/mpi_transport.h"
#include "runtime/comm/mpirun.h"
#include "scenarios/error.h"

namespace mtsim::scenarios {

SimulatedModel::SimulatedModel(const sim::MachineConfig& machine, const models::LlamaConfig& config,
                               const models::Checkpoint* checkpoint, const SimulatedOptions& options)
    : m_layers(config.layers) {
  const auto count = static_cast<int>(options.parallelism.clusters());
  const bool is_single = count == 1 && !runtime::mpirun::is_there();
  if (!is_single && options.backend.layers >= 0)
    throw UsageError("--layers is for one cluster in one process; leave it, or tp and pp and mpirun");
  if (!is_single && options.cluster.observer != nullptr)
    throw UsageError("--trace and --dram-trace follow one cluster in one process; leave them, or tp and pp and mpirun");
  if (is_single)
    m_transport = std::make_unique<runtime::Transport>(count);
  else if (runtime::mpirun::is_there())
    m_transport = std::make_unique<runtime::MpiTransport>(count, options.inputs);
  else
    m_transport = std::make_unique<runtime::Transport>(count);
  std::vector<sim::Cluster*> clusters;
  for (int i = 0; i < count; ++i) {
    sim::ClusterOptions its = options.cluster;
    if (!m_transport->owns(i)) its.depth = sim::Depth::timing;
    m_clusters.push_back(std::make_unique<sim::Cluster>(machine, its));
    clusters.push_back(m_clusters.back().get());
  }
  if (is_single) {
    m_single = std::make_unique<runtime::ClusterBackend>(*clusters.front(), config, checkpoint, options.backend);
    m_layers = m_single->model().part().layers;
  } else {
    m_parallel = std::make_unique<runtime::ParallelBackend>(clusters, config, checkpoint, options.backend,
                                                            options.parallelism, *m_transport);
  }
}

std::int64_t SimulatedModel::layers() const { return m_layers; }

std::int64_t SimulatedModel::weight_bytes() const {
  return m_single ? m_single->model().bytes() : m_parallel->weight_bytes();
}

std::int64_t SimulatedModel::cache_bytes() const {
  return m_single ? m_single->cache().blocks() * m_single->cache().block_bytes() : m_parallel->cache_bytes();
}

std::vector<RankWork> SimulatedModel::work() {
  if (m_single) return {};
  const std::vector<std::int64_t> packets = m_transport->gather(m_parallel->executed_packets());
  std::vector<RankWork> result;
  for (std::size_t rank = 0; rank < packets.size(); ++rank) {
    RankWork its{static_cast<int>(rank), {}, packets[rank]};
    for (int i = 0; i < clusters(); ++i) {
      if (m_transport->owner(i) == its.rank) its.clusters.push_back(i);
    }
    result.push_back(std::move(its));
  }
  return result;
}

std::string identity_of(const models::Checkpoint& checkpoint) {
  constexpr std::size_t k_ends = std::size_t{1} << 16;  // bytes of a file's beginning, and of its end
  std::string text;
  for (const models::MappedFile& file : checkpoint.files()) {
    const std::string_view bytes = file.text();
    isa::Hash hash;
    hash.add(bytes.substr(0, k_ends));
    hash.add(bytes.substr(bytes.size() - std::min(bytes.size(), k_ends)));
    text += fmt::format("{}{} bytes, {:016x}", text.empty() ? "" : "; ", bytes.size(), hash.value());
  }
  return text;
}

}  // namespace mtsim::scenarios
