// SPDX-License-Identifier: Apache-2.0
// Y[M,N] = X[M,K] * W[K,N] on one cluster (paper III-B2, Figs. 5 and 7; block sizes under eq. (8)), FP32 or FP16.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/library.h"
#include "sim/cluster.h"
#include "sim/config/machine.h"
#include "sim/dsp.h"

namespace mtsim::kernels {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  double macs() const { return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k); }
};

// large_m: X blocks in GSM, rows split over the cores, W broadcast, Y stationary in AM. small_m: X broadcast, N split.
// w_stationary: N split, blocks of W in AM, X passes by through GSM; automatic is one of the other two.
enum class GemmDataflow : std::uint8_t { automatic, large_m, small_m, w_stationary };

// best: the fastest sequence we know. paper: the sequence of Figs. 5-7 as printed, where it is slower (gemm_large_m.cpp
// says how they differ); small_m has one sequence, and so has w_stationary, which the paper does not know.
enum class GemmVariant : std::uint8_t { best, paper };

/// Where the sums of an FP16 GEMM are FP16 and where FP32; those of an FP32 GEMM are FP32 throughout.
enum class GemmSums : std::uint8_t {
  promoted,  // registers FP16 for k_promote products, AM FP32, DDR between k-blocks FP16
  f16,       // FP16 everywhere
  f32        // registers FP16 for k_promote products, AM FP32, DDR between k-blocks FP32
};

/// How W lies in DDR.
enum class GemmWeights : std::uint8_t {
  in_out,  // [k, n], row-major
  out_in   // [n, k], row-major, as Hugging Face checkpoints have it; small_m only
};

struct GemmChoice {
  GemmDataflow dataflow = GemmDataflow::automatic;
  GemmVariant variant = GemmVariant::best;
  GemmSums sums = GemmSums::promoted;
  GemmWeights weights = GemmWeights::in_out;
  GemmEpilogue epilogue = {};
};

/// Block sizes in elements. The defaults are the paper's for FP32; of FP16 it prints none: there they are the fastest
/// of a grid (scenarios/paper/table_viii.yaml).
struct GemmTiles {
  std::int64_t mg = 720;       // rows of X in GSM
  std::int64_t kg = 2048;      // columns of X in GSM
  std::int64_t k2 = 256;       // k-step: columns of X2 in SM, rows of W2 in AM
  std::int64_t n2 = 256;       // columns of W2 and Y2 in AM
  std::int64_t k_promote = 0;  // FP16: products summed in FP16 before the sum is added in FP32; FP32 has no use for it

  // The large-M and W-stationary dataflows only.
  std::int64_t m1 = 6, n1 = 128;              // what a microkernel computes at a time; gemm_tile.h has which there are
  std::int64_t x_buffers = 2, w_buffers = 2;  // X2 in SM, W2 in AM; with one a step's transfers start when it ends
  std::int64_t y_buffers = 0;                 // tiles of Y2 in AM where Y2 moves; 0: three, or all where they fit
  std::int64_t y_tiles = 0;                   // parts a Y2 moves in, one a k-step; 0: one in each (Fig. 7), 1: Fig. 6

  // W stationary only. Of its tiles, those that are 0 are chosen for the shape: it reads mg, kg, n2, m1, n1 and
  // w_buffers so, and its kg is the columns of X in GSM and the rows of W in AM.
  std::int64_t m2 = 0;  // rows of X2 and Y2; large_m has mg over the cores

  static GemmTiles of(DType dtype, const GemmChoice& choice = {});
};

// M1 x N1 of the microkernel written by hand; gemm_tile.s has all other sizes.
inline constexpr std::int64_t k_gemm_m1 = 6;
constexpr std::int64_t gemm_n1(DType dtype) { return dtype == DType::f32 ? 128 : 256; }

struct GemmPlan {  // what a call will do: resolved dataflow and tiles, and the memory they take
  GemmShape shape;
  DType dtype = DType::f32;
  GemmDataflow dataflow = GemmDataflow::large_m;
  GemmVariant variant = GemmVariant::best;
  GemmSums sums = GemmSums::f32;
  GemmWeights weights = GemmWeights::in_out;
  GemmTiles tiles;
  GemmEpilogue epilogue = {};
  std::int64_t m2 = 0;                         // rows of one core in SM/AM
  std::int64_t x_rows = 0;                     // of X2 in SM, pads included (large_m, w_stationary)
  std::int64_t sum_rows = 0, sum_columns = 0;  // of Y2 in AM likewise
  std::int64_t y_buffers = 0;                  // tiles of Y2 in AM that hold sums
  std::int64_t y_transfers = 0;  // tiles of Y2 in AM that hold FP16 on its way from or to DDR; none: the sums move
  bool y_stays = false;          // all Y2 of a block of rows stay in AM until they are complete
  std::int64_t sm_bytes = 0, am_bytes = 0, gsm_bytes = 0;
  std::int64_t epilogue_rows = 0, epilogue_bytes = 0;  // rows it prepares at a time; AM it takes, of am_bytes
  std::int64_t x_bytes = 0;                            // for X: of sm_bytes, of am_bytes where W is [n, k]
  std::int64_t scratch_bytes = 0;                      // DDR: FP32 sums between k-blocks

