// SPDX-License-Identifier: Apache-2.0
// The Fabric owns time: it shares DDR, GSM and the cores' DMA ports among all transfers in flight.
//
// Each transfer needs work from each resource it crosses: DDR in service cycles (MemoryModel), GSM and ports in bytes.
// It moves through all of them at one rate, a fraction of itself per cycle. Within a priority class rates are max-min
// fair by progressive filling: transfers rise together, in proportion to their size, until a resource is full, which
// fixes those that cross it. Size is the DDR service time where the DDR is crossed and the port's bytes over the DDR's
// bandwidth elsewhere. A class gets what the classes before it leave.
//
//   4096 bytes DDR -> AM, alone:       DDR busy for 4096 / 17.8 = 231 cycles
//   two such at once, any two cores:   both take 461 cycles
//
// Events only where a transfer starts or ends; all of one cycle are taken together and shares computed once for them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <systemc>
#include <vector>

#include "sim/config/machine.h"

namespace mtsim::sim {

inline constexpr int k_max_cores = 64;  // core sets are 64-bit masks, as the device library has them

class Fabric : public sc_core::sc_module {
 public:
  struct Transfer;

  class Listener {
   public:
    virtual ~Listener() = default;
    /// The last byte has moved, at the present cycle. Must not submit; wake a process that does.
    virtual void transfer_done(Transfer& transfer) = 0;
  };

  /// Owned by its DMA channel and reused; must outlive its time in flight.
  struct Transfer {
    Listener* listener = nullptr;
    int core = 0;             // issuer
    int channel = 0;          // of the issuer
    int priority = 1;         // class, lower first
    double port_bytes = 0;    // work at each port
    double ddr_cycles = 0;    // work at the DDR; 0: not crossed
    double gsm_bytes = 0;     // work at the GSM; 0: not crossed
    std::uint64_t ports = 0;  // cores whose port it crosses

   private:
    friend class Fabric;
    std::int64_t m_start = 0;   // cycle it begins to use resources
    std::int64_t m_finish = 0;  // cycle it ends at the present rate
    std::uint64_t m_order = 0;
    double m_pace = 0;  // 1 / size
    double m_left = 0;  // fraction still to move
    double m_rate = 0;  // fraction per cycle
    bool m_fixed = false;
  };

  explicit Fabric(const sc_core::sc_module_name& name);

  /// Takes the capacities of `machine`. Precondition: nothing in flight.
  void configure(const MachineConfig& machine);
  /// The transfer begins to use resources at `start_cycle` (not before now).
  void submit(Transfer& transfer, std::int64_t start_cycle);
  /// Forgets everything in flight (an aborted launch).
  void drop_all();
  /// What is in use of each resource: a fraction of the DDR, bytes a cycle of the GSM and of each core's port.
  struct Shares {
    double ddr = 0, gsm = 0;
    std::span<const double> ports;
  };
  /// Called with each new set of shares and the present cycle.
  std::function<void(std::int64_t, const Shares&)> on_shares;

 private:
  static constexpr int k_ddr = 0, k_gsm = 1, k_ports = 2, k_resources = k_ports + k_max_cores;
  using PerResource = std::array<double, k_resources>;

  static bool later(const Transfer* a, const Transfer* b);  // heap order of m_pending
  void update();
  void tell_shares(std::int64_t now) const;
  void advance(std::int64_t now);
  bool finish_due(std::int64_t now);
  bool start_due(std::int64_t now);
  void share(std::int64_t now);
  void share_class(std::vector<Transfer*>::iterator begin, std::vector<Transfer*>::iterator end);
  void schedule(std::int64_t now);

  sc_core::sc_event m_event;
  int m_resources = k_ports;         // in use: DDR, GSM and a port per core
  PerResource m_capacity{};          // per cycle
  PerResource m_free{};              // of the capacity, while sharing
  double m_cycles_per_byte = 0;      // size of a transfer that does not cross the DDR
  std::vector<Transfer*> m_active;   // by class, then by start
  std::vector<Transfer*> m_pending;  // heap: earliest start first
  std::uint64_t m_submitted = 0;
  std::int64_t m_last = 0;  // cycle up to which m_left is
};

}  // namespace mtsim::sim
