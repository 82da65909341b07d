// SPDX-License-Identifier: Apache-2.0
#include "isa/operands.h"

#include <fmt/format.h>

#include <limits>

#include "isa/assembler.h"

namespace mtsim::isa {
namespace {

// One letter an operand: V, S, A, C registers; X all of C, named by SVR0; P, Q pairs of V, S; I register or immediate;
// N immediate; M memory; B branch target.
std::string_view kinds(Format format) {
  switch (format) {
    case Format::VVVV: return "VVVV";
    case Format::VVV: return "VVV";
    case Format::VV: return "VV";
    case Format::IV: return "NV";
    case Format::NVV: return "NVV";
    case Format::MV: return "MV";
    case Format::MVV: return "MP";
    case Format::VM: return "VM";
    case Format::VVM: return "PM";
    case Format::SV: return "SV";
    case Format::SSVV: return "QP";
    case Format::VC: return "VX";
    case Format::CS: return "CS";
    case Format::SSSS: return "SSSS";
    case Format::SSS: return "SSS";
    case Format::ISS: return "ISS";
    case Format::NSS: return "NSS";
    case Format::IS: return "NS";
    case Format::SS: return "SS";
    case Format::IAA: return "IAA";
    case Format::SA: return "SA";
    case Format::AS: return "AS";
    case Format::MS: return "MS";
    case Format::MSS: return "MQ";
    case Format::SM: return "SM";
    case Format::SSM: return "QM";
    case Format::B: return "B";
    case Format::N: return "N";
  }
  return "";
}

std::string_view kind_text(char kind) {
  switch (kind) {
    case 'V': return "VR";
    case 'S': return "R";
    case 'A': return "AR or OR";
    case 'C': return "SVR";
    case 'X': return "SVR0";
    case 'P': return "VRhi:VRlo";
    case 'Q': return "Rhi:Rlo";
    case 'I': return "R or immediate";
    case 'N': return "immediate";
    case 'M': return "*AR";
    default: return "label or R";
  }
}

struct ImmediateRange {
  std::int64_t low, high;
  std::string_view fix;
};

ImmediateRange immediate_range(const Row& row) {
  switch (row.id) {
    case Mnemonic::SMOVI24: return {-(1 << 23), (1 << 23) - 1, "use SMOVI for a wider value"};
    case Mnemonic::SSHFLL:
    case Mnemonic::SSHFLR: return {0, 63, "a register has 64 bits"};
    case Mnemonic::VSHFLL32:
    case Mnemonic::VSHFLR32:
    case Mnemonic::VSHFAR32: return {0, 31, "a lane has 32 bits"};
    case Mnemonic::SNOP: return {1, 65535, "SNOP n idles n cycles"};
    case Mnemonic::SMOVI:
    case Mnemonic::VMOVI:
      return {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(), ""};
    default: return {-32768, 32767, "load a wider value with SMOVI24 or SMOVI into a register"};
  }
}

std::string text_of(TokenSpan tokens) {
  if (tokens.empty()) return "";
  const char* begin = tokens.front().text.data();
  const std::string_view last = tokens.back().text;
  return std::string(begin, static_cast<std::size_t>(last.data() + last.size() - begin));
}

// "R01" and "VR64" look like registers and are none.
std::string register_hint(std::string_view word) {
  const std::string upper = to_upper(word);
  for (std::size_t f = 0; f < k_register_files; ++f) {
    const std::string_view file = k_register_file_names[f];
    if (upper.size() > file.size() && upper.substr(0, file.size()) == file &&
        upper.find_first_not_of("0123456789", file.size()) == std::string::npos) {
      return fmt::format("the registers are {0}0..{0}{1}", file, k_registers_in_file[f] - 1);
    }
  }
  return "";
}

std::span<const std::string_view> register_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (std::size_t f = 0; f < k_register_files; ++f) {
      for (int i = 0; i < k_registers_in_file[f]; ++i) {
        all.push_back(Register{static_cast<RegisterFile>(f), static_cast<std::uint8_t>(i)}.str());
      }
    }
    return all;
  }();
  static const std::vector<std::string_view> views(names.begin(), names.end());
  return views;
}

