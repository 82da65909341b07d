// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/serve.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/error.h"
#include "runtime/serving/engine.h"

namespace mtsim::runtime {
namespace {

void check(const Workload& workload, const ServeOptions& options) {
  if (workload.empty()) throw RuntimeError("a workload without requests");
  if (options.context < 1)
    throw RuntimeError(fmt::format("a context of {} tokens: give what the model was made for", options.context));
  if (options.clusters_per_device < 1)
    throw RuntimeError(fmt::format("{} clusters a device: at least one", options.clusters_per_device));
  for (std::size_t i = 0; i < workload.size(); ++i) {
    const Request& request = workload[i];
    if (request.id != static_cast<std::int64_t>(i) || (i > 0 && request.arrival_s < workload[i - 1].arrival_s) ||
        !(request.arrival_s >= 0) || request.prompt_tokens < 1 || request.output_tokens < 1) {
      throw RuntimeError(
          fmt::format("request {} in place {} of the workload, at {} s, {} prompt and {} output tokens: requests come "
                      "by arrival, numbered from 0, with at least a token each",
                      request.id, i, request.arrival_s, request.prompt_tokens, request.output_tokens));
    }
    if (options.executor != nullptr && std::ssize(request.ids) != request.prompt_tokens) {
      throw RuntimeError(fmt::format("request {} has {} ids for a prompt of {} tokens; values need all of them",
                                     request.id, request.ids.size(), request.prompt_tokens));
    }
  }
}

/// What is too long for the model, or for all the caches of a replica.
std::string why_not(const Request& request, std::int64_t context, std::int64_t room) {
  const std::int64_t positions = positions_of(request);
  if (positions > context) {
    return fmt::format("{} prompt and {} output tokens take {} positions, the model was made for {}",
                       request.prompt_tokens, request.output_tokens, positions, context);
  }
  if (positions > room) {
    return fmt::format("{} prompt and {} output tokens take {} positions, the caches of a decode replica have {}",
                       request.prompt_tokens, request.output_tokens, positions, room);
  }
  return "";
}

/// What whole blocks hold of so many positions.
std::int64_t in_blocks(std::int64_t positions, const KvOptions& kv) {
  constexpr std::int64_t k_unit = 4;  // keys that attention loads together
  const std::int64_t block = kv.block > 0 ? kv.block : kv.mode == KvMode::paged ? k_kv_block : k_unit;
  return positions / block * block;
}

}  // namespace

ServingResult serve(const ServingPlan& plan, const Workload& workload, IterationCost& cost,
                    const ServeOptions& options) {
  check(workload, options);
  const std::int64_t room = in_blocks(decode_positions(plan, cost), plan.kv);
  ServingResult result;
  LongestRequest longest;
  for (const Request& request : workload) {
    RequestRecord record;
    record.id = request.id;
    record.prompt_tokens = request.prompt_tokens;
    record.arrival_s = request.arrival_s;
    record.why = why_not(request, options.context, room);
    if (options.executor != nullptr) record.ids = request.ids;
    if (!record.why.empty()) {
      record.outcome = Outcome::rejected;
      ++result.rejected;
    } else {
      longest.prompt = std::max(longest.prompt, request.prompt_tokens);
      longest.context = std::max(longest.context, positions_of(request));
    }
    result.requests.push_back(std::move(record));
  }
  if (result.rejected == std::ssize(workload)) {
    throw RuntimeError(
        fmt::format("none of {} requests can be served; the first: {}", workload.size(), result.requests.front().why));
  }
  if (plan.kv.mode == KvMode::paged) longest.prompt = longest.context;  // of one that was preempted
  Engine(plan, workload, cost, options, memory_of(plan, cost, longest), longest.context, result).run();
  return result;
}

}  // namespace mtsim::runtime
