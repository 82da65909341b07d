; SPDX-License-Identifier: Apache-2.0
; Y[r][:] = X[r][:] rsqrt(mean(X[r][:]^2) + eps) gamma[:] for 1 to 32 rows: FP32 inside, X and Y FP32 (half = 0) or FP16
; (half = 1), gamma as X or, with wide_gamma = 1, FP32.
;
; In:   x  R10, y  R12, gamma  R14  in AM, 16-byte aligned, a row being `blocks` blocks of 256 elements; pads of X hold 0
;       area  R16  in AM, 512-byte aligned, rows_bytes long: overwritten (kernels/reduce/rows.inc.s)
;       rows  R18  1 to 32      blocks  R20  at least 1
;       per_column  R22  1 / columns, FP32      eps  R24  FP32, at least 0
; Out:  Y, pads included; Y may be X.
;
; Maths: FP32 storage: (x f) gamma, two roundings. FP16 x times FP16 gamma is exact in FP32: (x gamma) f, one rounding before
; that to FP16.

.equ half, 0
.equ wide_gamma, 0
.equ block_bytes, 1024 - 512*half
.equ gamma_block_bytes, 1024 - 512*half*(1 - wide_gamma)
.include "../math/reciprocal.inc.s"
.include "../reduce/rows.inc.s"

.param x, R10, pointer am
.param y, R12, pointer am
.param gamma, R14, pointer am
.param area, R16, pointer am
.param rows, R18, count
.param blocks, R20, count
.param per_column, R22, value
.param eps, R24, value

.linear
.independent  ; Y may be X: a store overwrites only what it was computed from
.reg AR, first, value, turn    ; of area
.reg AR, px, py, p_gamma, p_first, p_value
.reg R, row, block
.reg VR, x0, x1, g0, g1, t0, t1, y0, y1, packed

  SMVAGA area, first
  SADDA rows_value, first, value
  SADDA rows_turn, first, turn

; --- The sum of squares in each lane of a row.
.region squares
.reg VR, row_sum
.rept 8, i
.reg VR, sum_\i
.endr
  SMVAGA x, px
  SADDA 0, first, p_first
  SMOV rows, row
square_row:
.rept 8, i
  VMOVI 0, sum_\i
.endr
  SMOV blocks, block
square_block:
.macro square_step j, a, b
.if half
  VLDW *+px[16*\j], x0
  VFMULAHLS x0, x0, sum_\a, sum_\a
  VFMULAHHS x0, x0, sum_\b, sum_\b
.else
  VLDDW *+px[16*\j], x1:x0
  VFMULAS32 x0, x0, sum_\a, sum_\a
  VFMULAS32 x1, x1, sum_\b, sum_\b
.endif
.endm
  square_step 0, 0, 1
  square_step 1, 2, 3
  square_step 2, 4, 5
  square_step 3, 6, 7
  SADDA block_bytes, px, px
  SSUB 1, block, block
  [block] SBR square_block
  add_8_vectors sum, row_sum
  VSTW row_sum, *p_first
  SADDA 128, p_first, p_first
  SSUB 1, row, row
  [row] SBR square_row
.endregion

; --- f of each row.
.region factors
.reg R, mean_2, eps_2
.reg VR, sums, mean_factor, eps_all, mean, factors
  reduce_32_rows VFADDS32, first, turn, sums
  SBALE2 per_column, per_column, mean_2
  SBALE2 eps, eps, eps_2
  SVBCAST mean_2, mean_factor
  SVBCAST eps_2, eps_all
  VFMULAS32 sums, mean_factor, eps_all, mean
  rsqrt mean, factors
  spread_32_rows factors, value
.endregion

; --- Y
.region scale
.reg VR, by, minus_zero
  SMVAGA x, px
  SMVAGA y, py
  SADDA 0, value, p_value
  SMOV rows, row
.if half*(1 - wide_gamma)
  VMOVI 0x8000000080000000, minus_zero       ; as an addend it keeps the sign of a zero product
.endif
y_row:
  VLDW *p_value, by
  SMVAGA gamma, p_gamma
  SMOV blocks, block
y_block:
.rept 4, j
.if half
  VLDW *+px[16*\j], x0
.if wide_gamma
  VLDDW0M2 *+p_gamma[16*\j], g1:g0           ; as VFHPSP16L and VFHPSP16H deal out x
  VFHPSP16L x0, t0
  VFHPSP16H x0, t1
  VFMULS32 t0, by, t0
  VFMULS32 t1, by, t1
  VFMULS32 t0, g0, y0
  VFMULS32 t1, g1, y1
.else
  VLDW *+p_gamma[16*\j], g0
  VFMULAHLS x0, g0, minus_zero, t0
  VFMULAHHS x0, g0, minus_zero, t1
  VFMULS32 t0, by, y0
  VFMULS32 t1, by, y1
.endif
  VFSPHP16 y0, y1, packed
  VSTW packed, *+py[16*\j]
.else
  VLDDW *+px[16*\j], x1:x0
  VLDDW *+p_gamma[16*\j], g1:g0
  VFMULS32 x0, by, t0
  VFMULS32 x1, by, t1
  VFMULS32 t0, g0, y0
  VFMULS32 t1, g1, y1
  VSTDW y1:y0, *+py[16*\j]
.endif
.endr
  SADDA block_bytes, px, px
  SADDA block_bytes, py, py
  SADDA gamma_block_bytes, p_gamma, p_gamma
  SSUB 1, block, block
  [block] SBR y_block
  SADDA 128, p_value, p_value
  SSUB 1, row, row
  [row] SBR y_row
  SBR R63
.endregion
.endlinear
