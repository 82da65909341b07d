; SPDX-License-Identifier: Apache-2.0
; Y1[32] += W1[32][K] * X1[K], FP32 or (F16 = 1) FP16 with FP32 sums: one row of X against rows of W, where a vector holds k.
; The microkernel of a layer with few rows whose W lies as [out, in]; F16 = 0: K a multiple of 32, F16 = 1: of 64; at least one.
;
; In:   x  R10  X1 in AM, 8-byte aligned           w_pitch  R18  bytes from row to row, a multiple of 8
;       w  R12  W1 in AM, row-major, 8-byte aligned   scratch  R20  2560 bytes of AM, 512-byte aligned
;       y  R14  FP32 Y1 in AM, 8-byte aligned
;       k  R16  K
; Out:  Y1 in AM; scratch is overwritten.
;
; Maths: 32 sums of vectors, one fused multiply-add per k (FP16 products are exact in FP32), then the reduction of paper Fig. 9: pack
; two rows into one vector of 64-bit lanes and add its halves; add the 16 lanes of 16 such vectors by two 4 x 16 transposes through
; memory, each followed by three additions; the lane of a sum is its column.

.equ F16, 0

.param x, R10, pointer am
.param w, R12, pointer am
.param y, R14, pointer am
.param k, R16, count
.param w_pitch, R18, count
.param scratch, R20, pointer am

; Registers chosen by the scheduler. Row 2 (4 s + g) of W1 is e<s><g>, the next one o<s><g>; s and g as in the transposes.
.linear
.reg AR, px, pw, py, ps
.reg OR, vector, row, two_rows
.reg R, n, offset, back
.reg VR, x1, y1, sum
.rept 4, s
.rept 4, g
.reg VR, we\s\g, wo\s\g, e\s\g, o\s\g, lo\s\g, hi\s\g, p\s\g, q\s\g
.endr
.reg VR, b\s, c\s, t\s, u\s
.endr
    SMVAGA x, px
    SMVAGA w, pw
    SMVAGA y, py
    SMVAGA scratch, ps
    SMOVI24 16, offset                  ; a vector is 16 units of 8 bytes
    SMVAGA offset, vector
    SSHFLR 3, w_pitch, offset
    SMVAGA offset, row
    SSHFLR 2, w_pitch, offset
    SMVAGA offset, two_rows
    SSHFLL 5, w_pitch, back
    SADD -128, back, back               ; from behind row 31 to the next vector of row 0
.if F16
    SSHFLR 6, k, n
.else
    SSHFLR 5, k, n
.endif
.rept 4, s
.rept 4, g
    VMOVI 0, e\s\g
    VMOVI 0, o\s\g
.endr
.endr
loop:
    VLDW *px++[vector], x1
.rept 4, s
.rept 4, g
    VLDW *+pw[row], wo\s\g
    VLDW *pw++[two_rows], we\s\g
.if F16
    VFMULAHLS we\s\g, x1, e\s\g, e\s\g
    VFMULAHHS we\s\g, x1, e\s\g, e\s\g
    VFMULAHLS wo\s\g, x1, o\s\g, o\s\g
    VFMULAHHS wo\s\g, x1, o\s\g, o\s\g
.else
    VFMULAS32 we\s\g, x1, e\s\g, e\s\g
    VFMULAS32 wo\s\g, x1, o\s\g, o\s\g
.endif
.endr
.endr
    SSUBA back, pw, pw
    SSUB 1, n, n
    [n] SBR loop

.rept 4, s
.rept 4, g
    VBALE2 e\s\g, o\s\g, lo\s\g
    VBALE2H e\s\g, o\s\g, hi\s\g
    VFADDS32 lo\s\g, hi\s\g, p\s\g    ; w0 part of row 2 (4 s + g), w1 of the next
.endr
.endr
.rept 4, g
    VSTDW0M16 p1\g:p0\g, *+ps[\g*32]  ; lane l of p0, p1, p2, p3 side by side
    VSTDW1M16 p3\g:p2\g, *+ps[\g*32+16]
.endr
.rept 4, g
    VLDDW *+ps[\g*32], q1\g:q0\g
    VLDDW *+ps[\g*32+16], q3\g:q2\g
    VFADDS32 q0\g, q1\g, b\g
    VFADDS32 q2\g, q3\g, c\g
    VFADDS32 b\g, c\g, t\g             ; lane 4 v + s: part v of 4 s + g
.endr
    VSTDW0M16 t1:t0, *+ps[128]
    VSTDW1M16 t3:t2, *+ps[144]
    VLDDW *+ps[128], u1:u0
    VLDDW *+ps[144], u3:u2
    VFADDS32 u0, u1, u0
    VFADDS32 u2, u3, u2
    VFADDS32 u0, u2, sum                ; lane 4 s + g
    VLDW *py, y1
    VFADDS32 y1, sum, y1
    VSTW y1, *py
    SBR R63
.endlinear
