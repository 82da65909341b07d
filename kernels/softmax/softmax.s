; SPDX-License-Identifier: Apache-2.0
; Y[r][:] = softmax(scale X[r][:]) for 1 to 32 rows: FP32 inside, X and Y FP32 (half = 0) or FP16 (half = 1).
;
; In:   x  R10, y  R12  in AM, 16-byte aligned, a row being `blocks` blocks of 256 elements; pads of X hold -infinity
;       e  R14  in AM, 16-byte aligned, FP32, as many elements as Y: overwritten; where Y is FP32 it is Y itself
;       area  R16  in AM, 512-byte aligned, rows_bytes long: overwritten (kernels/reduce/rows.inc.s)
;       rows  R18  1 to 32      blocks  R20  at least 1      scale  R22  FP32, above 0
; Out:  Y, pads included.
;
; Maths: m = max x; e = 2^64 exp(max((x - m) scale, -104)), in which nothing is subnormal; y = e (1 / sum e). exp(-104) over
; a sum of 1 or more rounds to 0. VFMAXS32 drops NaN, therefore a sum of x, scaled down lest it overflow, looks for them:
; a NaN or +infinity in a row makes all of it NaN. A row of nothing but -infinity gives 0.

.equ half, 0
.equ block_bytes, 1024 - 512*half  ; of X and Y; 1024 of e
.include "../math/exp.inc.s"
.include "../math/reciprocal.inc.s"
.include "../reduce/rows.inc.s"

.param x, R10, pointer am
.param y, R12, pointer am
.param e, R14, pointer am
.param area, R16, pointer am
.param rows, R18, count
.param blocks, R20, count
.param scale, R22, value

.linear
.independent  ; Y may be X: a store overwrites only what it was computed from
.reg AR, first, second, value, turn, kept    ; of area
.reg AR, px, pe, py, p_first, p_second, p_value
.reg R, row, block, scale_2
.reg VR, x0, x1, d0, d1, q0, q1, y0, y1, packed

  SMVAGA area, first
  SADDA rows_second, first, second
  SADDA rows_value, first, value
  SADDA rows_turn, first, turn
  SADDA rows_kept, first, kept

; --- The maximum in each lane of a row, and NaN in a lane that has seen one or infinities of both signs.
.region row_maxima
.reg VR, down, quiet, max_0, max_1, max_low, max_high, row_max, seen, is_number, bad
.rept 8, i
.reg VR, seen_\i
.endr
  SMVAGA x, px
  SADDA 0, first, p_first
  SADDA 0, second, p_second
  SMOV rows, row
.if half
  VMOVI 0x3C003C003C003C00, down             ; 1: sums of FP16 do not overflow FP32
.else
  VMOVI 0x0080000000800000, down             ; 2^-126
.endif
  VMOVI 0x7FC000007FC00000, quiet
max_row:
.if half
  VMOVI 0xFC00FC00FC00FC00, max_0
  VMOVI 0xFC00FC00FC00FC00, max_1
.else
  VMOVI 0xFF800000FF800000, max_0
  VMOVI 0xFF800000FF800000, max_1
.endif
.rept 8, i
  VMOVI 0, seen_\i
.endr
  SMOV blocks, block
max_block:
.if half
.macro max_step j, a, b
  VLDW *+px[16*\j], x0
  VFMAX16 x0, max_0, max_0
  VFMULAHLS x0, down, seen_\a, seen_\a
  VFMULAHHS x0, down, seen_\b, seen_\b
.endm
.else
.macro max_step j, a, b
  VLDDW *+px[16*\j], x1:x0
  VFMAXS32 x0, max_0, max_0
  VFMAXS32 x1, max_1, max_1
  VFMULAS32 x0, down, seen_\a, seen_\a
  VFMULAS32 x1, down, seen_\b, seen_\b
.endm
.endif
  max_step 0, 0, 1
  max_step 1, 2, 3
  max_step 2, 4, 5
  max_step 3, 6, 7
  SADDA block_bytes, px, px
  SSUB 1, block, block
  [block] SBR max_block
.if half
  VFMAX16 max_0, max_1, max_0
  VFHPSP16L max_0, max_low
  VFHPSP16H max_0, max_high
  VFMAXS32 max_low, max_high, row_max
.else
  VFMAXS32 max_0, max_1, row_max
.endif
  add_8_vectors seen, seen
  VFCMPES32 seen, seen, is_number
  VANDN is_number, quiet, bad
  VSTW row_max, *p_first
  VSTW bad, *p_second
  SADDA 128, p_first, p_first
  SADDA 128, p_second, p_second
  SSUB 1, row, row
  [row] SBR max_row
