// SPDX-License-Identifier: Apache-2.0
#include "isa/memory_dependence.h"

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "isa/bit_set.h"

namespace mtsim::isa {
namespace {

// An address as what it was at the start of the block (root) plus a known number of bytes.
struct Symbol {
  int root = 0;
  std::int64_t bytes = 0;
};

struct Access {
  int instruction;
  bool load;
  bool vector_side;
  Register base;
  Symbol address;
  std::int64_t first, last;        // bytes touched, relative to the address
  std::optional<Register> offset;  // an OR register added to the address
};

class Finder {
 public:
  Finder(std::span<const Instruction> block, const DependenceOptions& options, DependenceGraph& graph)
      : m_block(block), m_options(options), m_graph(graph) {}

  void run() {
    for (std::size_t i = 0; i < m_block.size(); ++i) {
      const auto& packets = m_options.packets;
      if (i == 0 || packets.empty() || packets[i] != packets[i - 1]) end_packet();
      follow(static_cast<int>(i), m_block[i]);
    }
    end_packet();
    const std::size_t count = m_accesses.size();
    std::vector<BitSet> before(count, BitSet(count));  // accesses already ordered in front of each
    for (std::size_t b = 0; b < count; ++b) {
      for (std::size_t a = b; a-- > 0;) {
        if (before[b].test(a) || !ordered(m_accesses[a], m_accesses[b])) continue;
        add(m_accesses[a], m_accesses[b], 0);
        before[b] |= before[a];
        before[b].set(a);
      }
    }
    if (!m_options.loop) return;
    for (std::size_t b = 0; b < count; ++b) {
      BitSet covered(count);  // accesses whose successor in the same iteration is ordered in front of b in the next
      for (std::size_t a = count; a-- > 0;) {
        if (covered.test(a)) continue;
        const auto distance = carried(m_accesses[a], m_accesses[b]);
        if (!distance) continue;
        add(m_accesses[a], m_accesses[b], *distance);
        if (*distance == 1) covered |= before[a];
      }
    }
  }

 private:
  Symbol& value_of(Register reg) {
    const auto [it, is_new] = m_values.try_emplace(reg, Symbol{m_roots, 0});
    if (is_new) m_initial[m_roots++] = reg;
    return it->second;
  }
  Symbol fresh() { return {m_roots++, 0}; }

  void end_packet() {
    for (const auto& [reg, value] : m_post_modified) value_of(reg) = value;
    m_post_modified.clear();
  }

  void follow(int i, const Instruction& instruction) {
    const MemoryOperand* memory = memory_operand(instruction);
    const Row& row = *instruction.row;
    if (memory != nullptr) {
      const Symbol base = value_of(memory->base);
      Access access{i, is_load(row.format), (row.units & units::VLDST) != 0, memory->base, base, 0, 0, {}};
      access.first = row.first_byte;
      access.last = row.last_byte;
      const bool down = memory->mode == AddressMode::minus || memory->mode == AddressMode::post_decrement;
      const std::int64_t step = (down ? -1 : 1) * memory->index * index_unit(row);
      if (memory->post_modifies()) {
        const bool known = !memory->offset && !instruction.predicate;
        m_post_modified[memory->base] = known ? Symbol{base.root, base.bytes + step} : fresh();
      } else if (memory->offset) {
        access.offset = memory->offset;
        if (down) access.address = fresh();
      } else {
        access.address.bytes += step;
      }
      m_accesses.push_back(access);
    }
    define(instruction, row);
  }

  void define(const Instruction& instruction, const Row& row) {
    for (const Write& write : writes(instruction, Pipeline{})) {
      if (write.post_modify) continue;
      m_written.insert(write.reg);
      if (write.reg.file != RegisterFile::AR) continue;
      Symbol result = fresh();
      const bool adds = row.id == Mnemonic::SADDA || row.id == Mnemonic::SSUBA;
      if (adds && !instruction.predicate) {
        const auto* amount = std::get_if<Immediate>(&instruction.operands[0]);
        const Register source = std::get<Register>(instruction.operands[1]);
        if (amount != nullptr && source.file == RegisterFile::AR) {
          result = value_of(source);
          result.bytes += row.id == Mnemonic::SADDA ? amount->value : -amount->value;
        }
      }
      value_of(write.reg) = result;
    }
  }

  // The order of two accesses must be kept in any case: nothing tells them apart.
  bool may_meet(const Access& a, const Access& b) const {
    if (a.load && b.load) return false;
    if (a.vector_side != b.vector_side) return false;
    return !m_options.independent || a.base == b.base;
  }

  // The distance in bytes between the two is known.
  bool comparable(const Access& a, const Access& b) const {
    if (a.address.root != b.address.root || a.offset != b.offset) return false;
    return !a.offset || m_written.count(*a.offset) == 0;
  }

  static bool overlap(const Access& a, const Access& b, std::int64_t moved) {
    const std::int64_t from = b.address.bytes + moved - a.address.bytes;
    return from + b.first < a.last && a.first < from + b.last;
  }

  // The least number of iterations >= 1 after which b may touch what a touched; nullopt when it never does.
  std::optional<int> carried(const Access& a, const Access& b) {
    if (!may_meet(a, b)) return std::nullopt;
    const auto initial = m_initial.find(a.address.root);
    if (!comparable(a, b) || initial == m_initial.end()) return 1;
    const Symbol& at_end = value_of(initial->second);
    if (at_end.root != a.address.root) return 1;
    const std::int64_t stride = at_end.bytes;
    if (stride == 0) return overlap(a, b, 0) ? std::optional<int>(1) : std::nullopt;
    // Bytes are immediates: some thousand iterations at most until the ranges have passed each other.
    constexpr int k_farthest = 4096;
    for (int distance = 1; distance <= k_farthest; ++distance) {
      const std::int64_t moved = stride * distance;
      if (overlap(a, b, moved)) return distance;
      const std::int64_t from = b.address.bytes + moved - a.address.bytes;
      if (stride > 0 ? from + b.first >= a.last : from + b.last <= a.first) return std::nullopt;
    }
    return 1;
  }

  // a stands in front of b in one iteration.
  bool ordered(const Access& a, const Access& b) const {
    return may_meet(a, b) && !(comparable(a, b) && !overlap(a, b, 0));
  }

  void add(const Access& a, const Access& b, int distance) {
    m_graph.add({a.instruction, b.instruction, a.load ? 0 : 1, distance, DependenceKind::memory, b.base});
  }

  std::span<const Instruction> m_block;
  const DependenceOptions& m_options;
  DependenceGraph& m_graph;
  std::vector<Access> m_accesses;
  std::map<Register, Symbol> m_values;
  std::map<Register, Symbol> m_post_modified;  // by the packet that issues
  std::map<int, Register> m_initial;           // roots that are a register's value at the start of the block
  std::set<Register> m_written;                // by anything but post-modify
  int m_roots = 0;
};

}  // namespace

void add_memory_dependences(std::span<const Instruction> block, const DependenceOptions& options,
                            DependenceGraph& graph) {
  Finder(block, options, graph).run();
}

}  // namespace mtsim::isa
