; SPDX-License-Identifier: Apache-2.0
; 1 / d and 1 / sqrt(d) on FP32 lanes, for .linear code: an 8-bit seed and two Newton steps.

; y = 1 / d, at most 0.51 ULP, where neither is zero, subnormal or infinite. A NaN stays. 2 VIEU, 4 VMAC.
.macro reciprocal d, y
  .reg VR, rcp_one\@, rcp_sign\@, rcp_minus_d\@, rcp_seed\@, rcp_e\@, rcp_y\@, rcp_f\@
  VMOVI 0x3F8000003F800000, rcp_one\@
  VMOVI 0x8000000080000000, rcp_sign\@
  VXOR \d, rcp_sign\@, rcp_minus_d\@
  VFRCPS32 \d, rcp_seed\@
  VFMULAS32 rcp_minus_d\@, rcp_seed\@, rcp_one\@, rcp_e\@
  VFMULAS32 rcp_seed\@, rcp_e\@, rcp_seed\@, rcp_y\@
  VFMULAS32 rcp_minus_d\@, rcp_y\@, rcp_one\@, rcp_f\@
  VFMULAS32 rcp_y\@, rcp_f\@, rcp_y\@, \y
.endm

; y = 1 / sqrt(d), at most 1.01 ULP, for any d: +0 gives +infinity, +infinity 0, NaN and negative numbers NaN. Subnormal
; numbers have their full accuracy, since d meets y / 2, and not 1/2, first.
.macro rsqrt d, y
  .reg VR, rsq_half\@, rsq_minus_half\@, rsq_zero\@, rsq_infinity\@
  .reg VR, rsq_seed\@, rsq_h\@, rsq_t\@, rsq_e\@, rsq_y1\@, rsq_h1\@, rsq_t1\@, rsq_e1\@, rsq_y2\@
  .reg VR, rsq_is_zero\@, rsq_is_infinite\@, rsq_special\@, rsq_kept\@, rsq_number\@
  VMOVI 0x3F0000003F000000, rsq_half\@
  VMOVI 0xBF000000BF000000, rsq_minus_half\@
  VMOVI 0, rsq_zero\@
  VMOVI 0x7F8000007F800000, rsq_infinity\@
  VFRSQS32 \d, rsq_seed\@
  VFMULS32 rsq_minus_half\@, rsq_seed\@, rsq_h\@
  VFMULS32 rsq_h\@, \d, rsq_t\@
  VFMULAS32 rsq_t\@, rsq_seed\@, rsq_half\@, rsq_e\@
  VFMULAS32 rsq_seed\@, rsq_e\@, rsq_seed\@, rsq_y1\@
  VFMULS32 rsq_minus_half\@, rsq_y1\@, rsq_h1\@
  VFMULS32 rsq_h1\@, \d, rsq_t1\@
  VFMULAS32 rsq_t1\@, rsq_y1\@, rsq_half\@, rsq_e1\@
  VFMULAS32 rsq_y1\@, rsq_e1\@, rsq_y1\@, rsq_y2\@
  ; Newton makes NaN of 0 times infinity: there the seed is the answer.
  VFCMPES32 \d, rsq_zero\@, rsq_is_zero\@
  VFCMPES32 \d, rsq_infinity\@, rsq_is_infinite\@
  VOR rsq_is_zero\@, rsq_is_infinite\@, rsq_special\@
  VAND rsq_special\@, rsq_seed\@, rsq_kept\@
  VANDN rsq_special\@, rsq_y2\@, rsq_number\@
  VOR rsq_kept\@, rsq_number\@, \y
.endm
