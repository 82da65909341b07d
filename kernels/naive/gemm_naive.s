; SPDX-License-Identifier: Apache-2.0
; Y[rows][columns] += X[rows][depth] * W[depth][columns] in FP32, as a compiler that knows no vectors writes the three
; loops: one instruction a packet, each waits for what it needs, delay slots stay empty. The baseline of the ablation.
;
; In:   x  R10, w  R12, y  R14  in SM, 4-byte aligned      rows  R16, columns  R18, depth  R20, at least 1 each
;       x_pitch  R22, w_pitch  R24, y_pitch  R26  bytes from row to row
; Takes ((19 depth + 23) columns + 13) rows + 8 cycles: 19 a multiply-accumulate.
;
; Registers   R1 rows left, R2 columns left, R0 depth left; AR8 x, AR9 w, AR10 y; R30 w and R31 y of the column

.param x, R10, pointer sm
.param w, R12, pointer sm
.param y, R14, pointer sm
.param rows, R16, count
.param columns, R18, count
.param depth, R20, count
.param x_pitch, R22, count
.param w_pitch, R24, count
.param y_pitch, R26, count

; SMAC1                           | SIEU                | SLDST           | SBR
                                    SMOV R16, R1
row:
                                    SMOV R12, R30
                                    SMOV R14, R31
                                    SMOV R18, R2
column:
  SMVAGA.M1 R10, AR8
  SMVAGA.M1 R30, AR9
  SMVAGA.M1 R31, AR10
                                    SMOV R20, R0
  SNOP 1
                                                          SLDH *AR10, R42
  SNOP 6
.region multiply_accumulate
multiply_accumulate:
                                                          SLDH *AR8, R40                                  ;  0
                                                          SLDH *AR9, R41                                  ;  1
  SNOP 6
  SFMULAS32.M1 R40, R41, R42, R42                                                                         ;  8
                                    SADDA 4, AR8, AR8                                                     ;  9
                                    SADDA R24, AR9, AR9                                                   ; 10
  SSUB.M1 1, R0, R0                                                                                       ; 11
                                                                            [R0] SBR multiply_accumulate  ; 12
  SNOP 6
.endregion
                                                          SSTH R42, *AR10
                                    SADD 4, R30, R30
                                    SADD 4, R31, R31
  SSUB.M1 1, R2, R2
                                                                            [R2] SBR column
  SNOP 6
                                    SADD R22, R10, R10
                                    SADD R26, R14, R14
  SSUB.M1 1, R1, R1
                                                                            [R1] SBR row
  SNOP 6
                                                                            SBR R63
  SNOP 6
