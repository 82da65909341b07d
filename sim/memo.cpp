// SPDX-License-Identifier: Apache-2.0
#include "sim/memo.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/checker.h"

namespace mtsim::sim {
namespace {

constexpr std::int64_t k_longest_followed_cycles = std::int64_t{1} << 21;  // every value of the call is kept meanwhile

/// Programs that compare equal here behave alike: instructions, latencies, what the caller passes, and the entries.
std::string identity(const isa::Program& program, const isa::Pipeline& pipeline) {
  std::string key = fmt::format("{:016x} {}", program.fingerprint(), pipeline.str());
  for (const isa::Parameter& parameter : program.parameters) {
    key += fmt::format(";{}={}:{}", parameter.name, parameter.reg.str(), static_cast<int>(parameter.kind));
  }
  for (const auto& [label, packet] : program.labels) key += fmt::format(";{}@{}", label, packet);
  return key;
}

bool equal(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  if (a.size() != b.size()) return false;
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ |= a[i] ^ b[i];
  return differ == 0;
}

std::uint64_t hash(std::span<const std::uint64_t> values) {
  std::uint64_t h = 0x9E37'79B9'7F4A'7C15;
  for (const std::uint64_t value : values) {
    h ^= value;
    h *= 0xFF51'AFD7'ED55'8CCD;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

void KernelMemo::set_latencies(const isa::Pipeline& pipeline) {
  if (pipeline == m_pipeline) return;
  m_pipeline = pipeline;
  m_kept.clear();
  m_records.clear();
  m_last = nullptr;
}

Kernel KernelMemo::load(const isa::Program& program, const std::string& entry) {
  program.entry(entry);  // throws for an unknown label
  if (program.is_kept()) {
    if (const auto known = m_kept.find(&program); known != m_kept.end()) return {known->second, entry};
  }
  auto& decoded = m_programs[identity(program, m_pipeline)];
  if (!decoded) decoded = std::make_unique<DecodedProgram>(program, m_pipeline);
  if (program.is_kept()) m_kept.emplace(&program, decoded.get());
  return {decoded.get(), entry};
}

KernelRecord& KernelMemo::record(const Kernel& kernel) {
  const auto matches = [&](const KernelRecord& r) { return r.program == kernel.program && r.entry == kernel.entry; };
  if (m_last != nullptr && matches(*m_last)) return *m_last;
  const auto found = std::find_if(m_records.begin(), m_records.end(), [&](const auto& r) { return matches(*r); });
  if (found != m_records.end()) return *(m_last = found->get());

  if (kernel.program == nullptr) throw SimError("call: the kernel is empty; make it with Cluster::load");
  if (!(kernel.program->pipeline() == m_pipeline)) {
    throw SimError(
        fmt::format("call: '{}' was loaded for latencies '{}' but the machine has '{}'; load it again after reset",
                    kernel.program->program().name, kernel.program->pipeline().str(), m_pipeline.str()));
  }
  auto record = std::make_unique<KernelRecord>();
  record->program = kernel.program;
  record->entry = kernel.entry;
  m_records.push_back(std::move(record));
  return *(m_last = m_records.back().get());
}

void KernelMemo::forget_calls() {
  for (const auto& record : m_records) record->calls = 0;
}

std::vector<KernelCalls> KernelMemo::calls() const {
  std::vector<KernelCalls> calls;
  for (const auto& record : m_records) {
    if (record->calls == 0) continue;
    const isa::Program& program = record->program->program();
    const auto known =
        std::find_if(calls.begin(), calls.end(), [&](const KernelCalls& entry) { return entry.code == &program; });
    if (known != calls.end()) {
      known->calls += record->calls;
    } else {
      calls.push_back({program.name, record->calls, &program});
    }
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const KernelCalls& a, const KernelCalls& b) { return a.program < b.program; });
  return calls;
}

const std::string& KernelMemo::not_static(KernelRecord& record) {
  if (!record.not_static) {
    const isa::Program& program = record.program->program();
    std::string why;
    const bool is_static = isa::timing_is_static(program, &why) && isa::footprint_is_static(program, &why);
    record.not_static = is_static ? "" : why;
  }
  return *record.not_static;
}

const KernelProfile& KernelMemo::profile(KernelRecord& record, std::span<const std::uint64_t> arguments,
                                         std::int64_t max_cycles, bool use_memo) {
  record.present = nullptr;
  if (!not_static(record).empty()) {
    throw SimError(fmt::format(
        "call: '{}' cannot run in timing depth, its cycles or addresses depend on data: {}; use functional depth",
        record.program->program().name, *record.not_static));
  }
  const auto work_out = [&] {
    RunOptions options;
    options.entry = record.entry;
    options.max_cycles = max_cycles;
    return sim::profile(*record.program, arguments, options);
  };
  if (!use_memo) return m_fresh = work_out();

  const auto same = [&](const KernelRecord::Profiled& p) {
    return p.profile.result.cycles <= max_cycles && equal(arguments, p.arguments);
  };
  if (record.last_profiled != nullptr && same(*record.last_profiled)) {
    record.present = record.last_profiled;
    return record.present->profile;
  }
  auto& bucket = record.profiles[hash(arguments)];
  for (const auto& known : bucket) {
    if (!equal(arguments, known->arguments)) continue;
    if (known->profile.result.cycles > max_cycles) return m_fresh = work_out();  // the limit was higher then
    record.present = record.last_profiled = known.get();
    return known->profile;
  }
  const std::string key = profile_key(record.program->program(), m_pipeline, record.entry, arguments);
  const KernelProfile* kept = m_file.find(key);
  if (kept == nullptr || kept->pointers.size() != arguments.size() || kept->result.cycles > max_cycles) {
    m_fresh = work_out();
    if (m_fresh.result.status != RunStatus::done) return m_fresh;  // it ends the launch
    m_file.add(key, m_fresh);
    kept = &m_fresh;
  }
  auto learnt = std::make_unique<KernelRecord::Profiled>();
  learnt->arguments.assign(arguments.begin(), arguments.end());
  learnt->profile = *kept;
  bucket.push_back(std::move(learnt));
  record.present = record.last_profiled = bucket.back().get();
  return record.present->profile;
}

CallFootprint::CallFootprint(const DecodedProgram& decoded, std::string at_entry, std::vector<std::uint64_t> counts,
                             const CallTrace& call)
    : program(&decoded), entry(std::move(at_entry)), arguments(std::move(counts)), pointers(footprint(decoded, call)) {
  for (std::size_t i = 0; i < pointers.size(); ++i) {
    if (!pointers[i].empty()) touched.push_back(i);
  }
}

const CallFootprint::Ranges& CallFootprint::undefined_results(const Ranges& undefined) const {
  std::vector<std::int64_t> key;
  for (const auto& ranges : undefined) {
    key.push_back(static_cast<std::int64_t>(ranges.size()));
    for (const ByteRange& bytes : ranges) key.insert(key.end(), {bytes.first, bytes.end});
  }
  const auto [known, is_new] = m_results.try_emplace(std::move(key));
  if (is_new) {
    RunOptions options;
    options.entry = entry;
    known->second = propagate(*program, trace(*program, arguments, options), undefined);
  }
  return known->second;
}

const CallFootprint* KernelMemo::footprint(KernelRecord& record, std::span<const std::uint64_t> arguments,
                                           std::string& why) {
  KernelRecord::Profiled* const present = record.present;
  const CallFootprint* const found = find_footprint(record, arguments, why);
  if (present != nullptr && equal(arguments, present->arguments)) present->footprint = found;
  return found;
}

const CallFootprint* KernelMemo::find_footprint(KernelRecord& record, std::span<const std::uint64_t> arguments,
                                                std::string& why) {
  if (record.last_footprint != nullptr && equal(arguments, record.last_footprint->arguments)) {
    return record.last_footprint;
  }
  if (why = not_static(record); !why.empty()) return nullptr;
  std::vector<std::uint64_t> counts(arguments.begin(), arguments.end());
  const auto [place, is_new] = record.footprints.try_emplace(counts);
  auto& known = place->second;
  if (is_new) {
    RunOptions options;
    options.entry = record.entry;
    options.max_cycles = k_longest_followed_cycles;
    const CallTrace call = trace(*record.program, arguments, options);
    if (call.profile.result.status == RunStatus::done) {
      known = std::make_unique<CallFootprint>(*record.program, record.entry, std::move(counts), call);
      known->number = m_footprints++;
    }
  }
  if (!known) {
    why = fmt::format("the call takes more than {} cycles or faults", k_longest_followed_cycles);
    return nullptr;
  }
  return record.last_footprint = known.get();
}

}  // namespace mtsim::sim
