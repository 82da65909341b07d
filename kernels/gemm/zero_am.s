; SPDX-License-Identifier: Apache-2.0
; Sets `bytes` bytes of AM to zero, bytes a multiple of 512 and at least 512: the pad rows of W behind the last k.
;
; In:   w  R10  in AM, 16-byte aligned      bytes  R12
; Takes 8 bytes/512 + 4 cycles.
;
; Registers   AR0 runs through the area in steps of OR0 = 32 x 16 B; VR0, VR1 = 0; R0 stores left

.param w, R10, pointer am
.param bytes, R12, count

; SMAC1              | SIEU              | VMAC1           | VMAC2
  SMVAGA.M1 R10, AR0 | SMOVI24 32, R20   | VMOVI.M1 0, VR0 | VMOVI.M2 0, VR1
  SMVAGA.M1 R20, OR0 | SSHFLR 9, R12, R0
  SNOP 1

.region loop_512_bytes
loop:
; SMAC2             | SBR           | VLDST1                   | VLDST2
  SSUB.M2 1, R0, R0 |               | VSTDW VR1:VR0, *+AR0[16] | VSTDW VR1:VR0, *AR0++[OR0]
                      [R0] SBR loop
                      [!R0] SBR R63
  SNOP 5
.endregion
  SNOP 1
