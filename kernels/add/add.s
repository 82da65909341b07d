; SPDX-License-Identifier: Apache-2.0
; Y = X + A element by element, over X: the residual add. Each sum is rounded once (x * 1 + a, fused).
;
; In:   x  R10  and a  R12  in AM, 16-byte aligned      bytes  R14  of each, a multiple of 512 and at least 512
; Takes 18 bytes/512 + 4 cycles; entries add_f32 and add_f16.
;
; Registers   AR0 x and AR1 a, in steps of OR0 = 32 x 16 B; VR8 = 1; VR0-3 x, VR4-7 a; R0 blocks left

.param x, R10, pointer am
.param a, R12, pointer am
.param bytes, R14, count

add_f32:
; SMAC1              | SMAC2              | SIEU              | VMAC1
  SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1 | SMOVI24 32, R20
  SMVAGA.M1 R20, OR0 |                    | SSHFLR 9, R14, R0 | VMOVI.M1 0x3F8000003F800000, VR8
  SNOP 1
.region block_0
block_0:
; SMAC1              | SMAC2              | SIEU              | SBR              | VMAC1                            | VMAC2                           | VMAC3                           | VLDST1                   | VLDST2
  SSUB.M1 1, R0, R0  |                    |                   |                  |                                  |                                 |                                 | VLDDW *+AR0[16], VR3:VR2 | VLDDW *AR0, VR1:VR0         ;  0
                                                                                                                                                                                          VLDDW *+AR1[16], VR7:VR6 | VLDDW *AR1++[OR0], VR5:VR4  ;  1
  SNOP 8
                                                                                   VFMULAS32.M1 VR0, VR8, VR4, VR0  | VFMULAS32.M2 VR1, VR8, VR5, VR1 | VFMULAS32.M3 VR2, VR8, VR6, VR2                                                          ; 10
                                                                [R0] SBR block_0 | VFMULAS32.M1 VR3, VR8, VR7, VR3                                                                                                                               ; 11
                                                                [!R0] SBR R63                                                                                                                                                                    ; 12
  SNOP 4
                                                                                                                                                                                          VSTDW VR3:VR2, *+AR0[16] | VSTDW VR1:VR0, *AR0++[OR0]  ; 17
.endregion
  SNOP 1
add_f16:
  SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1 | SMOVI24 32, R20
  SMVAGA.M1 R20, OR0 |                    | SSHFLR 9, R14, R0 |                  | VMOVI.M1 0x3C003C003C003C00, VR8
  SNOP 1
.region block_1
block_1:
; SMAC1             | SBR              | VMAC1                           | VMAC2                           | VMAC3                           | VLDST1                   | VLDST2
  SSUB.M1 1, R0, R0 |                  |                                 |                                 |                                 | VLDDW *+AR0[16], VR3:VR2 | VLDDW *AR0, VR1:VR0         ;  0
                                                                                                                                               VLDDW *+AR1[16], VR7:VR6 | VLDDW *AR1++[OR0], VR5:VR4  ;  1
  SNOP 8
                                         VFMULAH16.M1 VR0, VR8, VR4, VR0 | VFMULAH16.M2 VR1, VR8, VR5, VR1 | VFMULAH16.M3 VR2, VR8, VR6, VR2                                                          ; 10
                      [R0] SBR block_1 | VFMULAH16.M1 VR3, VR8, VR7, VR3                                                                                                                              ; 11
                      [!R0] SBR R63                                                                                                                                                                   ; 12
  SNOP 4
                                                                                                                                               VSTDW VR3:VR2, *+AR0[16] | VSTDW VR1:VR0, *AR0++[OR0]  ; 17
.endregion
  SNOP 1
