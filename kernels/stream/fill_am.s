; SPDX-License-Identifier: Apache-2.0
; Sets `bytes` bytes of AM to copies of the 64 bits `value`, bytes a multiple of 512 and at least 512: pads that a
; microkernel reads and no transfer writes.
;
; In:   am  R10  16-byte aligned      bytes  R12      value  R14
; Takes 8 bytes/512 + 6 cycles.
;
; Registers   AR0 runs through the area in steps of OR0 = 32 x 16 B; VR0, VR1 the value; R0 blocks left

.param am, R10, pointer am
.param bytes, R12, count
.param value, R14, value

; SMAC1              | SMAC2               | SIEU
  SMVAGA.M1 R10, AR0 | SVBCAST.M2 R14, VR0 | SMOVI24 32, R20
  SMVAGA.M1 R20, OR0 | SVBCAST.M2 R14, VR1 | SSHFLR 9, R12, R0
  SNOP 3

.region loop_512_bytes
loop:
; SMAC2             | SBR           | VLDST1                   | VLDST2
  SSUB.M2 1, R0, R0 |               | VSTDW VR1:VR0, *+AR0[16] | VSTDW VR1:VR0, *AR0++[OR0]
                      [R0] SBR loop
                      [!R0] SBR R63
  SNOP 5
.endregion
  SNOP 1
