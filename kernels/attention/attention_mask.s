; SPDX-License-Identifier: Apache-2.0
; Masks a tile of scores, 128 columns, in place: x[r][c] = -infinity unless c < limit + r step. Pads behind the last key
; have step 0; a causal mask that `share` rows of one token have in common has step 1/share, and 1/2 of that in its limit,
; so that no rounding of their sums reaches a whole number.
;
; In:   x  R10  in AM, 16-byte aligned, FP32; pitch  R16  bytes from row to row, a multiple of 16
;       lanes  R12  in AM: a vector of 0, 1, ... 31 (attention_lanes)      rows  R14  at least 1
;       limit  R18, step  R20  FP32, exact to 2^-8 over the tile
; Out:  x

.param x, R10, pointer am
.param lanes_at, R12, pointer am
.param rows, R14, count
.param pitch, R16, count
.param limit, R18, value
.param step, R20, value

.linear
.independent  ; a store overwrites only what it was computed from
.reg AR, px, py, p_lanes
.reg R, row, limit_2, step_2
.reg VR, x0, x1, x2, x3, y0, y1, y2, y3, column_0, column_1, column_2, column_3, by_32, now, next, further, minus_infinity
.reg VR, sees_0, sees_1, sees_2, sees_3, kept_0, kept_1, kept_2, kept_3, gone_0, gone_1, gone_2, gone_3
mask:
  SMVAGA x, px
  SMVAGA x, py
  SMVAGA lanes_at, p_lanes
  SMOV rows, row
  SBALE2 limit, limit, limit_2
  SBALE2 step, step, step_2
  SVBCAST limit_2, now
  SVBCAST step_2, further
  VLDW *p_lanes, column_0
  VMOVI 0x4200000042000000, by_32            ; 32
  VMOVI 0xFF800000FF800000, minus_infinity
  VFADDS32 column_0, by_32, column_1
  VFADDS32 column_1, by_32, column_2
  VFADDS32 column_2, by_32, column_3
rows_loop:
  VLDDW *px, x1:x0
  VLDDW *+px[16], x3:x2
.rept 4, i
  VFCMPGS32 now, column_\i, sees_\i
  VAND sees_\i, x\i, kept_\i
  VANDN sees_\i, minus_infinity, gone_\i
  VOR kept_\i, gone_\i, y\i
.endr
  VFADDS32 now, further, now
  VSTDW y1:y0, *py
  VSTDW y3:y2, *+py[16]
  SADDA pitch, px, px
  SADDA pitch, py, py
  SSUB 1, row, row
  [row] SBR rows_loop
  SBR R63
.endlinear
