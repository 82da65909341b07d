; SPDX-License-Identifier: Apache-2.0
; Between the passes over tiles of scores: what the softmax knows of 32 rows, a row a lane (online softmax; the reduction
; over lanes is that of Fig. 9).
;
; In:   first  R10, second  R12, value  R14  in AM, 512-byte aligned: 32 vectors each
;       turn  R16  in AM, 512-byte aligned, 2560 bytes: overwritten
;       kept  R18  in AM, 16-byte aligned: m and l of the 32 rows, a vector each; entry begin writes it, next updates it
;       scale  R20  FP32, above 0
; begin, next  first = lane maxima, second = what attention_max saw. m = their maximum, and of the m before (next);
;              value = -m of each row, in every lane; second = what sums of weights begin with: 0, or NaN where the row
;              has a NaN or +infinity. next: l *= alpha, first = alpha of each row, in every lane: exp(scale (m before - m))
; add          second = lane sums of weights. l += their sums
; finish       value = 1 / l of each row, in every lane; 0 in a row of which every score is -infinity
;
; Maths: -m is at most the largest number, so that x - m is not NaN where all of a row is -infinity. l is at least 1, exp(-87)
; in such a row, or NaN.

.include "../math/exp.inc.s"
.include "../math/reciprocal.inc.s"
.include "../reduce/rows.inc.s"

.param first_at, R10, pointer am
.param second_at, R12, pointer am
.param value_at, R14, pointer am
.param turn_at, R16, pointer am
.param kept, R18, pointer am
.param scale, R20, value

.linear
.independent
.reg AR, first, second, value, turn, p_kept, p_second, p_new, p_value
.reg R, row, scale_2
.reg VR, red, old, old_l, most, limited, old_limited, negative, lowest, sign
.reg VR, nil, quiet, start, l_sum, new_l, factor, least, d, e, alpha
.reg VR, saw, minus_m, is_number, bad

.macro pointers
  SMVAGA first_at, first
  SMVAGA second_at, second
  SMVAGA value_at, value
  SMVAGA turn_at, turn
  SMVAGA kept, p_kept
  VMOVI 0xFF7FFFFFFF7FFFFF, lowest
  VMOVI 0x8000000080000000, sign
.endm

.macro start_sums loop
  VMOVI 0x7FC000007FC00000, quiet
  VMOVI 0, nil
  SADDA 0, second, p_second
  SADDA 0, second, p_new
  SADDA 0, value, p_value
  SMOVI24 32, row
\loop: .trip 32
  VLDW *p_second, saw
  VLDW *p_value, minus_m
  VFCMPES32 saw, saw, is_number
  VANDN is_number, quiet, bad
  VFMULAS32 minus_m, nil, bad, start
  VSTW start, *p_new
  SADDA 128, p_second, p_second
  SADDA 128, p_new, p_new
  SADDA 128, p_value, p_value
  SSUB 1, row, row
  [row] SBR \loop
  SBR R63
.endm

begin:
  pointers
  VMOVI 0, nil
  reduce_32_rows VFMAXS32, first, turn, most
  VSTW most, *p_kept
  VSTW nil, *+p_kept[16]
  VFMAXS32 most, lowest, limited
  VXOR limited, sign, negative
  spread_32_rows negative, value
  start_sums begin_sums

next:
  pointers
  exp_constants_plain
  reduce_32_rows VFMAXS32, first, turn, red
  VLDW *p_kept, old
  VLDW *+p_kept[16], old_l
  VFMAXS32 red, old, most
  VSTW most, *p_kept
  VFMAXS32 most, lowest, limited
  VFMAXS32 old, lowest, old_limited
  VXOR limited, sign, negative
  SBALE2 scale, scale, scale_2
  SVBCAST scale_2, factor
  VMOVI 0xC2AE0000C2AE0000, least            ; -87
  VFADDS32 old_limited, negative, d
  VFMULS32 d, factor, d
  VFMAXS32 d, least, d
  exp_scaled d, alpha
  VFMULS32 old_l, alpha, new_l
  VSTW new_l, *+p_kept[16]
  spread_32_rows negative, value
  spread_32_rows alpha, first
  start_sums next_sums

add:
  pointers
  reduce_32_rows VFADDS32, second, turn, l_sum
  VLDW *+p_kept[16], old_l
  VFADDS32 old_l, l_sum, new_l
  VSTW new_l, *+p_kept[16]
  SBR R63

finish:
.reg VR, inverse, all_maxima, minus_infinity, masked, one, weight, scaled_inverse
  pointers
  VLDW *+p_kept[16], old_l
  VLDW *p_kept, all_maxima
  reciprocal old_l, inverse
  VMOVI 0xFF800000FF800000, minus_infinity
  VMOVI 0x3F8000003F800000, one
  VFCMPES32 all_maxima, minus_infinity, masked
  VANDN masked, one, weight
  VFMULS32 inverse, weight, scaled_inverse
  spread_32_rows scaled_inverse, value
  SBR R63
.endlinear
