; SPDX-License-Identifier: Apache-2.0
; FP16 to FP32 as kernels/convert has it, but pipelined: y = x, both in memory order.
;
; In:   x  R10  and y  R12  in AM, 16-byte aligned      bytes  R14  of the FP32 side, a multiple of 1024 and at least 1024
; Out:  y

.param x, R10, pointer am
.param y, R12, pointer am
.param bytes, R14, count

.linear
.independent
.reg AR, px, py
.reg R, left
.reg VR, x0, x1, x2, x3
.rept 4, i
.reg VR, low_\i, high_\i
.endr
  SMVAGA x, px
  SMVAGA y, py
  SSHFLR 10, bytes, left
widen:
  VLDDW *px, x1:x0
  VLDDW *+px[16], x3:x2
.rept 4, i
  VFHPSP16L x\i, low_\i
  VFHPSP16H x\i, high_\i
  VSTDW0M32 high_\i:low_\i, *+py[16 * \i]
.endr
  SADDA 512, px, px
  SADDA 1024, py, py
  SSUB 1, left, left
  [left] SBR widen
  SBR R63
.endlinear
