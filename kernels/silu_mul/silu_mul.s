; SPDX-License-Identifier: Apache-2.0
; Y = SiLU(G) * U element by element, over G; SiLU(g) = g / (1 + e^-g). FP32, or FP16 with F16 = 1, computed in FP32 and
; rounded once.
;
; In:   gate  R10  and up  R12  in AM, 16-byte aligned      bytes  R14  of each, a multiple of 512 and at least 512
;
; With z = e^-|g|: 1 / (1 + e^-g) is 1 / (1 + z) for g >= 0 and z / (1 + z) below; nothing overflows and nothing cancels.
; G is loaded twice: a value that waits for e^-|g| and the reciprocal would keep the loop from being pipelined.
; A NaN of g comes back through the last product, and -inf gives NaN as -inf * 0 does.

.param gate, R10, pointer am
.param up, R12, pointer am
.param bytes, R14, count
.equ F16, 0
.include "../math/exp.inc.s"
.include "../math/reciprocal.inc.s"

.macro silu_mul g, late, u, y
.reg VR, m\@, x\@, e\@, z\@, d\@, inverse\@, sign\@, low\@, high\@, top\@, s\@, h\@
    VOR \g, minus, m\@
    VFMAXS32 m\@, lowest, x\@         ; -|g|, where e^x is not 0 yet
    exp_scaled x\@, e\@
    VFMULS32 e\@, unscale, z\@        ; 2^64 e^x, times 2^-64
    VFADDS32 z\@, one, d\@
    reciprocal d\@, inverse\@
    VSHFAR32 31, \late, sign\@       ; all ones below zero
    VAND sign\@, z\@, low\@
    VANDN sign\@, one, high\@
    VOR low\@, high\@, top\@          ; z below zero, else 1
    VFMULS32 top\@, inverse\@, s\@
    VFMULS32 \late, s\@, h\@
    VFMULS32 h\@, \u, \y
.endm

.linear
.independent  ; a store to Y overwrites only what it was computed from
.reg AR, pg, pl, pu, py
.reg OR, step
.reg R, n, units
.reg VR, one, minus, lowest, unscale, g0, g1, l0, l1, u0, u1, y0, y1
    SMOVI24 16, units
    SMVAGA units, step                ; 128 bytes of VLDW, 256 of VLDDW
    SMVAGA gate, pg
    SMVAGA gate, pl
    SMVAGA up, pu
    SMVAGA gate, py
    VMOVI 0x3F8000003F800000, one
    VMOVI 0x8000000080000000, minus
    VMOVI 0xC2D00000C2D00000, lowest      ; -104
    VMOVI 0x1F8000001F800000, unscale     ; 2^-64
    exp_constants
.if F16 == 1
.reg VR, gh, lh, uh, yh
    SSHFLR 7, bytes, n
loop: .trip 4
    VLDW *pg++[step], gh
    VLDW *pl++[step], lh
    VLDW *pu++[step], uh
    VFHPSP16L gh, g0
    VFHPSP16H gh, g1
    VFHPSP16L lh, l0
    VFHPSP16H lh, l1
    VFHPSP16L uh, u0
    VFHPSP16H uh, u1
    silu_mul g0, l0, u0, y0
    silu_mul g1, l1, u1, y1
    VFSPHP16 y0, y1, yh
    VSTW yh, *py++[step]
.else
    SSHFLR 8, bytes, n
loop: .trip 2
    VLDDW *pg++[step], g1:g0
    VLDDW *pl++[step], l1:l0
    VLDDW *pu++[step], u1:u0
    silu_mul g0, l0, u0, y0
    silu_mul g1, l1, u1, y1
    VSTDW y1:y0, *py++[step]
.endif
    SSUB 1, n, n
    [n] SBR loop
    SBR R63
.endlinear
