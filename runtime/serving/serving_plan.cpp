// SPDX-License-Identifier: Apache-2.0
#include "runtime/serving/serving_plan.h"

#include <fmt/format.h>

namespace mtsim::runtime {

std::string_view to_string(PipelineMode mode) {
  switch (mode) {
    case PipelineMode::coupled: return "coupled";
    case PipelineMode::bounded: return "bounded";
    case PipelineMode::unbounded: return "unbounded";
  }
  return "";
}

std::string_view to_string(CoupledBatch batch) { return batch == CoupledBatch::together ? "together" : "continuous"; }

std::int64_t ServingPlan::clusters() const {
  if (mode == PipelineMode::coupled) return decode.clusters();
  return prefill.clusters() + buffer.clusters + decode.clusters();
}

std::string ServingPlan::str() const {
  std::string text;
  if (mode == PipelineMode::coupled) {
    text = fmt::format("coupled ({})", to_string(coupled_batch));
  } else {
    const std::string tp = prefill.tp > 1 ? fmt::format("TP{} ", prefill.tp) : "";
    const std::string waiting = mode == PipelineMode::unbounded ? "unbounded"
                                : !buffer.slack                 ? fmt::format("{}", buffer.clusters)
                                : buffer.clusters == 0          ? "slack"
                                                                : fmt::format("{} and slack", buffer.clusters);
    const std::string together = prefill.micro_batch > 1 ? fmt::format(" by {}", prefill.micro_batch) : "";
    text = fmt::format("prefill {}{}x{}{}, buffer {}", tp, prefill.dp, prefill.pp, together, waiting);
  }
  text += fmt::format(", decode TP{} PP{}", decode.tp, decode.pp);
  if (decode.dp > 1) text += fmt::format(" DP{}", decode.dp);
  return text + fmt::format(", {} a micro-batch", decode.micro_batch);
}

}  // namespace mtsim::runtime
