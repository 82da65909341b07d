// SPDX-License-Identifier: Apache-2.0
#include "isa/expression.h"

#include <fmt/format.h>

#include "isa/diagnostic.h"

namespace mtsim::isa {
namespace {

// Unsigned arithmetic, so that two's complement is defined; division and right shift are signed.
class Evaluator {
 public:
  Evaluator(TokenSpan tokens, int end_column, const Equates& equates)
      : m_tokens(tokens), m_end_column(end_column), m_equates(equates) {}

  std::uint64_t all() {
    const std::uint64_t value = binary(0);
    if (m_at < m_tokens.size()) {
      throw SyntaxError(column(), fmt::format("unexpected '{}' behind an immediate", m_tokens[m_at].text));
    }
    return value;
  }

 private:
  static constexpr int k_max_depth = 64;

  static int precedence(const Token& token) {
    if (is_comparison(token)) return 1;
    if (token.is("<<") || token.is(">>")) return 2;
    if (token.is("+") || token.is("-")) return 3;
    if (token.is("*") || token.is("/") || token.is("%")) return 4;
    return 0;
  }

  static bool is_comparison(const Token& token) {
    return token.is("==") || token.is("!=") || token.is("<") || token.is("<=") || token.is(">") || token.is(">=");
  }

  static bool compare(const Token& op, std::int64_t a, std::int64_t b) {
    if (op.is("==")) return a == b;
    if (op.is("!=")) return a != b;
    if (op.is("<")) return a < b;
    if (op.is("<=")) return a <= b;
    return op.is(">") ? a > b : a >= b;
  }

  int column() const { return m_at < m_tokens.size() ? m_tokens[m_at].column : m_end_column; }

  std::uint64_t binary(int above) {
    std::uint64_t left = unary();
    while (m_at < m_tokens.size() && precedence(m_tokens[m_at]) > above) {
      const Token& op = m_tokens[m_at++];
      left = apply(op, left, binary(precedence(op)));
    }
    return left;
  }

  static std::uint64_t apply(const Token& op, std::uint64_t a, std::uint64_t b) {
    if (is_comparison(op)) {
      return compare(op, static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)) ? 1 : 0;
    }
    if (op.is("+") || op.is("-") || op.is("*")) return calculate(op, a, b);
    if (op.is("<<") || op.is(">>")) {
      if (b > 63) throw SyntaxError(op.column, "shift distance outside 0..63 in an immediate", "", "immediate-range");
      return op.is("<<") ? a << b : static_cast<std::uint64_t>(static_cast<std::int64_t>(a) >> b);
    }
    if (b == 0) throw SyntaxError(op.column, "division by zero in an immediate", "", "immediate-range");
    const auto divisor = static_cast<std::int64_t>(b);
    if (divisor == -1) return op.is("/") ? 0 - a : 0;  // the one quotient that overflows
    const auto dividend = static_cast<std::int64_t>(a);
    return static_cast<std::uint64_t>(op.is("/") ? dividend / divisor : dividend % divisor);
  }

  // Immediates are 64 bits of either kind: a result that is neither a signed nor an unsigned number has lost digits.
  static std::uint64_t calculate(const Token& op, std::uint64_t a, std::uint64_t b) {
    const auto signed_a = static_cast<std::int64_t>(a), signed_b = static_cast<std::int64_t>(b);
    std::uint64_t result = 0;
    std::int64_t signed_result = 0;
    bool overflows = false, signed_overflows = false;
    if (op.is("+")) {
      overflows = __builtin_add_overflow(a, b, &result);
      signed_overflows = __builtin_add_overflow(signed_a, signed_b, &signed_result);
    } else if (op.is("-")) {
      overflows = __builtin_sub_overflow(a, b, &result);
      signed_overflows = __builtin_sub_overflow(signed_a, signed_b, &signed_result);
    } else {
      overflows = __builtin_mul_overflow(a, b, &result);
      signed_overflows = __builtin_mul_overflow(signed_a, signed_b, &signed_result);
    }
    if (overflows && signed_overflows) {
      throw SyntaxError(op.column, fmt::format("the '{}' of an immediate does not fit 64 bits", op.text), "",
                        "immediate-range");
    }
    return result;
  }

  std::uint64_t unary() {
    if (m_at >= m_tokens.size()) throw SyntaxError(m_end_column, "an immediate is missing");
    if (++m_depth > k_max_depth) throw SyntaxError(column(), "immediate expression nested too deeply");
    const Token& token = m_tokens[m_at++];
    std::uint64_t value = 0;
    if (token.is("-")) {
      value = 0 - unary();
    } else if (token.is("+")) {
      value = unary();
    } else if (token.is("~")) {
      value = ~unary();
    } else if (token.is("(")) {
      value = binary(0);
      if (m_at >= m_tokens.size() || !m_tokens[m_at].is(")")) throw SyntaxError(column(), "')' is missing");
      ++m_at;
    } else if (token.kind == TokenKind::number) {
      value = token.value;
    } else if (token.kind == TokenKind::word) {
      value = named(token);
    } else {
      throw SyntaxError(token.column, fmt::format("expected an immediate, got '{}'", token.text), "", "operand-kind");
    }
    --m_depth;
    return value;
  }

  std::uint64_t named(const Token& token) const {
    const auto it = m_equates.find(token.text);
    if (it != m_equates.end()) return static_cast<std::uint64_t>(it->second);
    std::vector<std::string_view> known;
    for (const auto& [name, unused_value] : m_equates) known.push_back(name);
    throw SyntaxError(token.column,
                      fmt::format("expected an immediate, got '{}'{}", token.text, did_you_mean(token.text, known)),
                      fmt::format("define it with .equ {}, VALUE", token.text), "operand-kind");
  }

  TokenSpan m_tokens;
  int m_end_column;
  const Equates& m_equates;
  std::size_t m_at = 0;
  int m_depth = 0;
};

}  // namespace

std::int64_t parse_expression(TokenSpan tokens, int end_column, const Equates& equates) {
  return static_cast<std::int64_t>(Evaluator(tokens, end_column, equates).all());
}

}  // namespace mtsim::isa
