// SPDX-License-Identifier: Apache-2.0
#include "isa/linear_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "isa/linear_loop.h"
#include "isa/linear_rename.h"
#include "isa/register_allocation.h"

namespace mtsim::isa {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

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
    for (const Attempt& attempt : k_attempts) {
      build(attempt);
      allocation = allocate_registers(m_segments, m_options.pipeline, m_options.reserved);
      if (allocation.complete) break;
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
  }

  // Returns the label that the code behind the block must carry, or "".
  std::string append_block(std::size_t b, const Attempt& attempt) {
    const LinearBlock& block = m_code.blocks[b];
    const auto loop = attempt.pipeline ? find_counted_loop(block) : std::nullopt;
    if (loop) {
      const bool live = m_liveness.live_behind(b, loop->counter);
      auto code = pipeline_loop({block, *loop, m_code.independent, live, m_options.pipeline, m_options.allow_assumed,
                                 attempt.longer, attempt.window,
                                 [this](RegisterFile file, const std::string& name) { return fresh(file, name); }});
      if (code) {
        append_loop(b, *code, loop->label);
        return code->guarded ? loop->label + ".done" : "";
      }
    }
    Segment segment;
    segment.cycles =
        straight_block(block, m_code.independent, m_options.pipeline, m_options.allow_assumed, attempt.window);
    segment.labels = block.labels;
    const std::size_t at = m_segments.size();
    if (const int target = m_liveness.target(b); target >= 0) m_jumps.emplace_back(at, target);
    if (!block.branch || block.branch->predicate) segment.successors.push_back(k_behind);
    m_segments.push_back(std::move(segment));
    return "";
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
    for (std::size_t other = 0; other < m_code.blocks.size(); ++other) {
      if (other != b && m_liveness.target(other) == static_cast<int>(b)) return true;
    }
    return false;
  }

  bool entered_from_outside(const LinearBlock& block) const {
    return std::any_of(block.labels.begin(), block.labels.end(),
                       [&](const std::string& label) { return !m_liveness.is_target(label); });
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
    const auto physical = [&](Register reg) { return reg.is_virtual() ? allocation.physical.at(reg) : reg; };
    Place last = m_code.place;
    for (const Segment& segment : m_segments) {
      const int at = static_cast<int>(m_result.packets.size());
      for (const std::size_t region : segment.regions_closed) m_result.regions_last[region] = at;
      for (const std::size_t region : segment.regions_opened) m_result.regions_first[region] = at;
      for (const std::string& label : segment.labels) m_result.labels[label] = at;
      int idle = 0;
      for (const auto& cycle : segment.cycles) {
        if (cycle.empty()) {
          ++idle;
          continue;
        }
        add_idle(std::exchange(idle, 0), last);
        Packet packet;
        for (Instruction instruction : cycle) {
          replace_registers(instruction, physical, physical);
          instruction.has_suffix = (mask(instruction.unit) & (units::SMAC | units::VMAC)) != 0;
          last = instruction.place;
          packet.instructions.push_back(std::move(instruction));
        }
        std::sort(packet.instructions.begin(), packet.instructions.end(),
                  [](const Instruction& a, const Instruction& b) { return a.unit < b.unit; });
        m_result.packets.push_back(std::move(packet));
      }
      add_idle(idle, last);
    }
  }

  void add_idle(int cycles, const Place& place) {
    if (cycles == 0) return;
    Instruction idle;
    idle.row = &row(Mnemonic::SNOP);
    idle.operands = {Immediate{cycles}};
    idle.place = place;
    Packet packet;
    packet.instructions.push_back(std::move(idle));
    m_result.packets.push_back(std::move(packet));
  }

  static constexpr int k_behind = -1;   // whatever follows the block
  static constexpr int k_outside = -2;  // the end of the .linear code

  LinearCode m_code;
  const LinearOptions& m_options;
  BlockLiveness m_liveness;
  std::vector<Segment> m_segments;
  std::vector<std::pair<std::size_t, int>> m_jumps;  // segment -> block its branch leads to
  std::map<std::string, Register> m_fresh;           // by name
  ScheduledLinear m_result;
};

}  // namespace

ScheduledLinear schedule_linear(const LinearCode& code, const LinearOptions& options) {
  return LinearScheduler(code, options).run();
}

}  // namespace mtsim::isa