class OperandParser {
 public:
  OperandParser(const Row& row, std::size_t position, TokenSpan tokens, int end_column, const OperandContext& context)
      : m_row(row), m_position(position), m_tokens(tokens), m_end_column(end_column), m_context(context) {}

  Operand parse() {
    const char kind = kinds(m_row.format)[m_position];
    if (m_tokens.empty()) fail_kind(kind);
    switch (kind) {
      case 'P':
      case 'Q': return pair(kind);
      case 'M': return memory();
      case 'B': return target();
      case 'I':
        if (const auto reg = take_register()) return finished(kind, *reg);
        return immediate();
      case 'N': return immediate();
      default:
        if (const auto reg = take_register()) return finished(kind, *reg);
        fail_register(kind);
    }
  }

 private:
  int column() const { return m_at < m_tokens.size() ? m_tokens[m_at].column : m_end_column; }
  bool next_is(std::string_view symbol) const { return m_at < m_tokens.size() && m_tokens[m_at].is(symbol); }
  bool take(std::string_view symbol) {
    if (!next_is(symbol)) return false;
    ++m_at;
    return true;
  }

  std::string where() const { return fmt::format("operand {} of {}", m_position + 1, m_row.mnemonic); }
  std::string expected() const { return fmt::format("{} takes {}", m_row.mnemonic, operands_text(m_row.format)); }

  [[noreturn]] void fail_kind(char kind) const {
    const std::string got = m_tokens.empty() ? "nothing" : fmt::format("'{}'", text_of(m_tokens));
    throw SyntaxError(m_tokens.empty() ? m_end_column : m_tokens[0].column,
                      fmt::format("{} must be {}, got {}", where(), kind_text(kind), got), expected(), "operand-kind");
  }

  [[noreturn]] void fail_register(char kind) const {
    if (m_tokens.size() == 1 && m_tokens[0].kind == TokenKind::word) {
      const std::string word(m_tokens[0].text);
      const std::string hint = register_hint(word);
      const std::string typo = did_you_mean(word, register_names());
      throw SyntaxError(m_tokens[0].column,
                        fmt::format("unknown register '{}'{}", word, hint.empty() ? typo : "; " + hint),
                        typo.empty() || !hint.empty() ? expected() : "", "unknown-register");
    }
    fail_kind(kind);
  }

  // "%3" or a register's name; nullopt when something else stands here.
  std::optional<Register> take_register() {
    if (m_at >= m_tokens.size()) return std::nullopt;
    if (next_is("%") && m_at + 1 < m_tokens.size() && m_tokens[m_at + 1].kind == TokenKind::number) {
      const Register reg = m_context.numbered(m_tokens[m_at + 1].value, m_tokens[m_at].column);
      m_at += 2;
      return reg;
    }
    if (m_tokens[m_at].kind != TokenKind::word) return std::nullopt;
    const auto reg = register_of(m_tokens[m_at].text);
    if (reg) ++m_at;
    return reg;
  }

  std::optional<Register> register_of(std::string_view word) const {
    const auto reg = parse_register(word);
    return reg || !m_context.named ? reg : m_context.named(word);
  }

  // The register is the whole operand and of the file its place asks for.
  Register finished(char kind, Register reg) const {
    if (!fits(kind, reg) || m_at != m_tokens.size()) fail_kind(kind);
    return reg;
  }

  static bool fits(char kind, Register reg) {
    switch (kind) {
      case 'V': return reg.file == RegisterFile::VR;
      case 'A': return reg.file == RegisterFile::AR || reg.file == RegisterFile::OR;
      case 'C': return reg.file == RegisterFile::SVR;
      case 'X': return reg == Register{RegisterFile::SVR, 0};
      default: return reg.file == RegisterFile::R;
    }
  }

  Immediate immediate() {
    if (m_tokens.size() == 1 && m_tokens[0].kind == TokenKind::word &&
        m_context.equates.find(m_tokens[0].text) == m_context.equates.end()) {
      const std::string word(m_tokens[0].text);
      if (parse_register(word)) fail_kind(kinds(m_row.format)[m_position]);
      if (!register_hint(word).empty()) fail_register('S');
    }
    const std::int64_t value = parse_expression(m_tokens, m_end_column, m_context.equates);
    const ImmediateRange range = immediate_range(m_row);
    if (value < range.low || value > range.high) {
      throw SyntaxError(
          m_tokens[0].column,
          fmt::format("immediate {} of {} is outside {}..{}", value, m_row.mnemonic, range.low, range.high),
          std::string(range.fix), "immediate-range");
    }
    return {value};
  }

