// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "isa/operands.h"
#include "isa/packet_rules.h"
#include "support.h"

using namespace mtsim::isa;

TEST_CASE("every row of the instruction table is complete", "[isa][table]") {
  std::set<std::string_view> mnemonics;
  for (const Row& row : instruction_table()) {
    INFO(row.mnemonic);
    CHECK(mnemonics.insert(row.mnemonic).second);
    CHECK(row.cycles >= 1);
    CHECK(row.cycles <= k_max_latency);
    CHECK_FALSE(row.source.empty());
    CHECK_FALSE(row.semantics_name.empty());
    CHECK((row.units >> k_units) == 0);
    CHECK((row.units != units::NONE || row.id == Mnemonic::SNOP));
    CHECK(operand_count(row.format) >= 1);
    CHECK(&mtsim::isa::row(row.id) == &row);
    CHECK(find_row(row.mnemonic) == &row);
  }
  CHECK(mnemonics.size() == instruction_table().size());
}

TEST_CASE("memory rows say what they access and others do not", "[isa][table]") {
  for (const Row& row : instruction_table()) {
    INFO(row.mnemonic);
    CHECK((access_bytes(row) > 0) == is_memory(row.format));
    CHECK((index_unit(row) > 0) == is_memory(row.format));
    CHECK(row.last_byte - row.first_byte >= access_bytes(row));  // strewn accesses span more than they move
    const bool on_load_store_unit = (row.units & (units::VLDST | units::SLDST)) != 0;
    CHECK(on_load_store_unit == is_memory(row.format));
  }
}

TEST_CASE("latencies and units of the paper's Table II are in the table", "[isa][table]") {
  CHECK(row(Mnemonic::VFMULAS32).cycles == 6);
  CHECK(row(Mnemonic::SVBCAST).cycles == 4);
  CHECK(row(Mnemonic::SLDH).cycles == 7);
  CHECK(row(Mnemonic::SBALE2).cycles == 1);
  CHECK(row(Mnemonic::VLDW).cycles == 9);
  CHECK(row(Mnemonic::SBR).cycles == 7);
  CHECK(row(Mnemonic::SVBCAST).units == units::SMAC);
  CHECK(row(Mnemonic::SLDH).units == units::SLDST);
}

TEST_CASE("mnemonics are found in either case and by the alias of Table I", "[isa][table]") {
  CHECK(find_row("vfmulas32") == &row(Mnemonic::VFMULAS32));
  CHECK(find_row("sbale") == &row(Mnemonic::SBALE2));
  CHECK(find_row("VFMULAS33") == nullptr);
  CHECK(find_row("") == nullptr);
}

TEST_CASE("address arithmetic is a cycle shorter to the scalar half of AR", "[isa][table]") {
  const Pipeline pipeline;
  CHECK(pipeline.of(row(Mnemonic::SADDA), {RegisterFile::AR, 0}) == 3);
  CHECK(pipeline.of(row(Mnemonic::SADDA), {RegisterFile::AR, 8}) == 2);
  CHECK(pipeline.of(row(Mnemonic::SSUBA), {RegisterFile::AR, 7}) == 3);
  CHECK(pipeline.of(row(Mnemonic::SMVAGA), {RegisterFile::AR, 0}) == 2);
}

TEST_CASE("an access is as long as what it moves", "[isa][table]") {
  CHECK(access_bytes(row(Mnemonic::VLDW)) == 128);
  CHECK(access_bytes(row(Mnemonic::VSTDW)) == 256);
  CHECK(access_bytes(row(Mnemonic::VSTDW0M16)) == 256);
  CHECK(access_bytes(row(Mnemonic::SLDH)) == 4);
}

TEST_CASE("a bare mnemonic issues to SIEU or VIEU where its row allows that, and needs a suffix elsewhere",
          "[isa][table]") {
  for (const Row& row : instruction_table()) {
    const UnitMask integer_unit = row.units & (units::SIEU | units::VIEU);
    if (is_memory(row.format) || row.id == Mnemonic::SBR || row.id == Mnemonic::SNOP) continue;
    INFO(row.mnemonic);
    Instruction instruction;
    instruction.row = &row;
    if (integer_unit == 0) {
      CHECK_THROWS_AS(assign_unit(instruction, "", 1, {}), SyntaxError);
    } else {
      assign_unit(instruction, "", 1, {});
      CHECK(mask(instruction.unit) == integer_unit);
    }
  }
}

TEST_CASE("VMVCGC writes all exchange registers and SMVCCG reads one", "[isa][table]") {
  const Program program = assemble(" VMVCGC.M1 VR5, SVR0\n SMVCCG.M1 SVR9, R4\n", "k.s");
  const auto written = writes(program.packets[0].instructions[0], {});
  REQUIRE(written.size() == 16);
  CHECK(written[15].reg == Register{RegisterFile::SVR, 15});
  CHECK(written[15].cycles == 3);
  CHECK(reads(program.packets[1].instructions[0]) == std::vector<Register>{{RegisterFile::SVR, 9}});
  CHECK_THAT(errors_of(" VMVCGC.M1 VR5, SVR3\n"),
             Catch::Matchers::Contains("operand 2 of VMVCGC must be SVR0, got 'SVR3'"));
}
