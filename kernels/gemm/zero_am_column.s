; SPDX-License-Identifier: Apache-2.0
; Sets a vector of 128 bytes of each of `rows` rows of AM to zero, rows at least 1: the end of rows of X or W that hold k.
;
; In:   at  R10  the first row's vector, 8-byte aligned      rows  R12      pitch  R14  bytes from row to row, a multiple of 8
; Takes 8 rows + 4 cycles.
;
; Registers   AR0 row, OR0 its pitch in 8 bytes; VR0 = 0; R0 rows left

.param at, R10, pointer am
.param rows, R12, count
.param pitch, R14, count

; SMAC1              | SMAC2           | SIEU               | VMAC1
  SMVAGA.M1 R10, AR0 | SMOV.M2 R12, R0 | SSHFLR 3, R14, R20 | VMOVI.M1 0, VR0
  SMVAGA.M1 R20, OR0
  SNOP 1

.region loop_row
loop:
; SMAC2             | SBR           | VLDST1
  SSUB.M2 1, R0, R0 |               | VSTW VR0, *AR0++[OR0]
                      [R0] SBR loop
                      [!R0] SBR R63
  SNOP 5
.endregion
  SNOP 1
