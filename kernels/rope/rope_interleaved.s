; SPDX-License-Identifier: Apache-2.0
; Rotates pairs of neighbouring elements (x[2i], x[2i+1]) by the angles of a table, in place:
;   x[2i] = x[2i] cos - x[2i+1] sin      x[2i+1] = x[2i+1] cos + x[2i] sin
; each a product and a fused multiply-add, in FP32; FP16 = 1 reads and writes FP16 and rounds each result once more. Called for
; `count` blocks of HEADS heads that share their angles, each of CHUNKS times 32 pairs: down the rows of a tile (pitches of
; elements and table) or along the heads of one row (the bytes of a block, and 0).
;
; In:   x       R10  in AM, 16-byte aligned      x_step      R18  bytes from block to block, a multiple of 16
;       cosine  R12  and sine R14 in AM, 16-byte aligned, as rope_angles writes them with PAIRS_IN_LANES = 1
;       count   R16  at least 1                  angle_step  R20  bytes from one block's cosines and sines to the next one's
;
; One block loads and stores 128 B a vector and takes a VBALE2LH a vector of FP32: the bound is HEADS * CHUNKS * 2 cycles,
; in FP16 2.5 times that.

.equ CHUNKS, 2
.equ HEADS, 2
.equ FP16, 0

.param x, R10, pointer am
.param cosine, R12, pointer am
.param sine, R14, pointer am
.param count, R16, count
.param x_step, R18, count
.param angle_step, R20, count

; Rotates the 32 pairs at x + `at` (in units of 16 B, FP16: 8 B) by the angles of chunk `j`. Lane l of `even` is pair 2l of
; the chunk, of `odd` pair 2l + 1.
.macro rotate at, j
.reg VR, even\@, odd\@, even_swapped\@, odd_swapped\@, even_part\@, odd_part\@, even_new\@, odd_new\@
.if FP16
.reg VR, halves\@, halves_new\@
    VLDW      *+px[\at], halves\@
    VFHPSP16L halves\@, even\@
    VFHPSP16H halves\@, odd\@
.else
    VLDDW0M2  *+px[\at], odd\@:even\@
.endif
    VFMULS32  even\@, cos_even\j, even_part\@
    VFMULS32  odd\@, cos_odd\j, odd_part\@
    VBALE2LH  even\@, even\@, even_swapped\@
    VBALE2LH  odd\@, odd\@, odd_swapped\@
    VFMULAS32 even_swapped\@, sin_even\j, even_part\@, even_new\@
    VFMULAS32 odd_swapped\@, sin_odd\j, odd_part\@, odd_new\@
.if FP16
    VFSPHP16  even_new\@, odd_new\@, halves_new\@
    VSTW      halves_new\@, *+py[\at]
.else
    VSTDW0M32 odd_new\@:even_new\@, *+py[\at]
.endif
.endm

.linear
.independent  ; the table overlaps nothing; a block is stored behind its loads and overlaps no other
.reg AR, px, py, pcos, psin
.reg R, n
    SMVAGA  x, px
    SMVAGA  x, py
    SMVAGA  cosine, pcos
    SMVAGA  sine, psin
    SMOV    count, n

.region loop_block
block: .trip 1
.rept CHUNKS, j
.reg VR, cos_even\j, cos_odd\j, sin_even\j, sin_odd\j
    VLDDW     *+pcos[\j*16], cos_odd\j:cos_even\j
    VLDDW     *+psin[\j*16], sin_odd\j:sin_even\j
.rept HEADS, h
    rotate    (\h*CHUNKS+\j)*16, \j
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
