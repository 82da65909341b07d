; SPDX-License-Identifier: Apache-2.0
; The softmax of MT Attention as the paper tells it, on a tile of scores of 128 columns, pass by pass over AM. Written down
; before Table IX was run; not to be made faster (attention_max.s and attention_exp.s are what is fast).
;
; Its text (III-C2): "Stage 2: Scale the M rows of Attention Scores obtained in Stage 1 and perform the softmax operation to
; get Attention Weights. Accelerate the Softmax using a hardware-customized vector reduction algorithm, with detailed steps
; shown in Fig. 9." Of a pipelined schedule across iterations it speaks for the GEMM kernel alone (Table I); for the other
; operators, Algorithm 1 shows loops over the N1/32 = 4 vectors of a row, unrolled, which call functions of the vector
; mathematics library (vm_sinf32_u35). Hence:
;
;   scale  a pass of its own          exp    subtracts the maximum and takes the library's exponential of a row's 4 vectors
;   most   the maximum in each lane   sum    the sum in each lane
;
; each a loop over the rows that loads 4 vectors, waits for their results and stores them before the next row: none is
; software-pipelined. (They count up; the scheduler pipelines loops that count down.) Fig. 9 (attention_rows.s) then reduces
; the lanes of 32 rows at a time. The division by the sum is left to O, since the scores of all keys are not in AM at a time.
;
; In:   x  R10  in AM, 16-byte aligned, FP32; pitch  R18  bytes from row to row, a multiple of 16
;       lane  R12  in AM, a vector a row: most: maxima so far; sum: sums so far; exp: -m in every lane; scale: not used
;       rows  R16  at least 1      factor  R20  FP32, of scale
; Out:  scale: x *= factor. most: lane = max(lane, x). exp: x = exp(max(x - m, -87)), NaN for NaN. sum: lane += x.

.include "../math/exp.inc.s"

.param x, R10, pointer am
.param lane, R12, pointer am
.param unused, R14, value
.param rows, R16, count
.param pitch, R18, count
.param factor, R20, value

.linear
.independent
.reg AR, px, p_lane
.reg R, row, more
.reg VR, x0, x1, x2, x3, y0, y1, y2, y3, by, old, t0, t1, t2, new, least, quiet
.reg VR, d0, d1, d2, d3, e0, e1, e2, e3, q0, q1, q2, q3, number_0, number_1, number_2, number_3, bad_0, bad_1, bad_2, bad_3

.macro begin
  SMVAGA x, px
  SMVAGA lane, p_lane
  SMOVI24 0, row
.endm
.macro load
  VLDDW *px, x1:x0
  VLDDW *+px[16], x3:x2
.endm
.macro store
  VSTDW y1:y0, *px
  VSTDW y3:y2, *+px[16]
.endm
.macro again loop
  SADDA pitch, px, px
  SADDA 128, p_lane, p_lane
  SADD 1, row, row
  SLT row, rows, more
  [more] SBR \loop
  SBR R63
.endm

scale:
  begin
  SBALE2 factor, factor, factor  ; no register of a loop counter, which must not depend on data
  SVBCAST factor, by
scale_row:
  load
.rept 4, i
  VFMULS32 x\i, by, y\i
.endr
  store
  again scale_row

most:
  begin
most_row:
  load
  VLDW *p_lane, old
  VFMAXS32 x0, x1, t0
  VFMAXS32 x2, x3, t1
  VFMAXS32 t0, t1, t2
  VFMAXS32 t2, old, new
  VSTW new, *p_lane
  again most_row

exp:
  begin
  VMOVI 0xC2AE0000C2AE0000, least            ; -87
  VMOVI 0x7FC000007FC00000, quiet
  exp_constants_plain
exp_row:
  load
  VLDW *p_lane, old
.rept 4, i
  VFADDS32 x\i, old, d\i
  VFMAXS32 d\i, least, e\i
  exp_scaled e\i, q\i
  VFCMPES32 d\i, d\i, number_\i
  VANDN number_\i, quiet, bad_\i
  VOR q\i, bad_\i, y\i
.endr
  store
  again exp_row

sum:
  begin
sum_row:
  load
  VLDW *p_lane, old
  VFADDS32 x0, x1, t0
  VFADDS32 x2, x3, t1
  VFADDS32 t0, t1, t2
  VFADDS32 t2, old, new
  VSTW new, *p_lane
  again sum_row
.endlinear
