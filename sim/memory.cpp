// SPDX-License-Identifier: Apache-2.0
#include "sim/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/error.h"

namespace mtsim::sim {

Memory::Memory(const sc_core::sc_module_name& name, Space space, int core, std::int64_t bytes)
    : sc_module(name), socket("socket"), m_space(space), m_core(core), m_bytes(bytes) {
  void* storage = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (storage == MAP_FAILED) {
    throw SimError(fmt::format("{}: the host cannot map {} bytes: {}; make the memory smaller in the machine file",
                               this->name(), bytes, std::strerror(errno)));
  }
  m_storage = static_cast<std::byte*>(storage);
  socket.register_b_transport(this, &Memory::b_transport);
  socket.register_transport_dbg(this, &Memory::transport_dbg);
}

Memory::~Memory() { munmap(m_storage, static_cast<std::size_t>(m_bytes)); }

void Memory::clear() {
  void* storage = mmap(m_storage, static_cast<std::size_t>(m_bytes), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (storage == MAP_FAILED) throw SimError(fmt::format("{}: cannot be cleared: {}", name(), std::strerror(errno)));
}

void Memory::borrow(std::int64_t offset, int descriptor, std::int64_t file_offset, std::int64_t bytes) {
  void* pages = mmap(m_storage + offset, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED, descriptor, file_offset);
  if (pages == MAP_FAILED) {
    throw SimError(fmt::format("{}: the host cannot map {} bytes of a file: {}", name(), bytes, std::strerror(errno)));
  }
}

std::int64_t Memory::page_bytes() { return sysconf(_SC_PAGESIZE); }

tlm::tlm_response_status Memory::access(tlm::tlm_generic_payload& payload) {
  const auto length = payload.get_data_length();
  if (payload.get_byte_enable_ptr() != nullptr) return tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE;
  if (payload.get_streaming_width() < length) return tlm::TLM_BURST_ERROR_RESPONSE;
  if (!holds(payload.get_address(), length)) return tlm::TLM_ADDRESS_ERROR_RESPONSE;
  std::byte* at = m_storage + payload.get_address();
  switch (payload.get_command()) {
    case tlm::TLM_READ_COMMAND: std::memcpy(payload.get_data_ptr(), at, length); break;
    case tlm::TLM_WRITE_COMMAND: std::memcpy(at, payload.get_data_ptr(), length); break;
    default: break;  // TLM_IGNORE_COMMAND
  }
  return tlm::TLM_OK_RESPONSE;
}

void Memory::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time&) {
  payload.set_response_status(access(payload));
}

unsigned Memory::transport_dbg(tlm::tlm_generic_payload& payload) {
  payload.set_response_status(access(payload));
  return payload.is_response_ok() ? payload.get_data_length() : 0;
}

}  // namespace mtsim::sim
