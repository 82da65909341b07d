// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/time.h"

namespace mtsim::sim {
namespace {

constexpr std::int64_t k_never = std::numeric_limits<std::int64_t>::max();
// Finish times are rounded up; this much beyond a whole cycle is rounding of doubles, not work.
constexpr double k_slack_cycles = 1e-6;
// Half of what 64 bits hold: a row cost of a second times many rows stays a long time and does not wrap to none.
constexpr double k_longest_cycles = 4e18;
// A resource with less than this fraction left is full.
constexpr double k_full = 1e-9;
constexpr double k_min_size = 1e-9;

}  // namespace

Fabric::Fabric(const sc_core::sc_module_name& name) : sc_module(name) {
  SC_HAS_PROCESS(Fabric);
  SC_METHOD(update);
  sensitive << m_event;
  dont_initialize();
}

void Fabric::configure(const MachineConfig& machine) {
  m_resources = k_ports + static_cast<int>(machine.cluster.cores);
  m_capacity[k_ddr] = 1.0;
  m_capacity[k_gsm] = machine.bytes_per_cycle(machine.cluster.gsm_bandwidth_gb_s);
  for (int r = k_ports; r < m_resources; ++r) {
    m_capacity[r] = machine.bytes_per_cycle(machine.cluster.port_bandwidth_gb_s);
  }
  m_cycles_per_byte = 1.0 / machine.bytes_per_cycle(machine.ddr.bandwidth_gb_s);
}

/// Earliest start on top; the core before the order of submission, so that no process order shows.
bool Fabric::later(const Transfer* a, const Transfer* b) {
  return std::tuple(a->m_start, a->core, a->m_order) > std::tuple(b->m_start, b->core, b->m_order);
}

void Fabric::submit(Transfer& transfer, std::int64_t start_cycle) {
  const std::int64_t now = now_cycles();
  const double size = transfer.ddr_cycles > 0 ? transfer.ddr_cycles : transfer.port_bytes * m_cycles_per_byte;
  transfer.m_pace = 1.0 / std::max(size, k_min_size);
  transfer.m_left = 1.0;
  transfer.m_rate = 0.0;
  transfer.m_start = start_cycle;
  transfer.m_finish = k_never;
  transfer.m_order = m_submitted++;
  m_pending.push_back(&transfer);
  std::push_heap(m_pending.begin(), m_pending.end(), later);
  // An earlier notification that is already pending stays; a later one gives way.
  m_event.notify(cycles_to_sc(std::max<std::int64_t>(start_cycle - now, 0)));
}

void Fabric::drop_all() {
  m_event.cancel();
  m_active.clear();
  m_pending.clear();
}

void Fabric::update() {
  const std::int64_t now = now_cycles();
  advance(now);
  bool changed = finish_due(now);
  changed = start_due(now) || changed;
  while (changed) {
    share(now);
    changed = finish_due(now);  // nothing left but rounding
    if (!changed && on_shares) tell_shares(now);
  }
  schedule(now);
}

void Fabric::tell_shares(std::int64_t now) const {
  PerResource used;
  for (std::size_t r = 0; r < used.size(); ++r) used[r] = m_capacity[r] - m_free[r];
  on_shares(now, {used[k_ddr], used[k_gsm], std::span(used).subspan(k_ports)});
}

void Fabric::advance(std::int64_t now) {
  const auto elapsed = static_cast<double>(now - m_last);
  for (Transfer* transfer : m_active) transfer->m_left -= transfer->m_rate * elapsed;
  m_last = now;
}

bool Fabric::finish_due(std::int64_t now) {
  auto keep = m_active.begin();
  for (Transfer* transfer : m_active) {
    if (transfer->m_finish > now) {
      *keep++ = transfer;
    } else {
      transfer->listener->transfer_done(*transfer);
    }
  }
  const bool any = keep != m_active.end();
  m_active.erase(keep, m_active.end());
  return any;
}

bool Fabric::start_due(std::int64_t now) {
  bool any = false;
  while (!m_pending.empty() && m_pending.front()->m_start <= now) {
    std::pop_heap(m_pending.begin(), m_pending.end(), later);
    Transfer* transfer = m_pending.back();
    m_pending.pop_back();
    const auto place = std::upper_bound(m_active.begin(), m_active.end(), transfer,
                                        [](const Transfer* a, const Transfer* b) { return a->priority < b->priority; });
    m_active.insert(place, transfer);
    any = true;
  }
  return any;
}

/// Calls f(resource, work) for each resource the transfer crosses.
template <class F>
static void for_each_crossed(const Fabric::Transfer& transfer, int ddr, int gsm, int ports, F&& f) {
  if (transfer.ddr_cycles > 0) f(ddr, transfer.ddr_cycles);
  if (transfer.gsm_bytes > 0) f(gsm, transfer.gsm_bytes);
  for (std::uint64_t left = transfer.ports; left != 0; left &= left - 1) {
    f(ports + std::countr_zero(left), transfer.port_bytes);
  }
}

void Fabric::share(std::int64_t now) {
  m_free = m_capacity;
  for (auto begin = m_active.begin(); begin != m_active.end();) {
    const int priority = (*begin)->priority;
    const auto end = std::find_if(begin, m_active.end(), [&](const Transfer* t) { return t->priority != priority; });
    share_class(begin, end);
    begin = end;
  }
  for (Transfer* transfer : m_active) {
    if (transfer->m_rate <= 0) {
      transfer->m_finish = k_never;
      continue;
    }
    const double cycles = std::ceil(transfer->m_left / transfer->m_rate - k_slack_cycles);
    transfer->m_finish = now + static_cast<std::int64_t>(std::clamp(cycles, 0.0, k_longest_cycles));
  }
}

void Fabric::share_class(std::vector<Transfer*>::iterator begin, std::vector<Transfer*>::iterator end) {
  PerResource load;                      // work per cycle and unit of level of the transfers not yet fixed
  std::array<int, k_resources> users{};  // how many those are
  std::fill_n(load.begin(), m_resources, 0.0);
  for (auto it = begin; it != end; ++it) {
    Transfer& transfer = **it;
    transfer.m_fixed = false;
    for_each_crossed(transfer, k_ddr, k_gsm, k_ports, [&](int r, double work) {
      load[r] += work * transfer.m_pace;
      ++users[r];
    });
  }
  for (auto unfixed = std::distance(begin, end); unfixed > 0;) {
    int full = -1;
    double level = 0;
    for (int r = 0; r < m_resources; ++r) {
      if (users[r] == 0) continue;
      const double level_of_r = m_free[r] / load[r];
      if (full < 0 || level_of_r < level) {
        full = r;
        level = level_of_r;
      }
    }
    for (auto it = begin; it != end; ++it) {
      Transfer& transfer = **it;
      if (transfer.m_fixed) continue;
      const bool crosses = full == k_ddr   ? transfer.ddr_cycles > 0
                           : full == k_gsm ? transfer.gsm_bytes > 0
                                           : (transfer.ports >> (full - k_ports) & 1) != 0;
      if (!crosses) continue;
      transfer.m_fixed = true;
      --unfixed;
      transfer.m_rate = level * transfer.m_pace;
      for_each_crossed(transfer, k_ddr, k_gsm, k_ports, [&](int r, double work) {
        load[r] -= work * transfer.m_pace;
        m_free[r] -= work * transfer.m_rate;
        --users[r];
      });
    }
    m_free[full] = 0;
  }
  for (int r = 0; r < m_resources; ++r) {
    if (m_free[r] < k_full * m_capacity[r]) m_free[r] = 0;
  }
}

void Fabric::schedule(std::int64_t now) {
  std::int64_t next = m_pending.empty() ? k_never : m_pending.front()->m_start;
  for (const Transfer* transfer : m_active) next = std::min(next, transfer->m_finish);
  m_event.cancel();
  if (next != k_never) m_event.notify(cycles_to_sc(next - now));
}

}  // namespace mtsim::sim
