; SPDX-License-Identifier: Apache-2.0
; X2[0..rows)[0] = 0, FP32, rows a multiple of 6 and at least 6: the pad of X behind the last k.
;
; In:   x  R10  &X2[0][0] in SM, 4-byte aligned      rows  R12      pitch  R14  bytes from row to row, a multiple of 4
; Takes 8 rows/6 + 6 cycles.
;
; Registers   AR8 first of six rows; OR8-12 the other five, in words; R20 = 0; R24-27 and R30 offsets; R0 rows left

.param x, R10, pointer sm
.param rows, R12, count
.param pitch, R14, count

; SMAC1               | SMAC2                 | SIEU
  SMVAGA.M1 R10, AR8  | SMOV.M2 R12, R0       | SSHFLR 2, R14, R24
  SMVAGA.M1 R24, OR8  |                       | SSHFLR 1, R14, R25
  SMVAGA.M1 R25, OR9  | SADD.M2 R24, R25, R26 | SMOVI24 0, R20
  SMVAGA.M1 R26, OR10 | SADD.M2 R24, R14, R27 | SSHFLL 3, R26, R30  ; six rows in bytes
  SMVAGA.M1 R27, OR12 | SMVAGA.M2 R14, OR11

.region loop_six_rows
loop:
; SMAC1                  | SMAC2             | SLDST                 | SBR
                           SSUB.M2 6, R0, R0 | SSTH R20, *AR8
                                               SSTH R20, *+AR8[OR8]  | [R0] SBR loop
                                               SSTH R20, *+AR8[OR9]  | [!R0] SBR R63
                                               SSTH R20, *+AR8[OR10]
                                               SSTH R20, *+AR8[OR11]
  SADDA.M1 R30, AR8, AR8 |                   | SSTH R20, *+AR8[OR12]
  SNOP 2
.endregion
  SNOP 1
