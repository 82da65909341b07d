; SPDX-License-Identifier: Apache-2.0
; Sets 8 bytes of each of `rows` rows of SM to zero, rows a multiple of 6 and at least 6: the pad of X behind the last k.
;
; In:   x  R10  the first row's 8 bytes in SM, 8-byte aligned      rows  R12      pitch  R14  bytes from row to row, a multiple of 8
; Takes 8 rows/6 + 6 cycles.
;
; Registers   AR8 first of six rows; OR8-12 the other five, in 8 bytes; R20 = 0; R24-28 and R30 offsets; R0 rows left

.param x, R10, pointer sm
.param rows, R12, count
.param pitch, R14, count

; SMAC1               | SMAC2                 | SIEU
  SMVAGA.M1 R10, AR8  | SMOV.M2 R12, R0       | SSHFLR 3, R14, R24
  SMVAGA.M1 R24, OR8  | SMOVI.M2 0, R20       | SSHFLR 2, R14, R25
  SMVAGA.M1 R25, OR9  | SADD.M2 R24, R25, R26 | SSHFLR 1, R14, R27
  SMVAGA.M1 R26, OR10 | SMVAGA.M2 R27, OR11   | SADD R24, R27, R28
  SMVAGA.M1 R28, OR12 |                       | SSHFLL 4, R26, R30  ; six rows in bytes

.region loop_six_rows
loop:
; SMAC1                  | SMAC2             | SLDST                 | SBR
                           SSUB.M2 6, R0, R0 | SSTW R20, *AR8
                                               SSTW R20, *+AR8[OR8]  | [R0] SBR loop
                                               SSTW R20, *+AR8[OR9]  | [!R0] SBR R63
                                               SSTW R20, *+AR8[OR10]
                                               SSTW R20, *+AR8[OR11]
  SADDA.M1 R30, AR8, AR8 |                   | SSTW R20, *+AR8[OR12]
  SNOP 2
.endregion
  SNOP 1
