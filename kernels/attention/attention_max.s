; SPDX-License-Identifier: Apache-2.0
; What the softmax has to know of a tile of scores before it begins: most[r] = max(most[r], x[r][:]) in each lane, 128
; columns, and whether there is a NaN, which VFMAXS32 drops: seen[r] += x[r][:] 2^-126, NaN where a lane saw NaN or
; infinities of both signs, and never by overflow.
;
; In:   x  R10  in AM, 16-byte aligned, FP32; pitch  R18  bytes from row to row, a multiple of 16
;       most  R12, seen  R14  in AM: a vector a row      rows  R16  at least 1
; Out:  most, seen

.param x, R10, pointer am
.param most, R12, pointer am
.param seen, R14, pointer am
.param rows, R16, count
.param pitch, R18, count

.linear
.independent  ; a store overwrites only what it was computed from
.reg AR, px, p_most, p_new_most, p_seen, p_new_seen
.reg R, row
.reg VR, x0, x1, x2, x3, old, most_0, most_1, most_2, new, down, s, s0, s1, s2, new_s
  SMVAGA x, px
  SMVAGA most, p_most
  SMVAGA most, p_new_most
  SMVAGA seen, p_seen
  SMVAGA seen, p_new_seen
  SMOV rows, row
  VMOVI 0x0080000000800000, down             ; 2^-126
maxima:
  VLDDW *px, x1:x0
  VLDDW *+px[16], x3:x2
  VLDW *p_most, old
  VLDW *p_seen, s
  VFMAXS32 x0, x1, most_0
  VFMAXS32 x2, x3, most_1
  VFMAXS32 most_0, most_1, most_2
  VFMAXS32 most_2, old, new
  VFMULAS32 x0, down, s, s0
  VFMULAS32 x1, down, s0, s1
  VFMULAS32 x2, down, s1, s2
  VFMULAS32 x3, down, s2, new_s
  VSTW new, *p_new_most
  VSTW new_s, *p_new_seen
  SADDA pitch, px, px
  SADDA 128, p_most, p_most
  SADDA 128, p_new_most, p_new_most
  SADDA 128, p_seen, p_seen
  SADDA 128, p_new_seen, p_new_seen
  SSUB 1, row, row
  [row] SBR maxima
  SBR R63
.endlinear
