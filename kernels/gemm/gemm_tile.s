; SPDX-License-Identifier: Apache-2.0
; Y1[M1][N1] (+)= X1[M1][K] * W1[K][N1] for any M1 x N1 that the registers hold: the template behind every tile that has no
; kernel of its own. N1 = 32 V columns in FP32 and 64 V in FP16.
;
; Defines: M1         rows of Y1, 1 to 16
;          V          vectors of a row of Y1
;          F16        0: FP32; 1: FP16 throughout, every fused multiply-add rounds to FP16
;          F32_SUMS   1, with F16: the FP16 sums of this call are added to Y1 in FP32, as in gemm_f16_6x256
;          STEPS      k-steps of one loop pass: 1, 2 or 4 in FP32, 4 in FP16
;          PARTS      partial sums of each element, a divisor of STEPS: a small tile would wait for the multiply-add's latency
; In:   x  R10  &X1[0][0] in SM, row-major, 4-byte aligned (FP16: 8)     x_pitch  R18  bytes from row to row, a multiple of that
;       w  R12  &W1[0][0] in AM, row-major, 16-byte aligned              w_pitch  R20  bytes from row to row, a multiple of 16
;       y  R14  &Y1[0][0] in AM, row-major, 16-byte aligned              y_pitch  R22  bytes from row to row, a multiple of 16
;       k  R16  K, a multiple of STEPS and at least that
; Out:  Y1 in AM. Entry accumulate: Y1 = Y1 + X1 * W1. Entry write_only: Y1 = X1 * W1, Y1 is not read.
;
; Maths: for each element one fused multiply-add per k, k ascending, starting from Y1 (or from +0), as in gemm_f32_6x128;
; with PARTS = p > 1, sum j takes the k with k mod p = j, sum 0 starts from Y1, and the others are added to it at the end,
; j ascending. An FP32 of X1 is doubled by SBALE2 and broadcast; FP16 comes four k at a time (there is no 16-bit scalar
; load), is broadcast and spread over the lane by VFEXTH16.
; F32_SUMS: the registers start from +0 in both entries, and at the end Y1 = Y1 + 1.0 * sum, or +0 + 1.0 * sum, in FP32. A row
; of Y1 then takes 256 V bytes: for each 64 columns 16 lanes of columns 4l, 4l+1 and 16 lanes of columns 4l+2, 4l+3.

.equ M1, 6
.equ V, 4
.equ F16, 0
.equ F32_SUMS, 0
.equ STEPS, 2
.equ PASSES, 1
.equ PARTS, 1

.param x, R10, pointer sm
.param w, R12, pointer am
.param y, R14, pointer am
.param k, R16, count
.param x_pitch, R18, count
.param w_pitch, R20, count
.param y_pitch, R22, count

.equ PAIRS, V / 2                    ; of vectors in a row; an odd last one goes alone
.equ ODD, V % 2
.equ GROUPS, (M1 + 7) / 8            ; of eight rows, which share an address: row 0 plain, the others through OR registers
.equ WORD, 4 + 4 * F16               ; bytes of a scalar load
.equ LOADS, STEPS * (1 - F16) + F16  ; scalar loads of a row in one pass
.equ PROMOTED, (62 - M1 * V) / 2     ; vectors of Y1 in FP32, two registers each, that a call has in registers at a time

.linear
.independent                         ; x, w and y are different buffers

; R0 passes left, R24 offset, R25 address, R26 stride: never X1, so that the addresses can be proved to depend on no data.

; Row 8 g + i of X1 and Y1 is called g_i.
.reg AR, pw, py
.reg OR, w_step
.rept 8, i
.reg OR, row\i
.endr
.rept GROUPS, g
.rept LOADS, s
.reg AR, px\g\()_\s
.endr
.rept 8, i
.if 8 * \g + \i < M1
.rept LOADS, s
.reg R, x\g\()_\i\()_\s, d\g\()_\i\()_\s
.reg VR, q\g\()_\i\()_\s
.endr
.rept STEPS, s
.reg VR, e\g\()_\i\()_\s
.endr
.rept PARTS, j
.rept PAIRS, c
.reg VR, al\g\()_\i\()_\c\()_\j, ah\g\()_\i\()_\c\()_\j
.endr
.reg VR, ao\g\()_\i\()_\j
.endr
.endif
.endr
.endr
.rept STEPS, s
.rept PAIRS, c
.reg VR, wl\s\()_\c, wh\s\()_\c
.endr
.reg VR, wo\s
.endr

