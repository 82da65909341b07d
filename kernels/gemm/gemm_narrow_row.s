; SPDX-License-Identifier: Apache-2.0
; FP16 Y[n] = FP32 sums[n], n a multiple of 64 and at least 64, each rounded once. Y may start where the sums start.
;
; In:   sums  R10  in AM, 16-byte aligned      y  R12  in AM, 8-byte aligned      n  R14

.param sums, R10, pointer am
.param y, R12, pointer am
.param n, R14, count

.linear
.independent                            ; in place, a store only meets loads before it
.reg AR, ps, py
.reg OR, step
.reg R, left, t
.reg VR, low, high, v
    SMVAGA sums, ps
    SMVAGA y, py
    SMOVI24 16, t                       ; 256 bytes of sums in units of 16, 128 bytes of Y in units of 8
    SMVAGA t, step
    SSHFLR 6, n, left
loop:
    VLDDW0M2 *ps++[step], high:low      ; lane l: columns 4 l, 4 l + 1 and 4 l + 2, 4 l + 3
    VFSPHP16 low, high, v
    VSTW v, *py++[step]
    SSUB 1, left, left
    [left] SBR loop
    SBR R63
.endlinear
