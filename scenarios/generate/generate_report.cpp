// SPDX-License-Identifier: Apache-2.0
#include "scenarios/generate/generate_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/table.h"

namespace mtsim::scenarios {
namespace {

using runtime::Generation;
using runtime::OperatorTime;

/// "layers.3.q" -> "q".
std::string without_layer(const std::string& name) {
  if (!name.starts_with("layers.")) return name;
  return name.substr(name.find('.', 7) + 1);
}

double milliseconds(std::int64_t cycles, double clock_hz) { return static_cast<double>(cycles) / clock_hz * 1e3; }

/// The largest classes of lost cycles, "dma_wait 61 %, barrier 4 %".
std::string lost(const sim::CycleAccount& account) {
  std::int64_t all = 0;
  std::vector<std::pair<std::int64_t, int>> classes;
  for (int c = 0; c < sim::k_cycle_classes; ++c) {
    const std::int64_t cycles = account[static_cast<std::size_t>(c)];
    all += cycles;
    if (static_cast<sim::CycleClass>(c) != sim::CycleClass::busy) classes.emplace_back(cycles, c);
  }
  std::sort(classes.rbegin(), classes.rend());
  std::vector<std::string> words;
  for (const auto& [cycles, c] : classes) {
    const double percent = all > 0 ? 100 * static_cast<double>(cycles) / static_cast<double>(all) : 0;
    if (words.size() == 2 || percent < 1) break;
    words.push_back(fmt::format("{} {:.0f} %", name(static_cast<sim::CycleClass>(c)), percent));
  }
  return joined(words);
}

double busy_percent(const sim::CycleAccount& account) {
  std::int64_t all = 0;
  for (const std::int64_t cycles : account) all += cycles;
  return all > 0 ? 100 * static_cast<double>(account[0]) / static_cast<double>(all) : 0;
}

Json account_json(const sim::CycleAccount& account) {
  Json json = Json::object();
  for (int c = 0; c < sim::k_cycle_classes; ++c)
    json[std::string(name(static_cast<sim::CycleClass>(c)))] = account[static_cast<std::size_t>(c)];
  return json;
}

double tokens_per_second(const PhaseSum& phase, double clock_hz) {
  return phase.cycles > 0 ? static_cast<double>(phase.tokens) * clock_hz / static_cast<double>(phase.cycles) : 0;
}

Json phase_json(const PhaseSum& phase, double clock_hz) {
  Json json = {{"iterations", phase.iterations}, {"tokens", phase.tokens}, {"host_s", phase.host_s}};
  if (clock_hz == 0) return json;
  json["simulated_ms"] = milliseconds(phase.cycles, clock_hz);
  json["cycles"] = phase.cycles;
  json["tokens_s"] = tokens_per_second(phase, clock_hz);
  json["launches"] = phase.launches;
  json["launch_cycles"] = phase.launch_cycles;
  json["comm_cycles"] = phase.comm_cycles;
  json["operators"] = Json::array();
  for (const OperatorSum& op : phase.operators) {
    const double seconds = static_cast<double>(op.cycles) / clock_hz;
    json["operators"].push_back({{"name", op.name},
                                 {"kernel", op.kernel},
                                 {"times", op.times},
                                 {"launches", op.launches},
                                 {"cycles", op.cycles},
                                 {"simulated_ms", seconds * 1e3},
                                 {"macs", op.macs},
                                 {"gmac_s", seconds > 0 ? op.macs / seconds / 1e9 : 0},
                                 {"ddr_bytes", op.ddr_bytes},
                                 {"gsm_bytes", op.gsm_bytes},
                                 {"packets", op.packets},
                                 {"core_cycles", account_json(op.account)}});
  }
  return json;
}

void add_phase(std::string& text, std::string_view title, const PhaseSum& phase, double clock_hz) {
  if (phase.iterations == 0) return;
  text += fmt::format("{}: {} token{} in {} iteration{}", title, phase.tokens, phase.tokens == 1 ? "" : "s",
                      phase.iterations, phase.iterations == 1 ? "" : "s");
  if (clock_hz == 0) {
    text += "\n";
    return;
  }
  text += fmt::format(", {:.3f} ms simulated, {:.4g} tokens/s\n", milliseconds(phase.cycles, clock_hz),
                      tokens_per_second(phase, clock_hz));
  Table table({Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
               Align::right, Align::left},
              {"operator", "kernel", "times", "ms", "%", "GMAC/s", "DDR", "busy", "lost to"});
  const auto percent = [&](std::int64_t cycles) {
    return fmt::format("{:.1f}", 100 * static_cast<double>(cycles) / static_cast<double>(phase.cycles));
  };
  for (const OperatorSum& op : phase.operators) {
    const double seconds = static_cast<double>(op.cycles) / clock_hz;
    table.add({op.name, op.kernel, std::to_string(op.times), fmt::format("{:.3f}", seconds * 1e3), percent(op.cycles),
               op.macs > 0 && seconds > 0 ? fmt::format("{:.1f}", op.macs / seconds / 1e9) : "",
               op.ddr_bytes > 0 ? bytes_text(op.ddr_bytes) : "", fmt::format("{:.0f} %", busy_percent(op.account)),
               lost(op.account)});
  }
  table.add({"launch", "hthreads", std::to_string(phase.launches),
             fmt::format("{:.3f}", milliseconds(phase.launch_cycles, clock_hz)), percent(phase.launch_cycles)});
  if (phase.comm_cycles > 0) {
    table.add({"communication", "links", "", fmt::format("{:.3f}", milliseconds(phase.comm_cycles, clock_hz)),
               percent(phase.comm_cycles)});
  }
  std::int64_t sum = phase.launch_cycles + phase.comm_cycles;
  for (const OperatorSum& op : phase.operators) sum += op.cycles;
  table.add({"sum", "", "", fmt::format("{:.3f}", milliseconds(sum, clock_hz)), percent(sum)});
  text += table.text(2);
}

/// What no core of the cluster did.
std::vector<std::string> on_host(const GenerateRequest& request, const Generation& generation) {
  if (request.clock_hz == 0) return {"everything"};
  std::vector<std::string> work{"tokenising", "sampling"};
  for (const auto& step : generation.steps) {
    for (const std::string& tensor : step.result.host_work) {
      if (std::find(work.begin(), work.end(), tensor) == work.end()) work.push_back(tensor);
    }
  }
  return work;
}

}  // namespace

PhaseSum sum_of(const Generation& generation, std::size_t first, std::size_t end) {
  PhaseSum phase;
  for (std::size_t i = first; i < std::min(end, generation.steps.size()); ++i) {
    const runtime::GenerationStep& step = generation.steps[i];
    ++phase.iterations;
    phase.tokens += step.tokens;
    phase.cycles += step.result.cycles;
    phase.launch_cycles += step.result.launch_cycles;
    phase.comm_cycles += step.result.comm_cycles;
    phase.launches += step.result.launches;
    phase.host_s += step.host_s;
    for (const OperatorTime& time : step.result.operators) {
      const std::string name = without_layer(time.name);
      auto op = std::find_if(phase.operators.begin(), phase.operators.end(),
                             [&](const OperatorSum& o) { return o.name == name && o.kernel == time.kernel; });
      if (op == phase.operators.end()) {
        phase.operators.push_back({name, time.kernel});
        op = phase.operators.end() - 1;
      }
      ++op->times;
      op->launches += time.launches;
      op->macs += time.macs;
      op->cycles += time.cycles;
      for (std::size_t c = 0; c < op->account.size(); ++c) op->account[c] += time.account[c];
      op->ddr_bytes += time.ddr_bytes;
      op->gsm_bytes += time.gsm_bytes;
      op->packets += time.packets;
    }
  }
  return phase;
}

Json generate_json(const GenerateRequest& request, const Generation& generation, const std::string& text, bool stats,
                   const sim::Machine* machine) {
  const std::size_t steps = generation.steps.size();
  Json json = {{"command", "generate"},
               {"model", request.model},
               {"backend", request.backend},
               {"dtype", to_string(request.dtype)},
               {"layers", request.layers},
               {"prompt_tokens", request.prompt_tokens},
               {"generated", generation.generated},
               {"stop", to_string(generation.stop)}};
  if (request.has_ids) json["token_ids"] = generation.ids;
  if (!generation.failure.empty()) json["failure"] = generation.failure;
  if (const auto& steps_done = generation.steps; !steps_done.empty() && steps_done.back().result.fault)
    json["fault"] = fault_json(*steps_done.back().result.fault);
  json["sampler"] = {
      {"temperature", request.sampler.temperature}, {"top_p", request.sampler.top_p}, {"seed", request.sampler.seed}};
  json["text"] = text;
  if (request.clock_hz > 0) {
    json["plan"] = request.plan;
    json["kv"] = request.kv;
    json["weight_bytes"] = request.weight_bytes;
    json["cache_bytes"] = request.cache_bytes;
    json["clusters"] = request.clusters;
    if (!request.work.empty()) {
      json["ranks"] = Json::array();
      for (const RankWork& its : request.work)
        json["ranks"].push_back({{"rank", its.rank}, {"clusters", its.clusters}, {"packets", its.packets}});
    }
    json["simulated_ms"] = Json::array();
    for (const auto& step : generation.steps)
      json["simulated_ms"].push_back(milliseconds(step.result.cycles, request.clock_hz));
  }
  if (stats) {
    json["stats"] = {{"prefill", phase_json(sum_of(generation, 0, 1), request.clock_hz)},
                     {"decode", phase_json(sum_of(generation, 1, steps), request.clock_hz)},
                     {"on_host", on_host(request, generation)}};
  }
  if (machine != nullptr) {
    json["machine"] = machine_json(*machine);
    json["notes"] = {k_not_modelled};
  }
  return json;
}

std::string work_text(const std::vector<RankWork>& work) {
  std::string text;
  for (const RankWork& its : work) {
    std::vector<std::string> clusters;
    for (const int cluster : its.clusters) clusters.push_back(std::to_string(cluster));
    text += fmt::format(
        "rank {}: {} packets executed{}\n", its.rank, its.packets,
        clusters.empty() ? "" : fmt::format(" on cluster{} {}", clusters.size() == 1 ? "" : "s", joined(clusters)));
  }
  return text;
}

std::string generate_stats_text(const GenerateRequest& request, const Generation& generation) {
  std::string text = fmt::format("{}, {} layers, {}, {} backend", request.model, request.layers,
                                 to_string(request.dtype), request.backend);
  if (request.clock_hz > 0) {
    text += fmt::format(", plan {}: weights {}, KV cache {} {}", request.plan,
                        bytes_text(static_cast<std::int64_t>(request.weight_bytes)), request.kv,
                        bytes_text(request.cache_bytes));
  }
  text += "\n";
  const PhaseSum prefill = sum_of(generation, 0, 1), decode = sum_of(generation, 1, generation.steps.size());
  add_phase(text, "prefill", prefill, request.clock_hz);
  add_phase(text, "decode", decode, request.clock_hz);
  text += fmt::format("off the DSP: {}\n", joined(on_host(request, generation)));
  text += fmt::format("host: {:.2f} s for the prefill", prefill.host_s);
  if (decode.iterations > 0) {
    text += fmt::format(", {:.2f} s for {} token{} more, {:.3g} a second", decode.host_s, decode.tokens,
                        decode.tokens == 1 ? "" : "s", static_cast<double>(decode.tokens) / decode.host_s);
  }
  return text + "\n";
}

}  // namespace mtsim::scenarios
