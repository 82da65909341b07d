// SPDX-License-Identifier: Apache-2.0
#include "isa/linear_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "isa/internal.h"
#include "isa/linear_loop.h"
#include "isa/linear_rename.h"
#include "isa/loop_overlap.h"
#include "isa/register_allocation.h"

namespace mtsim::isa {
namespace {

// How much the schedule may spread: where registers do not suffice the next attempt keeps closer to the order of the
// text, then loops become slower, and last they are not pipelined.
struct Attempt {
  int window;
  int longer;
  bool pipeline;
};
constexpr int k_no_window = 1 << 30;
constexpr std::array<Attempt, 9> k_attempts = {{{k_no_window, 0, true},
                                                {32, 0, true},
                                                {8, 0, true},
                                                {0, 0, true},
                                                {0, 1, true},
                                                {0, 2, true},
                                                {0, 4, true},
                                                {0, 8, true},
                                                {0, 0, false}}};

class LinearScheduler {
 public:
  LinearScheduler(const LinearCode& code, const LinearOptions& options)
      : m_code(code), m_options(options), m_liveness(m_code) {
    rename_values(m_code);
  }

  ScheduledLinear run() {
    Allocation allocation;
    std::string out_of_registers;  // in the first attempt
    std::map<std::string, int> first_interval;
    for (const Attempt& attempt : k_attempts) {
      m_result.loops.clear();
      m_proofs.clear();
      build(attempt);
      allocation = allocate_registers(m_segments, m_options.pipeline, {m_options.reserved, {}});
      if (allocation.complete) break;
      if (!out_of_registers.empty()) continue;
      out_of_registers = allocation.failure;
      for (const LoopReport& report : m_result.loops) first_interval[report.label] = report.interval;
    }
    for (std::size_t i = 0; i < m_result.loops.size(); ++i) {
      LoopReport& report = m_result.loops[i];
      const auto first = first_interval.find(report.label);
      if (first == first_interval.end() || first->second >= report.interval) {
        if (m_options.prove) prove_loop(i);
      } else {
        report.blocked.insert(report.blocked.begin(), {report.interval - 1, "registers: " + out_of_registers});
      }
    }
    for (const auto& [report, segment] : m_kernels) {
      m_result.loops[report].registers = allocation.live[static_cast<std::size_t>(segment)];
    }
    check(allocation);
    if (m_result.errors.empty()) emit(allocation);
    return std::move(m_result);
  }

 private:
  void error(const Place& place, const std::string& message, const std::string& fix, const std::string& code) {
    m_result.errors.push_back({Severity::fatal, place, message, fix, code});
  }

  void build(const Attempt& attempt) {
    m_segments.clear();
    m_kernels.clear();
    m_block_of.clear();
    std::vector<int> first_of;                            // segment, by block
    std::vector<std::pair<std::size_t, int>> falls_into;  // segment -> block behind it
    std::vector<std::string> labels;                      // for the segment to come
    for (std::size_t b = 0; b < m_code.blocks.size(); ++b) {
      const LinearBlock& block = m_code.blocks[b];
      const std::size_t first = m_segments.size();
      first_of.push_back(static_cast<int>(first));
      const std::string done = append_block(b, attempt);
      Segment& head = m_segments[first];
      head.labels.insert(head.labels.end(), labels.begin(), labels.end());
      labels.clear();
      if (!done.empty()) labels.push_back(done);
      head.regions_closed = block.regions_closed;
      head.regions_opened = block.regions_opened;
      head.entry = b == 0 || entered_from_outside(block);
      for (std::size_t s = first; s < m_segments.size(); ++s) {
        if (std::erase(m_segments[s].successors, k_behind) > 0) falls_into.emplace_back(s, static_cast<int>(b) + 1);
      }
    }
    if (!labels.empty()) m_segments.push_back({{}, {}, labels, {}, {}, false});
    first_of.push_back(labels.empty() ? k_outside : static_cast<int>(m_segments.size()) - 1);
    for (const auto& [segment, block] : falls_into) {
      if (first_of[index(block)] != k_outside) m_segments[segment].successors.push_back(first_of[index(block)]);
    }
    for (const auto& [segment, block] : m_jumps) m_segments[segment].successors.push_back(first_of[index(block)]);
    m_jumps.clear();
    for (const auto& [unused_report, kernel] : m_kernels) overlap(index(kernel), attempt.window);
  }

