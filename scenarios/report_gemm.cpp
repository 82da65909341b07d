// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "scenarios/report.h"
#include "scenarios/table.h"

namespace mtsim::scenarios {

namespace {

struct ClassTotal {
  std::string name;
  std::int64_t sum = 0;  // over cores
  double mean = 0;       // per core
  double percent = 0;    // of the launch's cycles
};

std::vector<ClassTotal> class_totals(const sim::LaunchResult& launch) {
  std::vector<ClassTotal> totals;
  for (int c = 0; c < sim::k_cycle_classes; ++c) {
    ClassTotal total{std::string(sim::name(static_cast<sim::CycleClass>(c)))};
    for (const auto& core : launch.cores) total.sum += core.cycles[static_cast<std::size_t>(c)];
    if (!launch.cores.empty()) total.mean = static_cast<double>(total.sum) / static_cast<double>(launch.cores.size());
    if (launch.cycles > 0) total.percent = 100 * total.mean / static_cast<double>(launch.cycles);
    totals.push_back(std::move(total));
  }
  return totals;
}

Json class_json(const ClassTotal& total) {
  return {{"cycles_sum", total.sum}, {"cycles_mean", total.mean}, {"percent", total.percent}};
}

struct Path {
  std::string name;  // "ddr->gsm"
  std::int64_t read = 0, written = 0;
};

std::vector<Path> used_paths(const sim::PathBytes& bytes) {
  std::vector<Path> paths;
  for (int from = 0; from < sim::k_spaces; ++from) {
    for (int to = 0; to < sim::k_spaces; ++to) {
      const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
      if (bytes.read[f][t] == 0 && bytes.written[f][t] == 0) continue;
      paths.push_back(
          {fmt::format("{}->{}", to_string(static_cast<sim::Space>(from)), to_string(static_cast<sim::Space>(to))),
           bytes.read[f][t], bytes.written[f][t]});
    }
  }
  return paths;
}

struct KernelTotals {
  std::int64_t calls = 0, packets = 0, instructions = 0;
};

KernelTotals kernel_totals(const sim::LaunchResult& launch) {
  KernelTotals totals;
  for (const auto& core : launch.cores) {
    totals.calls += core.kernel_calls;
    totals.packets += core.packets;
    totals.instructions += core.instructions;
  }
  return totals;
}

const std::vector<std::string> k_gemm_notes = {
    "one multiply-accumulate counts as one operation in gmac_s and in the peak; gflop_s is twice gmac_s",
    std::string(k_not_modelled),
};

Json tiles_json(const kernels::GemmTiles& tiles) {
  return {{"mg", tiles.mg}, {"kg", tiles.kg}, {"k2", tiles.k2}, {"n2", tiles.n2}};
}

}  // namespace

Json gemm_json(const GemmOutcome& outcome, const sim::Machine& machine) {
  const auto& [request, plan, launch] = std::tie(outcome.request, outcome.plan, outcome.launch);
  Json json;
  json["op"] = "gemm";
  json["shape"] = {{"m", plan.shape.m}, {"n", plan.shape.n}, {"k", plan.shape.k}};
  json["dtype"] = "f32";
  json["variant"] = to_string(plan.variant);
  json["dataflow"] = to_string(plan.dataflow);
  json["tile"] = tiles_json(plan.tiles);
  json["memory"] = {
      {"m2", plan.m2}, {"sm_bytes", plan.sm_bytes}, {"am_bytes", plan.am_bytes}, {"gsm_bytes", plan.gsm_bytes}};
  json["depth"] = to_string(request.depth);
  json["status"] = launch.fault ? "fault" : "done";
  json["fault"] = launch.fault ? fault_json(*launch.fault) : Json(nullptr);
  json["latency_ms"] = outcome.latency_ms;
  json["cycles"] = launch.cycles;
  json["gmac_s"] = outcome.gmac_s;
  json["gflop_s"] = 2 * outcome.gmac_s;
  json["peak_gmac_s"] = outcome.peak_gmac_s;
  json["utilisation"] = outcome.utilisation;
  json["stalls"] = Json::object();
  for (const auto& total : class_totals(launch)) {
    if (total.name == sim::name(sim::CycleClass::busy)) {
      json["busy"] = class_json(total);
    } else {
      json["stalls"][total.name] = class_json(total);
    }
  }
  json["bytes"] = Json::object();
  for (const auto& path : used_paths(launch.bytes))
    json["bytes"][path.name] = {{"read", path.read}, {"written", path.written}};
  json["dma_transfers"] = launch.dma_transfers;
  const KernelTotals kernels = kernel_totals(launch);
  json["kernels"] = {{"calls", kernels.calls}, {"packets", kernels.packets}, {"instructions", kernels.instructions}};
  json["kernels"]["programs"] = Json::object();
  for (const auto& called : launch.kernels) json["kernels"]["programs"][called.program] = called.calls;
  if (outcome.verification) {
    const Verification& v = *outcome.verification;
    json["verified"] = v.passed();
    json["max_error"] = v.max_error;
    json["error_bound"] = v.error_bound;
    json["worst_error_over_bound"] = v.worst_ratio;
  }
  json["findings"] = Json::array();
  for (const auto& f : launch.findings) {
    json["findings"].push_back({{"kind", f.kind}, {"core", f.core}, {"cycle", f.cycle}, {"message", f.message}});
  }
  json["machine"] = machine_json(machine);
  json["assumed"] = {{"instructions", outcome.assumed_instructions},
                     {"packet_rules", outcome.assumed_packet_rules},
                     {"machine", assumed_machine_keys(machine)}};
  json["notes"] = k_gemm_notes;
  json["host"] = {{"wall_s", outcome.wall_s}};
  return json;
}

std::string gemm_text(const GemmOutcome& outcome, const sim::Machine& machine) {
  const auto& plan = outcome.plan;
  const auto& launch = outcome.launch;
  std::string out =
      fmt::format("gemm f32  m={} n={} k={}  {} {}  tile mg={} kg={} k2={} n2={}  {} depth on {}\n", plan.shape.m,
                  plan.shape.n, plan.shape.k, to_string(plan.variant), to_string(plan.dataflow), plan.tiles.mg,
                  plan.tiles.kg, plan.tiles.k2, plan.tiles.n2, to_string(outcome.request.depth), machine_name(machine));
  if (launch.fault) out += "fault: " + launch.fault->str() + "\n";
  Table head({Align::left, Align::right, Align::left});
  head.add({"latency", fmt::format("{:.4f} ms", outcome.latency_ms),
            fmt::format("{} cycles, launch included", grouped(launch.cycles))});
  head.add({"rate", fmt::format("{:.1f} GMAC/s", outcome.gmac_s), fmt::format("{:.1f} GFLOP/s", 2 * outcome.gmac_s)});
  head.add({"utilisation", fmt::format("{:.1f} %", 100 * outcome.utilisation),
            fmt::format("of {:.1f} GMAC/s", outcome.peak_gmac_s)});
  const KernelTotals kernels = kernel_totals(launch);
  head.add({"kernel calls", grouped(kernels.calls), fmt::format("{} packets", grouped(kernels.packets))});
  head.add({"transfers", grouped(launch.dma_transfers)});
  out += head.text(2) + "\n";

  Table classes({Align::left, Align::right, Align::right, Align::right},
                {"cycles of a core", "mean", "%", "sum of cores"});
  for (const auto& total : class_totals(launch)) {
    classes.add({total.name, grouped(static_cast<std::int64_t>(total.mean + 0.5)), fmt::format("{:.1f}", total.percent),
                 grouped(total.sum)});
  }
  out += classes.text(2) + "\n";
  Table paths({Align::left, Align::right, Align::right}, {"path", "read", "written"});
  for (const auto& path : used_paths(launch.bytes))
    paths.add({path.name, bytes_text(path.read), bytes_text(path.written)});
  if (!paths.empty()) out += paths.text(2) + "\n";
  if (outcome.verification) {
    const Verification& v = *outcome.verification;
    out += fmt::format("verify: {}; max error {:.3e} (bound there {:.3e}), worst error / bound {:.3f}\n",
                       v.passed() ? "ok" : "FAILED", v.max_error, v.error_bound, v.worst_ratio);
    if (!v.passed()) out += fmt::format("verify: the worst element is Y[{}][{}]\n", v.worst_row, v.worst_column);
  }
  for (const auto& f : launch.findings) {
    out += fmt::format("finding: {} (core {}, cycle {}): {}\n", f.kind, f.core, grouped(f.cycle), f.message);
  }
  for (const auto& note : k_gemm_notes) out += "note: " + note + "\n";
  out += fmt::format("host: {:.2f} s\n", outcome.wall_s);
  return out;
}

}  // namespace mtsim::scenarios
