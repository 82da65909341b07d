; SPDX-License-Identifier: Apache-2.0
; exp on FP32 lanes, for .linear code: at most 0.9 ULP. exp_constants or exp_constants_plain once, in front of the loop;
; then
;
;   exp_scaled x, y     y = 2^64 exp(x) for -104 <= x <= 0, or, with the plain constants, exp(x) for -87 <= x <= 0: 11 VMAC,
;                       2 VIEU and a move on either; never subnormal
;
; Maths: n = x log2(e) rounded, r = x - n ln 2 in two steps (the first constant has 16 bits, its product with n is exact),
; p = exp(r) by a polynomial of degree 7 whose coefficients are those of a minimax fit on [-ln 2 / 2, ln 2 / 2] times 2^64
; or 1, and n is added to the exponent of p. Adding 1.5 * 2^23 rounds and leaves n in the low bits of the sum.

.macro exp_constants
  exp_constants_times 64
.endm
.macro exp_constants_plain
  exp_constants_times 0
.endm

; The polynomial times 2^power: a power of two is added to the exponent of each coefficient, in both words of a lane.
.macro exp_constants_times power
  .reg VR, exp_log2e, exp_round, exp_ln2_high, exp_ln2_low
  .reg VR, exp_c1, exp_c2, exp_c3, exp_c4, exp_c5, exp_c6, exp_c7
  VMOVI 0x3FB8AA3B3FB8AA3B, exp_log2e      ; log2(e)
  VMOVI 0x4B4000004B400000, exp_round      ; 1.5 * 2^23
  VMOVI 0xBF317200BF317200, exp_ln2_high   ; -0.693145752
  VMOVI 0xB5BFBE8EB5BFBE8E, exp_ln2_low    ; -1.42860682e-6
  VMOVI (0x3F800000 + 0x800000 * \power) * 0x100000001, exp_c1   ; 1: of r and of 1
  VMOVI (0x3F000000 + 0x800000 * \power) * 0x100000001, exp_c2   ; 0.5
  VMOVI (0x3E2AAAAA + 0x800000 * \power) * 0x100000001, exp_c3   ; 0.16666666
  VMOVI (0x3D2AA9C1 + 0x800000 * \power) * 0x100000001, exp_c4   ; 0.041665796
  VMOVI (0x3C088908 + 0x800000 * \power) * 0x100000001, exp_c5   ; 0.008333452
  VMOVI (0x3AB743CE + 0x800000 * \power) * 0x100000001, exp_c6   ; 0.0013981999
  VMOVI (0x39506967 + 0x800000 * \power) * 0x100000001, exp_c7   ; 0.00019875691
.endm

; r is used over 36 cycles; its copy lets a loop of 8 vectors take fewer cycles than that.
.macro exp_scaled x, y
  .reg VR, exp_t\@, exp_n\@, exp_s\@, exp_r\@, exp_late_r\@, exp_p\@
  VFMULAS32 \x, exp_log2e, exp_round, exp_t\@
  VFSUBS32 exp_round, exp_t\@, exp_n\@
  VFMULAS32 exp_n\@, exp_ln2_high, \x, exp_r\@
  VFMULAS32 exp_n\@, exp_ln2_low, exp_r\@, exp_r\@
  VFMULAS32 exp_r\@, exp_c7, exp_c6, exp_p\@
  VFMULAS32 exp_r\@, exp_p\@, exp_c5, exp_p\@
  VFMULAS32 exp_r\@, exp_p\@, exp_c4, exp_p\@
  VMOV exp_r\@, exp_late_r\@
  VFMULAS32 exp_late_r\@, exp_p\@, exp_c3, exp_p\@
  VFMULAS32 exp_late_r\@, exp_p\@, exp_c2, exp_p\@
  VFMULAS32 exp_late_r\@, exp_p\@, exp_c1, exp_p\@
  VFMULAS32 exp_late_r\@, exp_p\@, exp_c1, exp_p\@
  VSHFLL32 23, exp_t\@, exp_s\@
  VADD32 exp_p\@, exp_s\@, \y
.endm
