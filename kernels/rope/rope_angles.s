; SPDX-License-Identifier: Apache-2.0
; cos and sin of position * inv_freq for 32 frequencies and `rows` consecutive positions: one column of the table that the
; rotations read (Algorithm 1 of the paper, its vm_sinf32_u35 and vm_cosf32_u35). The error is at most 3.5 ULP (1.52 in the tests' sweep) for
; |position * inv_freq| <= 2^17, the product being rounded to FP32 as the definition of RoPE has it.
;
; In:   position  R10  that of the first row, FP32, in both words
;       inv_freq  R12  32 frequencies, FP32, in AM, 8-byte aligned
;       cosine    R14  of the first row, in AM, 16-byte aligned      sine  R16  likewise
;       rows      R18  at least 1                                    pitch R20  bytes from row to row, a multiple of 16
; Out:  PAIRS_IN_LANES = 0: 32 cosines (128 B) and 32 sines, in the order of inv_freq.
;       PAIRS_IN_LANES = 1: a lane of 64 bits holds the pair of elements that one angle rotates. 256 B of cosines: lane l of
;       the first vector has that of angle 2l in both words, the second that of angle 2l + 1; 256 B of sines alike, the low
;       words negated.
;
; Maths: t = x * 2/pi + 1.5 * 2^23 has n = round(x * 2/pi) in its low bits; r = x - n pi/2 with pi/2 in three parts, exact but
; for the last rounding; polynomials for |r| <= pi/4. Then by n mod 4: odd n exchange sine and cosine, bit 1 is the sign of
; the sine, bit 1 ^ bit 0 that of the cosine.

.equ PAIRS_IN_LANES, 0

.param position, R10, value
.param inv_freq, R12, pointer am
.param cosine, R14, pointer am
.param sine, R16, pointer am
.param rows, R18, count
.param pitch, R20, count

.linear
.independent  ; the caller's inv_freq, cosine and sine do not overlap
.reg AR, from, pcos, psin
.reg OR, step
.reg R, units, n
.reg VR, pos, f, x, t, k, rest1, rest2, rest, z, s1, s2, zr, s, c1, c2, c3, c
.reg VR, t_1, t_2, t_3, k_1, rest_1, z_1
.reg VR, odd, odd_mask, bit1, differ, swapped, s_q, c_q, s_sign, both, c_sign, sin, cos
.reg VR, one, two_over_pi, round, half_pi1, half_pi2, half_pi3, sin3, sin2, sin1, cos4, cos3, cos2, cos1, sign_bit
    SMVAGA  inv_freq, from
    SMVAGA  cosine, pcos
    SMVAGA  sine, psin
    SSHFLR  4, pitch, units            ; stores of pairs count in 16 bytes
.if PAIRS_IN_LANES == 0
    SSHFLR  3, pitch, units            ; single ones in 8
.endif
    SMVAGA  units, step
    SMOV    rows, n
    VLDW    *from, f
    SVBCAST position, pos
    VMOVI   0x3F8000003F800000, one
    VMOVI   0x3F22F9833F22F983, two_over_pi
    VMOVI   0x4B4000004B400000, round      ; 1.5 * 2^23
    VMOVI   0xBFC90FDBBFC90FDB, half_pi1   ; -pi/2 in three parts, to 75 bits
    VMOVI   0x333BBD2E333BBD2E, half_pi2
    VMOVI   0x26F72CED26F72CED, half_pi3
    VMOVI   0xB94CA1F9B94CA1F9, sin3       ; sin r = r + r^3 (sin1 + sin2 r^2 + sin3 r^4)
    VMOVI   0x3C08839E3C08839E, sin2
    VMOVI   0xBE2AAAA3BE2AAAA3, sin1
    VMOVI   0x37CCF5CE37CCF5CE, cos4       ; cos r = 1 + cos1 r^2 + cos2 r^4 + cos3 r^6 + cos4 r^8
    VMOVI   0xBAB6061ABAB6061A, cos3
    VMOVI   0x3D2AAAA53D2AAAA5, cos2
    VMOVI   0xBF000000BF000000, cos1
    VMOVI   0x8000000080000000, sign_bit
.if PAIRS_IN_LANES
.reg VR, minus_one, minus_sin, cos_even, cos_odd, sin_even, sin_odd
    VMOVI   0xBF800000BF800000, minus_one
.endif

; A value may live for one pass of the loop only, the next pass overwrites it: VMOV hands it on to a register of its own.
.region loop_row
row: .trip 1
    VFMULS32  pos, f, x
    VFADDS32  one, pos, pos
    VFMULAS32 x, two_over_pi, round, t
    VFSUBS32  round, t, k
    VMOV      t, t_1
    VMOV      t_1, t_2
    VMOV      t_2, t_3
    VFMULAS32 k, half_pi1, x, rest1
    VFMULAS32 k, half_pi2, rest1, rest2
    VMOV      k, k_1
    VFMULAS32 k_1, half_pi3, rest2, rest
    VMOV      rest, rest_1
    VFMULS32  rest, rest, z
    VMOV      z, z_1
    VFMULAS32 sin3, z, sin2, s1
    VFMULAS32 s1, z, sin1, s2
    VFMULS32  z, rest, zr
    VFMULAS32 s2, zr, rest_1, s
    VFMULAS32 cos4, z, cos3, c1
    VFMULAS32 c1, z, cos2, c2
    VFMULAS32 c2, z_1, cos1, c3
    VFMULAS32 c3, z_1, one, c
    VSHFLL32  31, t_3, odd
    VSHFAR32  31, odd, odd_mask
    VSHFLL32  30, t_3, bit1
    VXOR      s, c, differ
    VAND      differ, odd_mask, swapped
    VXOR      s, swapped, s_q
    VXOR      c, swapped, c_q
    VAND      bit1, sign_bit, s_sign
    VXOR      s_q, s_sign, sin
    VXOR      bit1, odd, both
    VAND      both, sign_bit, c_sign
    VXOR      c_q, c_sign, cos
.if PAIRS_IN_LANES
    VFMULS32  sin, minus_one, minus_sin
    VBALE2    cos, cos, cos_even
    VBALE2H   cos, cos, cos_odd
    VBALE2    minus_sin, sin, sin_even
    VBALE2H   minus_sin, sin, sin_odd
    VSTDW     cos_odd:cos_even, *pcos++[step]
    VSTDW     sin_odd:sin_even, *psin++[step]
.else
    VSTW      cos, *pcos++[step]
    VSTW      sin, *psin++[step]
.endif
    SSUB      1, n, n
    [n] SBR   row
.endregion
    SBR       R63
.endlinear