.if F32_SUMS
.rept PROMOTED, p
.reg VR, fl\p, fh\p
.endr
.reg VR, one, nothing
.endif

.macro load_word from, to
.if F16
    SLDW \from, \to
.else
    SLDH \from, \to
.endif
.endm

; Row g_i of X1, scalar load s, from SM to all lanes.
.macro load_x g, i, s
.if \i == 0
    load_word *px\g\()_\s, x\g\()_\i\()_\s
.else
    load_word *+px\g\()_\s[row\i], x\g\()_\i\()_\s
.endif
.if F16
    SVBCAST x\g\()_\i\()_\s, q\g\()_\i\()_\s
    VFEXTH16LL q\g\()_\i\()_\s, e\g\()_\i\()_0
    VFEXTH16LH q\g\()_\i\()_\s, e\g\()_\i\()_1
    VFEXTH16HL q\g\()_\i\()_\s, e\g\()_\i\()_2
    VFEXTH16HH q\g\()_\i\()_\s, e\g\()_\i\()_3
.else
    SBALE2 x\g\()_\i\()_\s, x\g\()_\i\()_\s, d\g\()_\i\()_\s
    SVBCAST d\g\()_\i\()_\s, e\g\()_\i\()_\s
.endif
.endm

; A row of W1 into the registers of k-step s; on to the next one.
.macro load_w s
.if V == 1
    VLDW *pw++[w_step], wo\s
.else
.if ODD
    VLDW *+pw[16 * (V - 1)], wo\s
.endif
.rept PAIRS, c
.if \c > 0
    VLDDW *+pw[16 * \c], wh\s\()_\c:wl\s\()_\c
.endif
.endr
    VLDDW *pw++[w_step], wh\s\()_0:wl\s\()_0
.endif
.endm

.macro multiply a, b, acc
.if F16
    VFMULAH16 \a, \b, \acc, \acc
.else
    VFMULAS32 \a, \b, \acc, \acc
.endif
.endm

.macro add a, b
.if F16
    VFADDH16 \a, \b, \b
.else
    VFADDS32 \a, \b, \b
.endif
.endm

; Addresses, and all of K.
.macro multiply_all loop
    SMVAGA w, pw
    SSHFLR 4 - (V == 1), w_pitch, R24
    SMVAGA R24, w_step
.if M1 > 1
    SSHFLR 2 + F16, x_pitch, R24
    SADD 0, R24, R25
.endif
.rept 8, i
.if (\i > 0) * (\i < M1)
    SMVAGA R25, row\i
.if (\i < 7) * (\i + 1 < M1)
    SADD R24, R25, R25
.endif
.endif
.endr
.if GROUPS > 1
    SSHFLL 3, x_pitch, R26
.endif
    SADD 0, x, R24
.rept GROUPS, g
.rept LOADS, s
    SADD WORD * \s, R24, R25
    SMVAGA R25, px\g\()_\s
.endr
.if \g + 1 < GROUPS
    SADD R26, R24, R24
.endif
.endr
.if STEPS == 1
    SADD 0, k, R0
.else
    SSHFLR STEPS / 2, k, R0
.endif
\loop: .trip PASSES
.rept STEPS, s
    load_w \s
.endr
.rept GROUPS, g
.rept LOADS, s
.rept 8, i
.if 8 * \g + \i < M1
    load_x \g, \i, \s
.endif
.endr
    SADDA WORD * LOADS, px\g\()_\s, px\g\()_\s
.endr
.endr
.rept STEPS, s
.rept GROUPS, g
.rept 8, i
.if 8 * \g + \i < M1
.rept PARTS, j
.if \s % PARTS == \j
.rept PAIRS, c
    multiply e\g\()_\i\()_\s, wl\s\()_\c, al\g\()_\i\()_\c\()_\j
    multiply e\g\()_\i\()_\s, wh\s\()_\c, ah\g\()_\i\()_\c\()_\j
.endr
.if ODD
    multiply e\g\()_\i\()_\s, wo\s, ao\g\()_\i\()_\j
