// SPDX-License-Identifier: Apache-2.0
// The state of one assembly: lines in, Program out. Internal to the assembler.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/assembler.h"
#include "isa/expander.h"
#include "isa/linear_reader.h"
#include "isa/operands.h"

namespace mtsim::isa {

class TextAssembler {
 public:
  TextAssembler(std::string file, const AssembleOptions& options);

  /// Throws IsaError with every problem of the text.
  Program run(std::string_view text);

 private:
  // assembler.cpp: lines, packets, instructions
  std::string included(const std::string& path) const;
  void line(const SourceLine& source);
  void statement(std::string_view code);
  void define_label(const Token& name);
  void packets_of(TokenSpan tokens, int end_column);
  void instruction(TokenSpan tokens, int end_column);
  std::optional<Instruction> parse_instruction(TokenSpan tokens, int end_column, const Packet* packet);
  void open_packet();
  void resolve_targets();
  void finish();
  void comment_line(const SplitLine& split);
  Register numbered_operand(std::uint64_t number, int column);

  // directives.cpp
  void directive(TokenSpan tokens, int end_column);
  void define_parameter(TokenSpan tokens, int end_column);
  void define_equate(TokenSpan tokens, int end_column);
  void open_region(TokenSpan tokens, int end_column);
  void close_region(TokenSpan tokens);
  void set_scheduled_for(TokenSpan tokens, int end_column);
  std::string set_latency(TokenSpan piece, int end_column);
  std::string take_unit_away(const Token& word);
  void require_before_packets(const Token& directive) const;

  // linear_directives.cpp
  bool linear_directive(std::string_view word, TokenSpan tokens, int end_column);
  void open_linear(TokenSpan tokens);
  void close_linear(TokenSpan tokens);
  void declare_registers(TokenSpan tokens, int end_column);
  void set_trip(TokenSpan tokens, int end_column);
  void linear_instruction(TokenSpan tokens, int end_column);
  std::optional<Register> named_register(std::string_view name) const;
  std::set<Register> named_registers() const;
  std::vector<std::set<std::string>> jumps_from_outside() const;
  void schedule_linear_code();

  void check_given_operands();
  void check_operand_count();
  void check_moved_parameters();
  void check_defines();
  void report(const SyntaxError& error);
  Place place(int column) const { return {m_file, m_line, column}; }
  bool in_header() const { return m_program.packets.empty() && !m_header_done; }

  static constexpr std::size_t k_max_diagnostics = 100;

  const AssembleOptions& m_options;
  Program m_program;
  OperandContext m_context;
  Expander m_expander;
  std::vector<Diagnostic> m_diagnostics;
  std::map<std::string, Place> m_label_places;
  std::map<std::string, Place> m_region_places;
  std::set<std::string> m_duplicate_regions;
  std::set<std::string, std::less<>> m_equates;               // that the text has
  std::vector<std::pair<std::size_t, Place>> m_open_regions;  // index into Program::regions
  std::map<std::uint64_t, Register> m_numbered_used;          // every %n of the text
  std::vector<std::string> m_comments;                        // whole-line comments waiting for the next packet
  std::optional<LinearReader> m_linear;                       // the open .linear
  struct LinearRegion {
    int packet;  // a packet stands for it until it is scheduled
    LinearCode code;
    LinearSource source;
  };
  std::vector<LinearRegion> m_linear_regions;
  std::string m_file;  // and line that is being read
  int m_line = 0;
  std::string m_origin;           // of an expanded line
  bool m_header_done = false;     // a label, region or packet was seen
  bool m_starts_columns = false;  // a line of column names waits for the next packet
  bool m_can_join = false;        // the line before belongs to a packet
};

}  // namespace mtsim::isa
