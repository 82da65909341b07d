// SPDX-License-Identifier: Apache-2.0
// What `mtsim op`, scenarios and the regression harness know of an operator: its dimensions, types, variants and tiles,
// and how to prepare, launch and verify one case of it. docs/kernel-writers.md says how to add one.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/dtype.h"
#include "scenarios/verify.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/observer.h"

namespace mtsim::scenarios {

using Json = nlohmann::ordered_json;  // keys stay in the order they are written
using kernels::DType;

struct Dimension {
  std::string_view name;  // --NAME, and an axis of scenarios
  std::string_view help;
  std::optional<std::int64_t> value;  // when the user gives none; absent: it must be given
  std::int64_t least = 1;             // 0: its help says what 0 means
};

/// Words of --variant of which one holds; the first is the default.
struct VariantGroup {
  std::vector<std::string_view> words;
};

struct OperatorInfo {
  std::string_view name;     // "gemm"
  std::string_view summary;  // "Y[m,n] = X[m,k] * W[k,n], row-major"
  std::vector<Dimension> dimensions;
  std::vector<DType> dtypes;           // the first is the default
  std::vector<VariantGroup> variants;  // the word of the first group names the result's variant
  std::string_view tiles;              // help of --tile; empty: it has none
  std::vector<std::string_view> examples;
  std::vector<std::string_view> flags = {};  // words of variants that are options of their own, too: --causal
};

/// Values of the dimensions, in the order of OperatorInfo::dimensions.
using Shape = std::vector<std::int64_t>;

/// What is asked of an operator; names are resolved, so that only shape and tiles can still be wrong.
struct CaseSpec {
  Shape shape;
  DType dtype = DType::f32;
  std::vector<std::string> variant;  // one word a group
  std::string tile;                  // as the user wrote it
};

/// One case on one machine: plan, operands, program, verification. Lives until its values are verified.
class OperatorCase {
 public:
  virtual ~OperatorCase() = default;

  /// Keys of the result that say how the operator goes about it: tile, memory (bytes of sm, am, gsm) and its own.
  virtual Json plan() const = 0;
  /// The same in a line: "large_m  tile mg=720 kg=2048".
  virtual std::string plan_text() const = 0;
  /// Multiply-accumulates; 0 for operators that move data.
  virtual double macs() const { return 0; }
  /// Least DDR traffic: every operand byte it needs read once, every result byte written once.
  virtual double ideal_bytes() const = 0;

  /// Allocates the operands in the cluster's DDR, fills them from `seed` in functional depth, and gives the program for
  /// all cores.
  virtual sim::DspProgram load(sim::Cluster& cluster, std::uint64_t seed) = 0;
  /// Programs that are launched one after the other: load()'s and, of those with an index above 0, launch_program()'s.
  virtual std::int64_t launches() const { return 1; }
  virtual sim::DspProgram launch_program(std::int64_t index) const;

  /// Equal pieces of work done one after the other, e.g. heads: all but a few at the start and the end take the same
  /// time.
  virtual std::int64_t pieces() const { return 1; }
  /// load() gives a program of the first `pieces` only. At most pieces().
  virtual void limit(std::int64_t pieces);

  /// Told what the launches of load()'s programs do; nullptr: nobody needs to know.
  virtual sim::Observer* observer() { return nullptr; }
  /// What a launch has shown beyond time and values: keys of the result, and lines of its text.
  virtual Json results() const { return Json::object(); }
  virtual std::string results_text() const { return ""; }

  /// The results in DDR against a reference that knows no simulator. After a launch of load()'s program.
  virtual Verification verify(const sim::Cluster& cluster) const = 0;
};

class Operator {
 public:
  explicit Operator(OperatorInfo info) : m_info(std::move(info)) {}
  virtual ~Operator() = default;
  const OperatorInfo& info() const { return m_info; }

  /// Of all operands in DDR; a double, since shapes are not checked yet.
  virtual double operand_bytes(const Shape& shape, DType dtype) const = 0;
  /// Of the host in functional depth: operands here and in the simulated DDR, results read back, the reference.
  virtual double host_bytes(const Shape& shape, DType dtype, bool verify) const {
    return (verify ? 5 : 2) * operand_bytes(shape, dtype);
  }
  /// KernelError for a --tile text that no shape could have.
  virtual void check_tile(const std::string& tile, DType dtype) const = 0;
  /// Throws kernels::KernelError when shape, tiles and machine do not go together.
  virtual std::unique_ptr<OperatorCase> prepare(const CaseSpec& spec, const sim::MachineConfig& machine) const = 0;

 private:
  OperatorInfo m_info;
};

/// All operators, by name.
std::span<const Operator* const> operators();
/// nullptr when there is none of that name.
const Operator* find_operator(std::string_view name);
/// UsageError with the known names.
const Operator& require_operator(std::string_view name);

// Words of the user; UsageError with the known ones.
DType parse_dtype(const Operator& op, const std::string& word);
/// One word of each group, in any order, separated by commas: "paper", "small_m", "paper,large_m"; the others keep
/// their default. The result has one word a group.
std::vector<std::string> parse_variant(const Operator& op, const std::string& words);

/// "m=720 n=256 k=2048".
std::string shape_text(const Operator& op, const Shape& shape);

}  // namespace mtsim::scenarios
