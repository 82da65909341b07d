// SPDX-License-Identifier: Apache-2.0
// One memory of Fig. 2: a core's SM or AM, the cluster's GSM or its DDR. A TLM-2.0 target for functional and debug
// access; it takes no time, the Fabric owns that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tlm_utils/simple_target_socket.h>
#include <systemc>
#include <tlm>

#include "sim/pointer.h"

namespace mtsim::sim {

/// Storage is mapped lazily: pages nobody writes cost nothing, so 20 GB of DDR is fine on a laptop. Reads as zero at
/// first.
class Memory : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<Memory> socket;  // addresses are offsets in this memory

  /// `core`: the owner of an SM or AM, -1 for GSM and DDR. Throws SimError when the host cannot map `bytes`.
  Memory(const sc_core::sc_module_name& name, Space space, int core, std::int64_t bytes);
  ~Memory() override;

  Space space() const { return m_space; }
  int core() const { return m_core; }
  std::int64_t size() const { return m_bytes; }
  /// Direct access for the executor and the DMA engines (functional depth).
  std::span<std::byte> bytes() { return {m_storage, static_cast<std::size_t>(m_bytes)}; }
  Pointer base() const { return {m_space, static_cast<std::int16_t>(m_core), 0}; }
  /// True when [offset, offset + bytes) lies inside.
  bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    const auto size = static_cast<std::uint64_t>(m_bytes);
    return bytes <= size && offset <= size - bytes;
  }
  /// Back to zeros; gives the pages back to the host.
  void clear();
  /// [offset, offset + bytes), whole pages, become pages of an open file from `file_offset` on, copied when written.
  /// Throws SimError when the host cannot map them.
  void borrow(std::int64_t offset, int descriptor, std::int64_t file_offset, std::int64_t bytes);
  static std::int64_t page_bytes();

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);
  unsigned transport_dbg(tlm::tlm_generic_payload& payload);
  tlm::tlm_response_status access(tlm::tlm_generic_payload& payload);

  Space m_space;
  int m_core;
  std::int64_t m_bytes;
  std::byte* m_storage;
};

}  // namespace mtsim::sim
