; SPDX-License-Identifier: Apache-2.0
; Y = X in the other element type: FP16 to FP32 (exact) and FP32 to FP16 (nearest even, overflow to infinity).
;
; In:   x  R10  and y  R12  in AM, 16-byte aligned      bytes  R14  of the FP32 side, a multiple of 512 and at least 512
; Takes 16 bytes/512 + 4 cycles; entries f16_to_f32 and f32_to_f16.
;
; Registers   AR0 the FP16 side in steps of OR0 = 16 x 16 B, AR1 the FP32 side in steps of OR1 = 32 x 16 B; VR0-1 FP16,
;             VR2-5 FP32; R0 blocks left

.param x, R10, pointer am
.param y, R12, pointer am
.param bytes, R14, count

f16_to_f32:
; SMAC1              | SMAC2                 | SIEU              | SBR             | VIEU                   | VLDST1                       | VLDST2
  SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1    | SMOVI24 16, R20
  SMVAGA.M1 R20, OR0 | SADD.M2 R20, R20, R21 | SSHFLR 9, R14, R0
  SMVAGA.M1 R21, OR1
  SNOP 1
.region widen
widen:
  SSUB.M1 1, R0, R0  |                       |                   |                 |                        | VLDDW *AR0++[OR0], VR1:VR0                                     ;  0
  SNOP 8
                                                                   [R0] SBR widen  | VFHPSP16L VR0, VR2                                                                      ;  9
                                                                   [!R0] SBR R63   | VFHPSP16H VR0, VR3                                                                      ; 10
                                                                                     VFHPSP16L VR1, VR4                                                                      ; 11
                                                                                     VFHPSP16H VR1, VR5                                                                      ; 12
  SNOP 2
                                                                                                              VSTDW0M32 VR5:VR4, *+AR1[16] | VSTDW0M32 VR3:VR2, *AR1++[OR1]  ; 15
.endregion
  SNOP 1

f32_to_f16:
  SMVAGA.M1 R10, AR1 | SMVAGA.M2 R12, AR0    | SMOVI24 16, R20
  SMVAGA.M1 R20, OR0 | SADD.M2 R20, R20, R21 | SSHFLR 9, R14, R0
  SMVAGA.M1 R21, OR1
  SNOP 1
.region narrow
narrow:
  SSUB.M1 1, R0, R0  |                       |                   |                 |                        | VLDDW0M2 *+AR1[16], VR5:VR4  | VLDDW0M2 *AR1++[OR1], VR3:VR2   ;  0
  SNOP 8
                                                                   [R0] SBR narrow | VFSPHP16 VR2, VR3, VR0                                                                  ;  9
                                                                   [!R0] SBR R63   | VFSPHP16 VR4, VR5, VR1                                                                  ; 10
  SNOP 4
                                                                                                              VSTDW VR1:VR0, *AR0++[OR0]                                     ; 15
.endregion
  SNOP 1
