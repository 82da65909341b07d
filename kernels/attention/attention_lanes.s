; SPDX-License-Identifier: Apache-2.0
; The vector 0, 1, ... 31 in FP32, which no instruction makes: each store overwrites the lanes from its own on.
;
; In:   at  R10  in AM, 16-byte aligned, 248 bytes long
; Out:  the vector in its first 128 bytes

.param at, R10, pointer am

.linear
.reg AR, p
.rept 16, l
.reg VR, pair_\l, lane_\l
.endr
  SMVAGA at, p
.rept 16, l
  VMOVI 2 * \l + 0x100000000 * (2 * \l + 1), pair_\l
  VFINTS32 pair_\l, lane_\l
  VSTW lane_\l, *+p[\l]
.endr
  SBR R63
.endlinear