  bool has_hand_tile() const { return tiles.m1 == k_gemm_m1 && tiles.n1 == gemm_n1(dtype); }
  /// Rows and columns come padded to these: the microkernel written by hand has one size, generated ones fit all but
  /// the columns of a vector.
  std::int64_t row_unit() const { return has_hand_tile() ? k_gemm_m1 : 1; }
  std::int64_t column_unit() const { return has_hand_tile() ? tiles.n1 : std::int64_t{16} * lanes_per_word(dtype); }
  /// Elements of the sums in AM: those of the operands unless FP16 is promoted.
  DType sum_type() const { return sums == GemmSums::f16 ? DType::f16 : DType::f32; }
  /// Whether products are summed in FP16 and those sums in FP32.
  bool promotes() const { return dtype == DType::f16 && sums != GemmSums::f16 && weights == GemmWeights::in_out; }
  /// Elements of Y in DDR between k-blocks.
  DType between_type() const { return sums == GemmSums::f32 ? DType::f32 : dtype; }
};

/// A capacity condition of a plan, eqs. (4)-(8).
struct GemmLimit {
  std::string_view equation;               // "(6)"
  std::string_view memory;                 // "SM"
  std::int64_t needed = 0, available = 0;  // bytes
  bool is_broken() const { return needed > available; }
};
using GemmLimits = std::array<GemmLimit, 5>;

/// Tiles that some memory does not hold.
class GemmLimitError : public CapacityError {
 public:
  GemmLimitError(const GemmLimit& limit, const std::string& message)
      : CapacityError({limit.memory == "SM" ? limit.needed : 0, limit.memory == "AM" ? limit.needed : 0,
                       limit.memory == "GSM" ? limit.needed : 0},
                      message),
        m_limit(limit) {}
  const GemmLimit& limit() const { return m_limit; }

 private:
  GemmLimit m_limit;
};

/// "mg=720,k2=128" over the defaults; unknown key or non-positive value: KernelError.
GemmTiles parse_gemm_tiles(const std::string& text, DType dtype, const GemmChoice& choice = {});

/// Resolves dataflow and checks eqs. (4)-(8) and the DMA channels. Throws GemmLimitError, whose message has the
/// equation and the bytes, KernelError for all else.
GemmPlan plan_gemm(const GemmShape& shape, DType dtype, const GemmTiles& tiles, const GemmChoice& choice,
                   const sim::MachineConfig& machine);

/// As plan_gemm for large_m, and for w_stationary with all tiles given, without a message for what does not fit: the
/// plan, or the first condition it breaks. For searches that try millions.
std::variant<GemmPlan, GemmLimit> try_plan_gemm(const GemmShape& shape, DType dtype, const GemmTiles& tiles,
                                                const GemmChoice& choice, const sim::MachineConfig& machine);

/// What the arithmetic of a plan can do to an element, whatever the operands: |Y - X W| <= relative * (|X| |W|) +
/// absolute, as long as no FP16 sum overflows. Derived in gemm_error.cpp.
struct GemmErrorBound {
  double relative = 0, absolute = 0;
  /// For operands that are independent of each other with mean 0: the root mean square of the error over that of X W,
  /// at most, where there are hundreds of elements.
  double rms = 0;
};
/// What `products` products summed in FP16, `sums` FP32 sums and `roundings` of Y to FP16 make of GemmErrorBound::rms.
double gemm_rms_error(double products, double sums, double roundings);
GemmErrorBound gemm_error_bound(const GemmPlan& plan);

struct GemmOperands {             // row-major, of the plan's dtype, in cluster DDR
  sim::Pointer x;                 // [m, k]
  sim::Pointer w;                 // [k, n] or [n, k]
  sim::Pointer y;                 // [m, n], written
  sim::Pointer frequencies = {};  // of a RopeEpilogue: gemm_frequencies(plan, inv_freq), FP32
};
/// What `frequencies` points to, for the inv_freq of one head; empty without a RopeEpilogue.
std::vector<float> gemm_frequencies(const GemmPlan& plan, std::span<const float> inv_freq);

/// The DSP program of the plan; launch it on all cores of `cluster`.
sim::DspProgram gemm_program(sim::Cluster& cluster, const GemmPlan& plan, const GemmOperands& operands);

}  // namespace mtsim::kernels
