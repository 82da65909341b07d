; SPDX-License-Identifier: Apache-2.0
; Weights of a tile of scores, in place: x[r][:] = exp(scale (x[r][:] - m[r])), 128 columns, and what they add up to.
;
; In:   x  R10  in AM, 16-byte aligned, FP32; pitch  R18  bytes from row to row, a multiple of 16
;       minus_m  R12  in AM: a vector a row, -m[r] in every lane      sums  R14  in AM: a vector a row, sums in each lane
;       rows  R16  at least 1      scale  R20  FP32, above 0
; Out:  x, and sums[r] += the four vectors of row r.
;
; Maths: exp(max((x - m) scale, -87)), at most 0.9 ULP beside what rounding (x - m) scale twice does. -infinity gives exp(-87),
; which a sum of 1 or more does not see. NaN is dropped by VFMAXS32: attention_max has looked for it.

.include "../math/exp.inc.s"

.param x, R10, pointer am
.param minus_m, R12, pointer am
.param sums, R14, pointer am
.param rows, R16, count
.param pitch, R18, count
.param scale, R20, value

.linear
.independent  ; a store overwrites only what it was computed from
.reg AR, px, py, p_minus_m, p_sum, p_new_sum
.reg R, row, scale_2
.reg VR, x0, x1, x2, x3, q0, q1, q2, q3, m, factor, least, sum, sum_0, sum_1, sum_2, new_sum
.reg VR, d0, d1, d2, d3, e0, e1, e2, e3
  SMVAGA x, px
  SMVAGA x, py
  SMVAGA minus_m, p_minus_m
  SMVAGA sums, p_sum
  SMVAGA sums, p_new_sum
  SMOV rows, row
  SBALE2 scale, scale, scale_2
  SVBCAST scale_2, factor
  VMOVI 0xC2AE0000C2AE0000, least            ; -87
  exp_constants_plain
weights:
  VLDDW *px, x1:x0
  VLDDW *+px[16], x3:x2
  VLDW *p_minus_m, m
  VLDW *p_sum, sum
.rept 4, i
  VFADDS32 x\i, m, d\i
  VFMULS32 d\i, factor, d\i
  VFMAXS32 d\i, least, e\i
  exp_scaled e\i, q\i
.endr
  VSTDW q1:q0, *py
  VSTDW q3:q2, *+py[16]
  VFADDS32 q0, q1, sum_0
  VFADDS32 q2, q3, sum_1
  VFADDS32 sum_0, sum_1, sum_2
  VFADDS32 sum, sum_2, new_sum
  VSTW new_sum, *p_new_sum
  SADDA pitch, px, px
  SADDA pitch, py, py
  SADDA 128, p_minus_m, p_minus_m
  SADDA 128, p_sum, p_sum
  SADDA 128, p_new_sum, p_new_sum
  SSUB 1, row, row
  [row] SBR weights
  SBR R63
.endlinear