  // The straight blocks in front of and behind a loop share cycles with its prologue and epilogue, where nothing else
  // leads there. A segment whose instructions moved stays, without cycles.
  void overlap(std::size_t kernel, int window) {
    const OverlapOptions options{m_options.pipeline, m_code.independent, m_options.allow_assumed, window};
    Segment& prologue = m_segments[kernel - 1];
    const bool guarded = !m_segments[kernel + 1].labels.empty() || m_segments[kernel].successors.size() != 2 ||
                         m_segments[kernel + 1].successors != std::vector<int>{static_cast<int>(kernel) + 2};
    if (kernel >= 2 && only_from_in_front(kernel - 1) && !prologue.cycles.empty() && m_block_of.count(kernel - 2) > 0) {
      const LinearBlock& block = m_code.blocks[m_block_of[kernel - 2]];
      prologue.cycles = overlap_in_front(block, prologue.cycles, m_segments[kernel].cycles, options);
      m_segments[kernel - 2].cycles.clear();
      m_block_of.erase(kernel - 2);
    }
    const std::size_t behind = kernel + 2;
    if (guarded || behind >= m_segments.size() || !only_from_in_front(behind) || m_block_of.count(behind) == 0) return;
    Segment& epilogue = m_segments[kernel + 1];
    epilogue.cycles =
        overlap_behind(m_code.blocks[m_block_of[behind]], m_segments[kernel].cycles, epilogue.cycles, options);
    m_segments[behind].cycles.clear();
    m_block_of.erase(behind);
  }

  // Nothing but the end of the segment in front of it leads to a segment, and no region starts or ends there.
  bool only_from_in_front(std::size_t segment) const {
    const Segment& here = m_segments[segment];
    return here.labels.empty() && here.regions_opened.empty() && here.regions_closed.empty() &&
           m_segments[segment - 1].successors == std::vector<int>{static_cast<int>(segment)};
  }

  // Returns the label that the code behind the block must carry, or "".
  std::string append_block(std::size_t b, const Attempt& attempt) {
    const LinearBlock& block = m_code.blocks[b];
    std::string why;
    const auto loop = find_counted_loop(block, why);
    if (loop && attempt.pipeline) {
      const bool live = m_liveness.live_behind(b, loop->counter);
      const LoopRequest request{block,
                                *loop,
                                m_code.independent,
                                live,
                                m_options.pipeline,
                                m_options.allow_assumed,
                                attempt.longer,
                                attempt.window,
                                [this](RegisterFile file, const std::string& name) { return fresh(file, name); },
                                [this](Register reg) { return m_code.name(reg); },
                                m_budget};
      auto prepared = m_prepared.find(b);
      if (prepared == m_prepared.end()) prepared = m_prepared.emplace(b, prepare_loop(request)).first;
      LoopCode code = pipeline_loop(request, prepared->second);
      const bool guarded = code.report.guarded;
      m_proofs[m_result.loops.size()] = {b, std::move(code.failed)};
      m_result.loops.push_back(std::move(code.report));
      if (!code.segments.empty()) {
        m_kernels.emplace_back(m_result.loops.size() - 1, static_cast<int>(m_segments.size()) + code.kernel);
        append_loop(b, code, loop->label);
        return guarded ? loop->label + ".done" : "";
      }
    } else if (loop || !why.empty()) {
      LoopReport report;
      report.label = std::get<Target>(block.branch->operands[0]).label;
      report.place = block.branch->place;
      report.instructions = static_cast<int>(block.body.size()) + 1;
      report.why_not = loop ? "no schedule with overlapping iterations finds registers" : why;
      m_result.loops.push_back(std::move(report));
    }
    Segment segment;
    segment.cycles =
        straight_block(block, m_code.independent, m_options.pipeline, m_options.allow_assumed, attempt.window);
    if ((loop || !why.empty()) && m_result.loops.back().interval == 0) {
      m_result.loops.back().interval = static_cast<int>(segment.cycles.size());
    }
    segment.labels = block.labels;
    const std::size_t at = m_segments.size();
    if (const int target = m_liveness.target(b); target >= 0) m_jumps.emplace_back(at, target);
    if (!block.branch || block.branch->predicate) segment.successors.push_back(k_behind);
    m_block_of[at] = b;
    m_segments.push_back(std::move(segment));
    return "";
  }

  void prove_loop(std::size_t report) {
    const auto it = m_proofs.find(report);
    if (it == m_proofs.end() || !m_result.loops[report].pipelined) return;
    const auto loop = [&](const LoopBody& body) {
      return ModuloLoop{body.body, body.graph, m_options.pipeline, m_options.allow_assumed};
    };
    const auto& [block, failed] = it->second;
    const PreparedLoop& prepared = m_prepared.at(block);
    prove(loop(prepared.written), loop(prepared.scheduled), failed, k_proof_budget, m_result.loops[report]);
  }

  void append_loop(std::size_t b, LoopCode& code, const std::string& label) {
    const LinearBlock& block = m_code.blocks[b];
    // The loop branches to its kernel now: a label that no other branch needs would look like an entry of the program.
    std::vector<std::string>& labels = code.segments.front().labels;
    if (code.segments.size() > 1 && !jumped_to(b)) std::erase_if(labels, [&](const auto& l) { return l == label; });
    const int base = static_cast<int>(m_segments.size());
    for (Segment& segment : code.segments) {
      for (int& successor : segment.successors) successor = successor < 0 ? k_behind : successor + base;
      m_segments.push_back(std::move(segment));
    }
    for (const std::string& other : block.labels) {
      if (other != label) m_segments[index(base)].labels.push_back(other);
    }
  }

