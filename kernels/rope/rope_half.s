; SPDX-License-Identifier: Apache-2.0
; Rotates pairs (x[i], x[i + d/2]) of heads of d elements by the angles of a table, in place: RoPE as Hugging Face's Llama
; lays it out.
;   x[i] = x[i] cos - x[i+d/2] sin      x[i+d/2] = x[i+d/2] cos + x[i] sin
; each a product and a fused multiply-add, in FP32; FP16 = 1 reads and writes FP16 and rounds each result once more. Called for
; `count` blocks of HEADS heads that share their angles, each of CHUNKS vectors of low and as many of high elements (32 pairs a
; vector, in FP16 64): down the rows of a tile (pitches of elements and table) or along the heads of one row (the bytes of a
; block, and 0).
;
; In:   x       R10  in AM, 16-byte aligned      x_step      R18  bytes from block to block, a multiple of 16
;       cosine  R12  and sine R14 in AM, 16-byte aligned, as rope_angles writes them with PAIRS_IN_LANES = 0
;       count   R16  at least 1                  angle_step  R20  bytes from one block's cosines and sines to the next one's

.equ CHUNKS, 2
.equ HEADS, 2
.equ FP16, 0

.param x, R10, pointer am
.param cosine, R12, pointer am
.param sine, R14, pointer am
.param count, R16, count
.param x_step, R18, count
.param angle_step, R20, count

; low and high are one vector each of FP32.
.macro rotate low, high, cos, sin, minus_sin, low_new, high_new
.reg VR, low_part\@, high_part\@
    VFMULS32  \low, \cos, low_part\@
    VFMULS32  \high, \cos, high_part\@
    VFMULAS32 \high, \minus_sin, low_part\@, \low_new
    VFMULAS32 \low, \sin, high_part\@, \high_new
.endm

; The vectors at x + 8 B * low_at and x + 8 B * high_at, by the angles of chunk `j`. An FP16 vector widens to its even and its
; odd pairs of elements: so the table is read.
.macro rotate_vectors low_at, high_at, j
.reg VR, low\@, high\@, low_new\@, high_new\@
    VLDW      *+px[\low_at], low\@
    VLDW      *+px[\high_at], high\@
.if FP16
.reg VR, low_even\@, low_odd\@, high_even\@, high_odd\@, low_even_new\@, low_odd_new\@, high_even_new\@, high_odd_new\@
    VFHPSP16L low\@, low_even\@
    VFHPSP16H low\@, low_odd\@
    VFHPSP16L high\@, high_even\@
    VFHPSP16H high\@, high_odd\@
    rotate    low_even\@, high_even\@, cos_even\j, sin_even\j, minus_sin_even\j, low_even_new\@, high_even_new\@
    rotate    low_odd\@, high_odd\@, cos_odd\j, sin_odd\j, minus_sin_odd\j, low_odd_new\@, high_odd_new\@
    VFSPHP16  low_even_new\@, low_odd_new\@, low_new\@
    VFSPHP16  high_even_new\@, high_odd_new\@, high_new\@
.else
    rotate    low\@, high\@, cos\j, sin\j, minus_sin\j, low_new\@, high_new\@
.endif
    VSTW      low_new\@, *+py[\low_at]
    VSTW      high_new\@, *+py[\high_at]
.endm

.linear
.independent  ; the table overlaps nothing; a block is stored behind its loads and overlaps no other
.reg AR, px, py, pcos, psin
.reg R, n
.reg VR, sign_bit
    SMVAGA  x, px
    SMVAGA  x, py
    SMVAGA  cosine, pcos
    SMVAGA  sine, psin
    SMOV    count, n
    VMOVI   0x8000000080000000, sign_bit

.region loop_block
block: .trip 1
.rept CHUNKS, j
.if FP16
.reg VR, cos_even\j, cos_odd\j, sin_even\j, sin_odd\j, minus_sin_even\j, minus_sin_odd\j
    VLDDW0M2  *+pcos[\j*16], cos_odd\j:cos_even\j
    VLDDW0M2  *+psin[\j*16], sin_odd\j:sin_even\j
    VXOR      sin_even\j, sign_bit, minus_sin_even\j
    VXOR      sin_odd\j, sign_bit, minus_sin_odd\j
.else
.reg VR, cos\j, sin\j, minus_sin\j
    VLDW      *+pcos[\j*16], cos\j
    VLDW      *+psin[\j*16], sin\j
    VXOR      sin\j, sign_bit, minus_sin\j
.endif
.rept HEADS, h
    rotate_vectors (2*\h*CHUNKS+\j)*16, ((2*\h+1)*CHUNKS+\j)*16, \j
.endr
.endr
    SADDA     angle_step, pcos, pcos
    SADDA     angle_step, psin, psin
    SADDA     x_step, px, px
    SADDA     x_step, py, py
    SSUB      1, n, n
    [n] SBR   block
.endregion
    SBR       R63
.endlinear
