// SPDX-License-Identifier: Apache-2.0
// What `mtsim generate` says of a generation: where its simulated time went.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "runtime/generation.h"
#include "runtime/kv/kv_cache.h"
#include "scenarios/generate/simulated_model.h"
#include "scenarios/report.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// What was asked, in words.
struct GenerateRequest {
  std::string model;
  std::string backend;  // reference, simulated, timing
  std::string plan;     // a2
  std::string kv;       // "paged(512)"
  kernels::DType dtype = kernels::DType::f16;
  std::int64_t layers = 0;
  std::int64_t prompt_tokens = 0;
  double clock_hz = 0;  // 0: no simulated time
  double weight_bytes = 0;
  std::int64_t cache_bytes = 0;
  int clusters = 1;
  std::vector<RankWork> work;  // of each process, with more than one cluster or under mpirun
  models::SamplerOptions sampler;
  bool has_ids = true;  // false: a prompt that is a number of tokens
};

/// Times of one kind of iteration, by operator: those of all layers together.
struct OperatorSum {
  std::string name;  // "attention", of the layers "q"
  std::string kernel;
  std::int64_t times = 0;  // it ran
  std::int64_t launches = 0;
  double macs = 0;
  std::int64_t cycles = 0;
  sim::CycleAccount account{};
  std::int64_t ddr_bytes = 0, gsm_bytes = 0, packets = 0;
};

struct PhaseSum {
  std::int64_t iterations = 0, tokens = 0;
  std::int64_t cycles = 0, launch_cycles = 0, comm_cycles = 0, launches = 0;
  double host_s = 0;
  std::vector<OperatorSum> operators;  // in the order they run
};
/// Of steps [first, end).
PhaseSum sum_of(const runtime::Generation& generation, std::size_t first, std::size_t end);

Json generate_json(const GenerateRequest& request, const runtime::Generation& generation, const std::string& text,
                   bool stats, const sim::Machine* machine);
/// What each process executed; "" for one cluster without mpirun.
std::string work_text(const std::vector<RankWork>& work);
/// The lines of --stats.
std::string generate_stats_text(const GenerateRequest& request, const runtime::Generation& generation);

}  // namespace mtsim::scenarios