.endif
.endif
.endr
.endif
.endr
.endr
.endr
    SSUB 1, R0, R0
    [R0] SBR \loop
.endm

; Y1 from AM.
.macro load_y
    SMVAGA y, py
.rept GROUPS, g
.rept 8, i
.if 8 * \g + \i < M1
.rept PAIRS, c
    VLDDW *+py[16 * \c], ah\g\()_\i\()_\c\()_0:al\g\()_\i\()_\c\()_0
.endr
.if ODD
    VLDW *+py[16 * (V - 1)], ao\g\()_\i\()_0
.endif
.if 8 * \g + \i + 1 < M1
    SADDA y_pitch, py, py
.endif
.endif
.endr
.endr
.endm

; Partial sums first, first + 1, ... to zero.
.macro clear first
.rept GROUPS, g
.rept 8, i
.if 8 * \g + \i < M1
.rept PARTS, j
.if \j >= \first
.rept PAIRS, c
    VMOVI 0, al\g\()_\i\()_\c\()_\j
    VMOVI 0, ah\g\()_\i\()_\c\()_\j
.endr
.if ODD
    VMOVI 0, ao\g\()_\i\()_\j
.endif
.endif
.endr
.endif
.endr
.endr
.endm

; Partial sums of row g_i to the first.
.macro add_parts g, i
.rept PARTS, j
.if \j > 0
.rept PAIRS, c
    add al\g\()_\i\()_\c\()_\j, al\g\()_\i\()_\c\()_0
    add ah\g\()_\i\()_\c\()_\j, ah\g\()_\i\()_\c\()_0
.endr
.if ODD
    add ao\g\()_\i\()_\j, ao\g\()_\i\()_0
.endif
.endif
.endr
.endm

; Vector v of row g_i, its FP16 sum in `sum`, through a pair of FP32 registers.
.macro promote g, i, v, sum, fresh
.rept PROMOTED, p
.if ((8 * \g + \i) * V + \v) % PROMOTED == \p
.if \fresh
    VFMULAHLS \sum, one, nothing, fl\p
    VFMULAHHS \sum, one, nothing, fh\p
.else
    VLDDW *+py[16 * (\v)], fh\p:fl\p
    VFMULAHLS \sum, one, fl\p, fl\p
    VFMULAHHS \sum, one, fh\p, fh\p
.endif
    VSTDW fh\p:fl\p, *+py[16 * (\v)]
.endif
.endr
.endm

; Y1 += the sums, or with fresh Y1 = the sums, in FP32, and back to the caller.
.macro promote_y fresh
    VMOVI 0x3C003C003C003C00, one
.if \fresh
    VMOVI 0, nothing
.endif
    SMVAGA y, py
.rept GROUPS, g
.rept 8, i
.if 8 * \g + \i < M1
    add_parts \g, \i
.rept PAIRS, c
    promote \g, \i, 2 * \c, al\g\()_\i\()_\c\()_0, \fresh
    promote \g, \i, 2 * \c + 1, ah\g\()_\i\()_\c\()_0, \fresh
.endr
.if ODD
    promote \g, \i, V - 1, ao\g\()_\i\()_0, \fresh
.endif
.if 8 * \g + \i + 1 < M1
    SADDA y_pitch, py, py
.endif
.endif
.endr
.endr
    SBR R63
.endm

; Y1 to AM, and back to the caller.
.macro store_y
    SMVAGA y, py
.rept GROUPS, g
.rept 8, i
.if 8 * \g + \i < M1
    add_parts \g, \i
.rept PAIRS, c
    VSTDW ah\g\()_\i\()_\c\()_0:al\g\()_\i\()_\c\()_0, *+py[16 * \c]
.endr
.if ODD
    VSTW ao\g\()_\i\()_0, *+py[16 * (V - 1)]
.endif
.if 8 * \g + \i + 1 < M1
    SADDA y_pitch, py, py
.endif
.endif
.endr
.endr
    SBR R63
.endm

accumulate:
.if F32_SUMS
    clear 0
    multiply_all loop
    promote_y 0
.else
    load_y
    clear 1
    multiply_all loop
    store_y
.endif

write_only:
    clear 0
    multiply_all loop_write_only
.if F32_SUMS
    promote_y 1
.else
    store_y
.endif
.endlinear
