; SPDX-License-Identifier: Apache-2.0
; y[r][:] *= factor[r], V vectors a row.
;
; Defines: V  1 to 8
; In:   y  R10  in AM, 16-byte aligned, FP32; pitch  R16  bytes from row to row, a multiple of 16
;       factor  R12  in AM: a vector a row, its factor in every lane      rows  R14  at least 1
; Out:  y

.equ V, 4
.equ PAIRS, V / 2
.equ ODD, V % 2

.param y, R10, pointer am
.param factor, R12, pointer am
.param rows, R14, count
.param pitch, R16, count

.linear
.independent  ; a store overwrites only what it was computed from
.reg AR, px, py, p_factor
.reg R, row
.reg VR, f, x_odd, y_odd
.rept PAIRS, i
.reg VR, xl\i, xh\i, yl\i, yh\i
.endr
  SMVAGA y, px
  SMVAGA y, py
  SMVAGA factor, p_factor
  SMOV rows, row
rescale:
  VLDW *p_factor, f
.rept PAIRS, i
  VLDDW *+px[16 * \i], xh\i:xl\i
  VFMULS32 xl\i, f, yl\i
  VFMULS32 xh\i, f, yh\i
  VSTDW yh\i:yl\i, *+py[16 * \i]
.endr
.if ODD
  VLDW *+px[16 * (V - 1)], x_odd
  VFMULS32 x_odd, f, y_odd
  VSTW y_odd, *+py[16 * (V - 1)]
.endif
  SADDA pitch, px, px
  SADDA pitch, py, py
  SADDA 128, p_factor, p_factor
  SSUB 1, row, row
  [row] SBR rescale
  SBR R63
.endlinear