  Operand target() {
    if (const auto reg = take_register()) return finished('B', *reg);
    if (m_tokens.size() != 1 || m_tokens[0].kind != TokenKind::word) fail_kind('B');
    return Target{std::string(m_tokens[0].text), -1};
  }

  RegisterPair pair(char kind) {
    const RegisterFile file = kind == 'P' ? RegisterFile::VR : RegisterFile::R;
    const auto high = take_register();
    if (!high && m_tokens[0].kind == TokenKind::word) {
      m_tokens = m_tokens.first(1);
      fail_register(kind);
    }
    if (!high || !take(":")) fail_kind(kind);
    const auto low = take_register();
    if (!low && m_at < m_tokens.size() && m_tokens[m_at].kind == TokenKind::word) {
      m_tokens = m_tokens.subspan(m_at, 1);
      fail_register(kind);
    }
    if (!low || m_at != m_tokens.size() || high->file != file || low->file != file) fail_kind(kind);
    if (low->is_virtual() && high->is_virtual()) return m_context.virtual_pair(*high, *low, m_tokens[0].column);
    if (low->index % 2 != 0 || high->index != low->index + 1) {
      const Register even{file, static_cast<std::uint16_t>(std::min(low->index, high->index) & ~1)};
      throw SyntaxError(m_tokens[0].column,
                        fmt::format("'{}:{}' is no register pair: an odd register and the even one below it, high:low",
                                    high->str(), low->str()),
                        fmt::format("write {}:{}", RegisterPair{even}.high().str(), even.str()), "register-pair");
    }
    return {*low};
  }

  // *AR, *+AR[i], *-AR[i], *AR++[i], *AR--[i] with an immediate or an OR register as i.
  MemoryOperand memory() {
    if (!take("*")) fail_kind('M');
    MemoryOperand operand;
    if (take("+")) {
      operand.mode = AddressMode::plus;
    } else if (take("-")) {
      operand.mode = AddressMode::minus;
    }
    const int base_column = column();
    const auto base = take_register();
    if (!base && m_at < m_tokens.size() && m_tokens[m_at].kind == TokenKind::word) {
      m_tokens = m_tokens.subspan(m_at, 1);
      fail_register('M');
    }
    if (!base || base->file != RegisterFile::AR) fail_kind('M');
    check_side(*base, base_column);
    operand.base = *base;
    const bool increments = next_is("+");
    if (increments || next_is("-")) {
      const std::string_view sign = increments ? "+" : "-";
      const int post_column = column();
      if (!take(sign) || !take(sign) || operand.mode != AddressMode::plain) {
        throw SyntaxError(post_column, "expected ++[index] or --[index] behind the address register",
                          "write *AR0++[OR0], *AR0--[OR0], *+AR0[1] or *-AR0[1]", "addressing");
      }
      operand.mode = increments ? AddressMode::post_increment : AddressMode::post_decrement;
    }
    if (operand.mode == AddressMode::plain) {
      if (next_is("[")) {
        throw SyntaxError(column(), fmt::format("{}[..] needs a sign", base->str()),
                          fmt::format("write *+{}[..] or *-{}[..]", base->str(), base->str()), "addressing");
      }
    } else {
      index(operand);
    }
    if (m_at != m_tokens.size()) fail_kind('M');
    return operand;
  }

