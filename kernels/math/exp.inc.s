; SPDX-License-Identifier: Apache-2.0
; exp on FP32 lanes, for .linear code: at most 0.9 ULP. exp_constants once, in front of the loop; then
;
;   exp_scaled x, y     y = 2^64 exp(x) for -104 <= x <= 0: 11 VMAC, 2 VIEU and a move on either; never subnormal
;
; Maths: n = x log2(e) rounded, r = x - n ln 2 in two steps (the first constant has 16 bits, its product with n is exact),
; p = exp(r) by a polynomial of degree 7 whose coefficients are those of a minimax fit on [-ln 2 / 2, ln 2 / 2] times 2^64,
; and n is added to the exponent of p. Adding 1.5 * 2^23 rounds and leaves n in the low bits of the sum.

.macro exp_constants
  .reg VR, exp_log2e, exp_round, exp_ln2_high, exp_ln2_low
  .reg VR, exp_c1, exp_c2, exp_c3, exp_c4, exp_c5, exp_c6, exp_c7
  VMOVI 0x3FB8AA3B3FB8AA3B, exp_log2e      ; log2(e)
  VMOVI 0x4B4000004B400000, exp_round      ; 1.5 * 2^23
  VMOVI 0xBF317200BF317200, exp_ln2_high   ; -0.693145752
  VMOVI 0xB5BFBE8EB5BFBE8E, exp_ln2_low    ; -1.42860682e-6
  VMOVI 0x5F8000005F800000, exp_c1         ; 2^64: of r and of 1
  VMOVI 0x5F0000005F000000, exp_c2         ; 0.5 * 2^64
  VMOVI 0x5E2AAAAA5E2AAAAA, exp_c3         ; 0.16666666 * 2^64
  VMOVI 0x5D2AA9C15D2AA9C1, exp_c4         ; 0.041665796 * 2^64
  VMOVI 0x5C0889085C088908, exp_c5         ; 0.008333452 * 2^64
  VMOVI 0x5AB743CE5AB743CE, exp_c6         ; 0.0013981999 * 2^64
  VMOVI 0x5950696759506967, exp_c7         ; 0.00019875691 * 2^64
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
