// SPDX-License-Identifier: Apache-2.0
// What was found, in words: both ends, the missing edge, what to do.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/hazard.h"
#include "sim/source.h"

namespace mtsim::sim {
namespace {

std::string range_text(const Block& block) {
  if (block.rows == 1) return fmt::format("{} bytes", block.bytes);
  return fmt::format("{} rows of {} bytes, {} apart", block.rows, block.bytes, block.pitch);
}

}  // namespace

std::string_view name(Severity severity) { return severity == Severity::note ? "note" : "finding"; }

std::string FindingEnd::str() const {
  std::string text = what;
  if (iteration > 0) text += fmt::format(" #{}", iteration);
  if (line > 0) text += fmt::format(" at {}:{}", file, line);
  if (core >= 0) {
    text += channel >= 0 ? fmt::format(" (core {}, channel {})", core, channel) : fmt::format(" (core {})", core);
  }
  return buffer.empty() ? text : text + " " + buffer;
}

/// Of all with the same kind and source lines the first in core and iteration is kept, whatever the order they were
/// found in.
void HazardMonitor::raise(Raised raised) {
  const auto place = [](const Event& event) {
    return fmt::format("{}:{}:{}:{}", event.where.file_name(), event.where.line(), event.verb,
                       event.program == nullptr ? "" : event.program->name);
  };
  if (raised.second.core != raised.first.core && raised.first_bytes.write != raised.second_bytes.write) {
    const Event& reader = raised.first_bytes.write ? raised.second : raised.first;
    m_contested.insert({reader.core, reader.where.file_name(), reader.where.line()});
  }
  const auto order = [](const Raised& r) {
    return std::tuple(r.second.core, r.second.iteration, r.first.core, r.first.iteration, r.at);
  };
  Key key{raised.kind, place(raised.first), place(raised.second), static_cast<int>(space(raised.second_bytes.memory))};
  const auto [known, is_new] = m_raised.try_emplace(std::move(key), raised);
  Raised& kept = known->second;
  kept.cores.insert(raised.second.core);
  ++kept.count;
  if (is_new || order(kept) <= order(raised)) return;
  raised.count = kept.count;
  raised.cores = std::move(kept.cores);
  kept = std::move(raised);
}

void HazardMonitor::raise(Severity severity, std::string_view kind, const Event& first, const Side& first_bytes,
                          const Event& second, const Side& second_bytes, std::int64_t at) {
  Raised raised;
  raised.severity = severity;
  raised.kind = kind;
  raised.first = first;
  raised.first_bytes = first_bytes;
  raised.second = second;
  raised.second_bytes = second_bytes;
  raised.at = at;
  raise(std::move(raised));
}

std::string HazardMonitor::buffer_text(int memory, const Block& block) const {
  Pointer pointer{space(memory), static_cast<std::int16_t>(owner(memory)), static_cast<std::uint64_t>(block.first)};
  std::string text = fmt::format("{} ({}", pointer.str(), range_text(block));
  for (const Allocation& allocation : m_memories[memory].allocations) {
    if (block.first < allocation.first || block.first >= allocation.end) continue;
    const Event& made = m_causes[allocation.cause].event;
    text += fmt::format("; byte {} of {}", block.first - allocation.first, end_of(made, nullptr).str());
  }
  return text + ")";
}

FindingEnd HazardMonitor::end_of(const Event& event, const Side* bytes) const {
  FindingEnd end;
  end.what = event.program == nullptr ? event.verb : fmt::format("{} of {}", event.verb, event.program->name);
  end.core = event.core;
  end.channel = event.channel;
  end.iteration = event.iteration;
  end.cycle = event.cycle;
  end.line = static_cast<int>(event.where.line());
  if (end.line > 0) {
    end.file = short_path(event.where.file_name());
    end.function = event.where.function_name();
  }
  if (bytes != nullptr) {
    end.buffer = fmt::format("{} {}", bytes->write ? "writes" : "reads", buffer_text(bytes->memory, bytes->block));
  }
  return end;
}

Finding HazardMonitor::finding_of(const Raised& raised) const {
  Finding finding;
  finding.kind = raised.kind;
  finding.severity = raised.severity;
  finding.core = raised.second.core;
  finding.cycle = raised.second.cycle;
  finding.count = raised.count;
  const bool has_bytes = raised.second_bytes.block.bytes > 0;
  finding.ends = {end_of(raised.first, raised.first_bytes.block.bytes > 0 ? &raised.first_bytes : nullptr),
                  end_of(raised.second, has_bytes ? &raised.second_bytes : nullptr)};
  const std::string first = finding.ends[0].str(), second = finding.ends[1].str();
  const Pointer at{space(raised.second_bytes.memory), static_cast<std::int16_t>(owner(raised.second_bytes.memory)),
                   static_cast<std::uint64_t>(raised.at)};
  const int channel = raised.first.channel;
  std::string advice;
  if (raised.kind == "not-covered") {
    finding.ends = {finding.ends[1]};
    finding.message = fmt::format("{}: its accesses are not looked at: {}", second, raised.why);
    return finding;
  }
  if (raised.kind == "channel-reused") {
    finding.missing_edge = fmt::format("dma_wait({}) on core {} between the two", channel, raised.first.core);
    advice = fmt::format("wait for channel {} before it is given to another transfer: its data may be read too early",
                         channel);
    finding.message = fmt::format("{} takes channel {}, for which {} has not been waited for", second, channel, first);
  } else if (raised.kind == "wait-never-made") {
    finding.missing_edge = fmt::format("dma_wait({}) on core {} after it", channel, raised.first.core);
    advice = "add dma_wait before the data is used or the program ends";
    finding.message =
        fmt::format("core {} ended without a wait for channel {}: {}", raised.second.core, channel, first);
  } else if (raised.kind == "never-written") {
    std::string moved;
    for (int cause = raised.cause; m_causes[cause].from >= 0; cause = m_causes[cause].from) {
      const Cause& c = m_causes[cause];
      const Side read{nullptr, c.memory, c.block, false};
      moved += fmt::format(", brought there by {}", end_of(c.event, &read).str());
    }
    finding.missing_edge = "a write to these bytes (by the host, a transfer or a kernel) that comes before the read";
    advice = raised.first.core < 0 ? "let the host write the buffer (Cluster::write), or the program"
                                   : "fill the buffer first";
    finding.message = fmt::format("{}{}: nobody has written {} since {}", second, moved,
                                  moved.empty() ? "these bytes" : "them", first);
  } else if (raised.first.core == raised.second.core) {
    finding.missing_edge = fmt::format("dma_wait({}) on core {} between the two", channel, raised.first.core);
    advice = raised.kind == "read-before-complete"
                 ? "wait before the read, or issue the transfer behind it if it is the old bytes that are wanted"
                 : "wait for the transfer first, or use another buffer";
    finding.message =
        fmt::format("{}, from {} on, while the transfer is not known to be complete: {}", second, at.str(), first);
  } else {
    finding.missing_edge =
        fmt::format("core {} and core {} meet nowhere between the two", raised.first.core, raised.second.core);
    advice = "let one wait for its transfer and then both meet (group_barrier, dma_broadcast) before the other goes on";
    finding.message = fmt::format("{}, from {} on, and in no order to it: {}", second, at.str(), first);
  }
  if (raised.severity == Severity::note) {
    finding.message += "; the bytes read are never used";
    return finding;
  }
  finding.message += fmt::format("; missing: {}; {}", finding.missing_edge, advice);
  if (raised.count > 1) {
    finding.message += fmt::format(" ({} times on {} cores, this is the first)", raised.count, raised.cores.size());
  }
  return finding;
}

void HazardMonitor::not_covered(const VerbCall& call, const isa::Program& program, const std::string& why) {
  Raised raised;
  raised.severity = Severity::note;
  raised.kind = "not-covered";
  raised.second = event(call);
  raised.second.program = &program;
  raised.why = why;
  raise(std::move(raised));
  // It may have written any byte of its core.
  for (const int memory : {2 * call.core, 2 * call.core + 1}) m_memories[memory].never_written.clear();
  forget_checked(m_cores[call.core]);
}

}  // namespace mtsim::sim