  void index(MemoryOperand& operand) {
    if (!take("[")) {
      throw SyntaxError(column(), fmt::format("'{}' needs an index", text_of(m_tokens)),
                        "write [n] or [ORn] behind it, counted in access units", "addressing");
    }
    std::size_t close = m_at;
    while (close < m_tokens.size() && !m_tokens[close].is("]")) ++close;
    if (close == m_tokens.size()) throw SyntaxError(m_end_column, "']' is missing", "", "addressing");
    const TokenSpan inside = m_tokens.subspan(m_at, close - m_at);
    const int index_column = column();
    if (inside.size() == 1 && inside[0].kind == TokenKind::word) {
      if (const auto reg = register_of(inside[0].text)) {
        if (reg->file != RegisterFile::OR) {
          throw SyntaxError(index_column, fmt::format("an index is an immediate or an OR register, got {}", reg->str()),
                            "move it to an OR register with SMVAGA", "operand-kind");
        }
        check_side(*reg, index_column);
        operand.offset = *reg;
      } else if (!register_hint(inside[0].text).empty()) {
        m_tokens = inside;
        fail_register('M');
      }
    }
    if (!operand.offset) {
      const std::int64_t value = parse_expression(inside, m_tokens[close].column, m_context.equates);
      if (value < 0 || value > k_max_index) {
        throw SyntaxError(index_column,
                          fmt::format("index {} of {} is outside 0..{}", value, m_row.mnemonic, k_max_index),
                          fmt::format("it counts units of {} bytes; use an OR register for more", index_unit(m_row)),
                          "immediate-range");
      }
      operand.index = value;
    }
    m_at = close + 1;
  }

  void check_side(Register reg, int at_column) const {
    const bool vector_side = (m_row.units & units::VLDST) != 0;
    if (reg.is_virtual() || reg.scalar_side() != vector_side) return;  // uses tell the side of a virtual register
    const std::string_view file = k_register_file_names[static_cast<std::size_t>(reg.file)];
    throw SyntaxError(at_column,
                      fmt::format("{} is on the {} side and cannot use {}", m_row.mnemonic,
                                  vector_side ? "vector" : "scalar", reg.str()),
                      fmt::format("use {0}{1}..{0}{2}", file, vector_side ? 0 : 8, vector_side ? 7 : 15),
                      "address-side");
  }

  static constexpr std::int64_t k_max_index = 511;

  const Row& m_row;
  std::size_t m_position;
  TokenSpan m_tokens;
  int m_end_column;
  const OperandContext& m_context;
  std::size_t m_at = 0;
};

}  // namespace

std::string operands_text(Format format) {
  std::string text;
  for (const char kind : kinds(format)) {
    if (!text.empty()) text += ", ";
    text += kind_text(kind);
  }
  return text;
}

std::size_t operand_count(Format format) { return kinds(format).size(); }

std::vector<TokenSpan> split_operands(TokenSpan tokens) {
  std::vector<TokenSpan> pieces;
  if (tokens.empty()) return pieces;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].is("[") || tokens[i].is("(")) ++depth;
    if (tokens[i].is("]") || tokens[i].is(")")) --depth;
    if (tokens[i].is(",") && depth <= 0) {
      pieces.push_back(tokens.subspan(start, i - start));
      start = i + 1;
    }
  }
  pieces.push_back(tokens.subspan(start));
  return pieces;
}

Operand parse_operand(const Row& row, std::size_t position, TokenSpan tokens, int end_column,
                      const OperandContext& context) {
  return OperandParser(row, position, tokens, end_column, context).parse();
}

Predicate parse_predicate(TokenSpan tokens, std::size_t& at, int end_column, const OperandContext& context) {
  const int start_column = tokens[at].column;
  const auto fail = [&](int column) -> SyntaxError {
    return SyntaxError(column, "a predicate is [R0] or [!R0]", "", "predicate");
  };
  const auto next_is = [&](std::string_view symbol) { return at < tokens.size() && tokens[at].is(symbol); };
  Predicate predicate;
  ++at;  // the bracket
  if (next_is("!")) {
    predicate.negated = true;
    ++at;
  }
  if (at >= tokens.size()) throw fail(end_column);
  std::optional<Register> reg;
  if (next_is("%") && at + 1 < tokens.size() && tokens[at + 1].kind == TokenKind::number) {
    reg = context.numbered(tokens[at + 1].value, tokens[at].column);
    at += 2;
  } else {
    reg = parse_register(tokens[at].text);
    if (!reg && context.named) reg = context.named(tokens[at].text);
    ++at;
  }
  if (!reg || !next_is("]")) throw fail(start_column);
  ++at;
  if (reg->file != RegisterFile::R || (reg->index >= k_predicate_registers && !reg->is_virtual())) {
    throw SyntaxError(start_column, fmt::format("{} cannot be a predicate", reg->str()), "use one of R0..R6",
                      "predicate");
  }
  predicate.reg = *reg;
  return predicate;
}

}  // namespace mtsim::isa
