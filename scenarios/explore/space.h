// SPDX-License-Identifier: Apache-2.0
// What the explorer has to know of an operator whose block sizes it looks at: gemm_space.h and attention_space.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/explore/candidate.h"
#include "scenarios/operator.h"
#include "scenarios/operator_runner.h"
#include "sim/config/machine.h"

namespace mtsim::scenarios {

/// A number that points have: a column of tables and CSV, a word of --only, and the key of --tile.
struct SpaceDimension {
  std::string_view name;          // "x_buffers"
  std::string_view column;        // of tables: "x"
  std::string_view zero = "-";    // what 0 is called; "-": a point of another kind, which does not have it
  std::string_view meaning = "";  // where it needs one: "rows of a core"
  bool may_be_zero() const { return zero != "-"; }
};

/// A way of the operator: what is chosen by --variant and not by --tile.
struct PointKind {
  std::string_view variant;  // words of it: "paper,large_m"
  std::string_view cell;     // in tables: "Y"
};

/// What --only leaves of a dimension: "k2" -> {128, 256}. Dimensions that are not there have their whole grid.
using Restrictions = std::map<std::string, std::vector<std::int64_t>, std::less<>>;
/// "k2=128:256" each. UsageError.
Restrictions parse_only(const std::vector<std::string>& texts, std::span<const SpaceDimension> dimensions);

/// All points of a query on one machine.
class Space {
 public:
  virtual ~Space() = default;
  /// Of the space, ranked one by one.
  virtual std::size_t pieces() const = 0;
  /// Of one piece the `top` best by their bound.
  virtual Ranking rank(std::size_t piece, std::size_t top) const = 0;
  /// The next smaller and larger value of each dimension, the others kept where that is possible. Points that do not
  /// fit are there too, with the reason.
  virtual std::vector<Neighbour> neighbours(const Candidate& of) const = 0;
  /// What the user compares with, e.g. the paper's blocks, those of them that fit the machine.
  virtual std::vector<std::pair<std::string, Candidate>> named() const = 0;
  /// Whether a point is one of those that the query leaves.
  virtual bool holds(const Candidate& point) const = 0;
};

/// What is asked: of `mtsim op` for every point, and which points.
class Query {
 public:
  Query(const Operator& an_op, Shape its_shape, DType its_dtype)
      : op(an_op), shape(std::move(its_shape)), dtype(its_dtype) {}
  virtual ~Query() = default;

  const Operator& op;
  Shape shape;
  DType dtype;
  std::vector<std::string> words;  // of --variant, beside a point's own
  bool skip_pieces = false;        // CaseOptions::skip_pieces
  std::vector<std::size_t> kinds_explored;
  Restrictions only;

  virtual std::span<const PointKind> kinds() const = 0;
  virtual std::string_view kind_column() const = 0;  // heading of PointKind::cell
  virtual std::span<const SpaceDimension> dimensions() const = 0;
  /// UsageError where --only leaves nothing. The machine outlives it.
  virtual std::unique_ptr<Space> space(const sim::MachineConfig& machine) const = 0;
  /// Block sizes that are the same for all points, as --tile wants them; "": there are none.
  virtual std::string common_tile() const { return ""; }

  // --- A point as `mtsim op` is told it.
  std::string variant(const Candidate& point) const;
  std::string tile(const Candidate& point) const;
  OperatorRequest request(const Candidate& point) const;
  /// Without options of the machine.
  std::string command(const Candidate& point) const;
  /// A value in tables and CSV.
  std::string cell(std::size_t dimension, std::int64_t value) const;
  /// The kind, then all dimensions.
  std::vector<std::string> cells(const Candidate& point) const;
  std::vector<std::string> columns() const;

  /// Everything that decides which points there are and how they are simulated.
  Json about() const;
  /// Explored kinds by their words, e.g. of --dataflow; UsageError. Empty text: those of `usual`.
  void explore_kinds(const std::string& words, const std::string& option, std::size_t usual);
  bool explores(std::size_t kind) const;
};

/// Sorted, each once.
void sort_unique(std::vector<std::int64_t>& values);
/// 1, 2, 3, 4, 6, 8, 12, 16, 24, ...: one by one, then in steps that grow with them.
std::vector<std::int64_t> multiples_up_to(std::int64_t most);
/// The values next to `now` in a grid, at most one on either side.
std::vector<std::int64_t> values_beside(std::vector<std::int64_t> grid, std::int64_t now);
/// What --only leaves of a dimension, or else `grid`; sorted.
std::vector<std::int64_t> allowed(const Restrictions& only, std::string_view dimension, std::vector<std::int64_t> grid);

}  // namespace mtsim::scenarios