.endregion

; --- Maxima of the rows, kept as they are, and their negatives spread: no less than the least number, so that x - m is not
; NaN in a row of -infinity.
.region maxima
.reg VR, maxima, lowest, sign, limited, negative
  reduce_32_rows VFMAXS32, first, turn, maxima
  VSTW maxima, *kept
  VMOVI 0xFF7FFFFFFF7FFFFF, lowest
  VMOVI 0x8000000080000000, sign
  VFMAXS32 maxima, lowest, limited
  VXOR limited, sign, negative
  spread_32_rows negative, value
.endregion

; --- e, and its sums in each lane. Lane sums start as NaN where the maxima's pass saw one, and where m is infinite.
.region exponentials
.reg VR, zero, least, one, factor, minus_m, start, sum_0, sum_1, sum_2, sum_3
  SMVAGA x, px
  SMVAGA e, pe
  SADDA 0, second, p_second
  SADDA 0, value, p_value
  SMOV rows, row
  SBALE2 scale, scale, scale_2
  SVBCAST scale_2, factor
  VMOVI 0, zero
  VMOVI 0xC2D00000C2D00000, least            ; -104
.if half
  VMOVI 0x3C003C003C003C00, one
.endif
  exp_constants
exp_row:
  VLDW *p_value, minus_m
  VLDW *p_second, start
  VFMULAS32 minus_m, zero, start, sum_0
  VMOVI 0, sum_1
  VMOVI 0, sum_2
  VMOVI 0, sum_3
  SMOV blocks, block
exp_block:
.rept 4, j
.if half
  VLDW *+px[16*\j], x0
  VFMULAHLS x0, one, minus_m, d0
  VFMULAHHS x0, one, minus_m, d1
.else
  VLDDW *+px[16*\j], x1:x0
  VFADDS32 x0, minus_m, d0
  VFADDS32 x1, minus_m, d1
.endif
  VFMULS32 d0, factor, d0
  VFMULS32 d1, factor, d1
  VFMAXS32 d0, least, d0
  VFMAXS32 d1, least, d1
  exp_scaled d0, q0
  exp_scaled d1, q1
  VFADDS32 q0, sum_\j, sum_\j
  VFADDS32 q1, sum_\j, sum_\j
  VSTDW q1:q0, *+pe[16*\j]
.endr
  SADDA block_bytes, px, px
  SADDA 1024, pe, pe
  SSUB 1, block, block
  [block] SBR exp_block
  VFADDS32 sum_0, sum_1, sum_0
  VFADDS32 sum_2, sum_3, sum_2
  VFADDS32 sum_0, sum_2, sum_0
  VSTW sum_0, *p_second
  SADDA 128, p_second, p_second
  SADDA 128, p_value, p_value
  SSUB 1, row, row
  [row] SBR exp_row
.endregion

; --- 1 / sum of each row, 0 where m is -infinity and the sum no NaN.
.region sums
.reg VR, sums, inverse, all_maxima, minus_infinity, masked, one_f32, weight, scaled_inverse
  reduce_32_rows VFADDS32, second, turn, sums
  reciprocal sums, inverse
  VLDW *kept, all_maxima
  VMOVI 0xFF800000FF800000, minus_infinity
  VMOVI 0x3F8000003F800000, one_f32
  VFCMPES32 all_maxima, minus_infinity, masked
  VANDN masked, one_f32, weight
  VFMULS32 inverse, weight, scaled_inverse
  spread_32_rows scaled_inverse, value
.endregion

; --- Y
.region divide
.reg VR, by
  SMVAGA e, pe
  SMVAGA y, py
  SADDA 0, value, p_value
  SMOV rows, row
y_row:
  VLDW *p_value, by
  SMOV blocks, block
y_block:
.rept 4, j
  VLDDW *+pe[16*\j], q1:q0
  VFMULS32 q0, by, y0
  VFMULS32 q1, by, y1
.if half
  VFSPHP16 y0, y1, packed
  VSTW packed, *+py[16*\j]
.else
  VSTDW y1:y0, *+py[16*\j]
.endif
.endr
  SADDA 1024, pe, pe
  SADDA block_bytes, py, py
  SSUB 1, block, block
  [block] SBR y_block
  SADDA 128, p_value, p_value
  SSUB 1, row, row
  [row] SBR y_row
  SBR R63
.endregion
.endlinear