  bool jumped_to(std::size_t b) const {
    for (const std::string& label : m_code.blocks[b].labels) {
      if (m_options.jumps.count(label) > 0) return true;
    }
    for (std::size_t other = 0; other < m_code.blocks.size(); ++other) {
      if (other != b && m_liveness.target(other) == static_cast<int>(b)) return true;
    }
    return false;
  }

  bool entered_from_outside(const LinearBlock& block) const {
    return std::any_of(block.labels.begin(), block.labels.end(), [&](const std::string& label) {
      return !m_liveness.is_target(label) || m_options.jumps.count(label) > 0;
    });
  }

  Register fresh(RegisterFile file, const std::string& name) {
    const auto it = m_fresh.find(name);  // the attempt before needed it too
    return it != m_fresh.end() ? it->second : m_fresh[name] = fresh_register(m_code, file, false, name);
  }

  void check(const Allocation& allocation) {
    for (const Register reg : allocation.undefined) {
      error(first_read(reg), fmt::format("'{}' may be read before anything writes it", m_code.name(reg)),
            "set it in front, on every path", "undefined-virtual");
    }
    if (!allocation.complete && m_result.errors.empty()) {
      error(allocation.failure_place, "out of registers: " + allocation.failure,
            "reuse names whose values are dead, or split the work", "register-pressure");
    }
  }

  Place first_read(Register reg) const {
    for (const LinearBlock& block : m_code.blocks) {
      for (const Instruction& instruction : block.body) {
        const std::vector<Register> all = reads(instruction);
        if (std::find(all.begin(), all.end(), reg) != all.end()) return instruction.place;
      }
      if (!block.branch) continue;
      const std::vector<Register> all = reads(*block.branch);
      if (std::find(all.begin(), all.end(), reg) != all.end()) return block.branch->place;
    }
    return m_code.place;
  }

  void emit(const Allocation& allocation) {
    EmittedCode code = emit_segments(m_segments, allocation.physical, m_code.place);
    for (std::size_t s = 0; s < m_segments.size(); ++s) {
      const Segment& segment = m_segments[s];
      for (const std::size_t region : segment.regions_closed) m_result.regions_last[region] = code.first_packet[s];
      for (const std::size_t region : segment.regions_opened) m_result.regions_first[region] = code.first_packet[s];
      for (const std::string& label : segment.labels) m_result.labels[label] = code.first_packet[s];
    }
    m_result.packets = std::move(code.packets);
  }

  static constexpr int k_behind = -1;   // whatever follows the block
  static constexpr int k_outside = -2;  // the end of the .linear code

  LinearCode m_code;
  const LinearOptions& m_options;
  BlockLiveness m_liveness;
  std::vector<Segment> m_segments;
  std::vector<std::pair<std::size_t, int>> m_jumps;    // segment -> block its branch leads to
  std::vector<std::pair<std::size_t, int>> m_kernels;  // report, segment
  std::map<std::size_t, std::size_t> m_block_of;       // straight segment -> block, while its instructions are in it
  std::map<std::string, Register> m_fresh;             // by name
  // Of all attempts for one .linear: 0.05 s. With ten times as much no shipped kernel gets another schedule.
  SearchBudget m_budget{200'000'000, 20'000'000};
  static constexpr std::int64_t k_proof_budget = 400'000'000;                           // a second for one loop
  std::map<std::size_t, PreparedLoop> m_prepared;                                       // by block
  std::map<std::size_t, std::pair<std::size_t, std::vector<FailedInterval>>> m_proofs;  // by report; of which block
  ScheduledLinear m_result;
};

}  // namespace

EmittedCode emit_segments(const std::vector<Segment>& code, const std::map<Register, Register>& physical,
                          const Place& place) {
  EmittedCode out;
  const auto replace = [&](Register reg) { return reg.is_virtual() ? physical.at(reg) : reg; };
  Place last = place;
  const auto add_idle = [&](int cycles) {
    if (cycles == 0) return;
    Packet packet;
    packet.instructions.push_back(make_instruction(Mnemonic::SNOP, {Immediate{cycles}}, last));
    out.packets.push_back(std::move(packet));
  };
  for (const Segment& segment : code) {
    out.first_packet.push_back(static_cast<int>(out.packets.size()));
    int idle = 0;
    for (const auto& cycle : segment.cycles) {
      if (cycle.empty()) {
        ++idle;
        continue;
      }
      add_idle(std::exchange(idle, 0));
      Packet packet;
      for (Instruction instruction : cycle) {
        replace_registers(instruction, replace, replace);
        instruction.has_suffix = (mask(instruction.unit) & (units::SMAC | units::VMAC)) != 0;
        last = instruction.place;
        packet.instructions.push_back(std::move(instruction));
      }
      std::sort(packet.instructions.begin(), packet.instructions.end(),
                [](const Instruction& a, const Instruction& b) { return a.unit < b.unit; });
      out.packets.push_back(std::move(packet));
    }
    add_idle(idle);
  }
  return out;
}

ScheduledLinear schedule_linear(const LinearCode& code, const LinearOptions& options) {
  return LinearScheduler(code, options).run();
}

}  // namespace mtsim::isa
