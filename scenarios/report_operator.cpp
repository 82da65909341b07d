// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

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

/// AM and SM of the core that allocated most.
Json peak_json(const sim::LaunchResult& launch) {
  std::int64_t sm = 0, am = 0;
  for (const auto& core : launch.cores) {
    sm = std::max(sm, core.sm_bytes);
    am = std::max(am, core.am_bytes);
  }
  return {{"sm_bytes", sm}, {"am_bytes", am}, {"gsm_bytes", launch.gsm_bytes}};
}

bool multiplies(const OperatorOutcome& outcome) { return outcome.gmac_s > 0; }

std::vector<std::string> notes(const OperatorOutcome& outcome) {
  std::vector<std::string> notes = {
      multiplies(outcome)
          ? "one multiply-accumulate counts as one operation in gmac_s and in the peak; gflop_s is twice gmac_s"
          : "utilisation is of the DDR bandwidth: the least bytes the operator has to move, over the time from the "
            "program's start",
      std::string(k_not_modelled)};
  if (outcome.simulated_pieces < outcome.pieces) {
    notes.push_back(fmt::format("{} of {} equal pieces were simulated; the others take what the last two of them took",
                                outcome.simulated_pieces, outcome.pieces));
  }
  return notes;
}

}  // namespace

Json operator_json(const OperatorOutcome& outcome, const sim::Machine& machine) {
  const auto& [request, launch] = std::tie(outcome.request, outcome.launch);
  const OperatorInfo& info = outcome.op().info();
  Json json;
  json["op"] = info.name;
  for (std::size_t i = 0; i < info.dimensions.size(); ++i)
    json["shape"][std::string(info.dimensions[i].name)] = request.spec.shape[i];
  json["dtype"] = to_string(request.spec.dtype);
  if (!outcome.variant().empty()) json["variant"] = outcome.variant();
  json.update(outcome.plan);
  json["allocated"] = peak_json(launch);
  json["depth"] = to_string(request.options.depth);
  json["status"] = launch.fault ? "fault" : "done";
  json["fault"] = launch.fault ? fault_json(*launch.fault) : Json(nullptr);
  json["latency_ms"] = outcome.latency_ms;
  json["cycles"] = launch.cycles;
  if (multiplies(outcome)) {
    json["gmac_s"] = outcome.gmac_s;
    json["gflop_s"] = 2 * outcome.gmac_s;
    json["peak_gmac_s"] = outcome.peak_gmac_s;
  }
  json["ideal_bytes"] = outcome.ideal_bytes;
  json["ddr_gb_s"] = outcome.ddr_gb_s;
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
  Json& programs = json["kernels"]["programs"] = Json::object();
  for (const auto& called : launch.kernels)
    programs[called.program] = programs.value(called.program, std::int64_t{0}) + called.calls;
  if (outcome.verification) {
    const Verification& v = *outcome.verification;
    json["verified"] = v.passed();
    json["max_error"] = v.max_error;
    json["error_bound"] = v.error_bound;
    json["worst_error_over_bound"] = v.worst_ratio;
    json["rms_error"] = v.rms_error;
    json["rms_reference"] = v.rms_reference;
    if (v.rms_limit > 0) json["rms_limit"] = v.rms_limit;
  }
  json.update(outcome.results);
  if (outcome.simulated_pieces < outcome.pieces)
    json["pieces"] = {{"all", outcome.pieces}, {"simulated", outcome.simulated_pieces}};
  json["findings"] = findings_json(launch.findings);
  json["finding_notes"] = findings_json(launch.notes);
  json["suppressed"] = findings_json(launch.suppressed);
  json["machine"] = machine_json(machine);
  json["assumed"] = {{"instructions", outcome.assumed_instructions},
                     {"packet_rules", outcome.assumed_packet_rules},
                     {"machine", assumed_machine_keys(machine)}};
  json["notes"] = notes(outcome);
  json["host"] = {{"wall_s", outcome.wall_s}};
  return json;
}

std::string operator_text(const OperatorOutcome& outcome, const sim::Machine& machine) {
  const auto& launch = outcome.launch;
  const std::string variant = outcome.variant().empty() ? "" : outcome.variant() + " ";
  std::string out = fmt::format("{} {}  {}  {}{}  {} depth on {}\n", outcome.op().info().name,
                                to_string(outcome.request.spec.dtype), outcome.shape(), variant, outcome.plan_text,
                                to_string(outcome.request.options.depth), machine_name(machine));
  if (launch.fault) out += "fault: " + launch.fault->str() + "\n";
  Table head({Align::left, Align::right, Align::left});
  head.add({"latency", fmt::format("{:.4f} ms", outcome.latency_ms),
            fmt::format("{} cycles, launch included", grouped(launch.cycles))});
  if (multiplies(outcome)) {
    head.add({"rate", fmt::format("{:.1f} GMAC/s", outcome.gmac_s), fmt::format("{:.1f} GFLOP/s", 2 * outcome.gmac_s)});
    head.add({"utilisation", fmt::format("{:.1f} %", 100 * outcome.utilisation),
              fmt::format("of {:.1f} GMAC/s", outcome.peak_gmac_s)});
  } else {
    head.add({"rate", fmt::format("{:.2f} GB/s", outcome.ddr_gb_s),
              fmt::format("of {} it has to move, launch excluded",
                          bytes_text(static_cast<std::int64_t>(outcome.ideal_bytes)))});
    head.add({"utilisation", fmt::format("{:.1f} %", 100 * outcome.utilisation),
              fmt::format("of {:g} GB/s of DDR", machine.config().ddr.bandwidth_gb_s)});
  }
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
  if (!outcome.results_text.empty()) out += outcome.results_text + "\n";
  if (outcome.verification) {
    const Verification& v = *outcome.verification;
    out += fmt::format("verify: {}; max error {:.3e} (bound there {:.3e}), worst error / bound {:.3f}\n",
                       v.passed() ? "ok" : "FAILED", v.max_error, v.error_bound, v.worst_ratio);
    if (v.rms_reference > 0) {
      out += fmt::format("verify: rms error {:.2e} of the results' rms {:.3g}{}\n", v.rms_error / v.rms_reference,
                         v.rms_reference, v.rms_limit > 0 ? fmt::format(", at most {:.2e}", v.rms_limit) : "");
    }
    if (!v.passed()) out += fmt::format("verify: the worst element is [{}][{}]\n", v.worst_row, v.worst_column);
  }
  out += findings_text(launch);
  for (const auto& note : notes(outcome)) out += "note: " + note + "\n";
  out += fmt::format("host: {:.2f} s\n", outcome.wall_s);
  return out;
}

}  // namespace mtsim::scenarios
