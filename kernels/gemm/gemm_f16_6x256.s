; SPDX-License-Identifier: Apache-2.0
; Y1[6][256] (+)= X1[6][K] * W1[K][256], FP16, K a multiple of 4 and at least 8: the FP16 microkernel of paper III-B4.
;
; In:   x  R10  &X1[0][0] in SM, row-major, 8-byte aligned     x_pitch  R18  bytes from row to row, a multiple of 8
;       w  R12  &W1[0][0] in AM, row-major, 16-byte aligned    w_pitch  R20  bytes from row to row, a multiple of 16
;       y  R14  &Y1[0][0] in AM, row-major, 16-byte aligned    y_pitch  R22  bytes from row to row, a multiple of 16
;       k  R16  K
; Out:  Y1 in AM.
;       accumulate       Y1 = Y1 + X1 * W1       Y1 in FP16              8 K + 22 cycles: prologue 16, loop 32 (K/4 - 1), last 38
;       write_only       Y1 = X1 * W1            Y1 in FP16, not read    8 K + 22
;       accumulate_f32   Y1 = Y1 + (X1 * W1)     Y1 in FP32              8 K + 39: the last 55
;       write_only_f32   Y1 = (X1 * W1)          Y1 in FP32, not read    8 K + 39
; An FP32 row holds, for each group of 64 columns, 16 lanes of columns 4l, 4l+1 and then 16 lanes of columns 4l+2, 4l+3
; (1024 bytes): the order in which VFMULAHLS/HHS take them apart and VFSPHP16 puts them back. Nothing beyond X1, W1, Y1 is read.
;
; Maths: for each element one FP16 multiply-add per k (FP32 fma, then one rounding), k ascending, starting from Y1 or +0. The _f32
; entries start from +0, so that at most K products are summed in FP16, and then add the sum to Y1 in FP32: times 1.0, one rounding.
; X1 comes four k at a time: SLDW loads them, SVBCAST sends them to all lanes, VFEXTH16xx puts one of them into all four quarters.
;
; Registers   VR0-5    X1[0..5][k even]      R32-37  X1[0..5][4 k], also VR24-29    AR8     &X1[0][k]; OR8-12 rows 1-5, in 8 bytes
;             VR8-13   X1[0..5][k odd]       R0      quads of k left                AR0     &W1[k][0]; OR0 its pitch
;             VR16-19  W1[k even][0..3]      R1, R2  1 in accumulate_f32,           AR1     Y1 row to load
;             VR20-23  W1[k odd][0..3]               write_only_f32                 AR3     Y1 row to store; OR1 its pitch
;             VR40+4r+c  Y1[r][c]            R24-30  prologue only                  VR14, VR15   1.0 and 0, with FP32 sums only
; c = 0..3 counts groups of 64 columns. Kept: everything else.
;
; The comment behind each packet starts with its cycle.

.param x, R10, pointer sm
.param w, R12, pointer am
.param y, R14, pointer am
.param k, R16, count
.param x_pitch, R18, count
.param w_pitch, R20, count
.param y_pitch, R22, count
.scheduled_for VFMULAH16=6, VFMULAHLS=6, VFMULAHHS=6, SVBCAST=4, SLDW=7, VFEXTH16LL=1, VFEXTH16LH=1, VFEXTH16HL=1, VFEXTH16HH=1, VLDDW=9

; --- Prologue of Y1 = Y1 + X1 * W1. The X chain alone (move 2, SLDW 7, SVBCAST 4, VFEXTH16LL 1, two more rows) needs these 16 packets.
accumulate:
; SMAC1                  | SMAC2                 | SIEU               | SLDST                 | SBR      | VIEU                 | VLDST1                     | VLDST2
  SMVAGA.M1 R10, AR8     | SMVAGA.M2 R12, AR0    | SSHFLR 3, R18, R24                                                                                                                        ;  0  row offsets of X in 8 bytes, of Y and W in 16
  SMVAGA.M1 R24, OR8     | SMVAGA.M2 R14, AR1    | SSHFLR 2, R18, R25                                                                                                                        ;  1
  SMVAGA.M1 R25, OR9     | SADD.M2 R24, R25, R26 | SSHFLR 4, R22, R28 | SLDW *AR8, R32                                          | VLDDW *AR0, VR17:VR16      | VLDDW *+AR0[16], VR19:VR18    ;  2  X1[0..5][0..3]; W1[0][0..3]
  SMVAGA.M1 R26, OR10    | SMVAGA.M2 R28, OR1    | SSHFLR 1, R18, R27 | SLDW *+AR8[OR8], R33                                                                                                 ;  3
  SMVAGA.M1 R27, OR11    | SADD.M2 R24, R27, R29 | SSHFLR 4, R20, R30 | SLDW *+AR8[OR9], R34                                                                                                 ;  4
  SMVAGA.M1 R29, OR12    | SMVAGA.M2 R30, OR0    | SSHFLR 2, R16, R0  | SLDW *+AR8[OR10], R35                                   | VLDDW *+AR1[16], VR43:VR42 | VLDDW *AR1++[OR1], VR41:VR40  ;  5  X1[3][0..3]; Y1 row by row into the accumulators
  SADDA.M1 R20, AR0, AR0 | SMVAGA.M2 R14, AR3                         | SLDW *+AR8[OR11], R36                                   | VLDDW *+AR1[16], VR47:VR46 | VLDDW *AR1++[OR1], VR45:VR44  ;  6  AR0 = w + pitch: row 1
                           SMOVI.M2 0, R1                             | SLDW *+AR8[OR12], R37                                   | VLDDW *+AR1[16], VR51:VR50 | VLDDW *AR1++[OR1], VR49:VR48  ;  7
  SSUB.M1 1, R0, R0      | SMOVI.M2 0, R2                                                                                       | VLDDW *+AR1[16], VR55:VR54 | VLDDW *AR1++[OR1], VR53:VR52  ;  8  R0 = K/4 - 1
  SVBCAST.M1 R32, VR24                                                                        | SBR loop                        | VLDDW *+AR1[16], VR59:VR58 | VLDDW *AR1++[OR1], VR57:VR56  ;  9  six delay slots
  SVBCAST.M1 R33, VR25                                                                                                          | VLDDW *+AR1[16], VR63:VR62 | VLDDW *AR1++[OR1], VR61:VR60  ; 10
  SVBCAST.M1 R34, VR26                                                                                                                                                                       ; 11
  SVBCAST.M1 R35, VR27                                                                                                                                                                       ; 12
  SVBCAST.M1 R36, VR28                                                                                   | VFEXTH16LL VR24, VR0                                                              ; 13  X1[0..2][0] into all quarters
  SVBCAST.M1 R37, VR29                                                                                   | VFEXTH16LL VR25, VR1                                                              ; 14
                                                                                                           VFEXTH16LL VR26, VR2 | VLDDW *+AR0[16], VR23:VR22 | VLDDW *AR0++[OR0], VR21:VR20  ; 15  W1[1][0..3]

; --- Prologue of the others: as above, accumulators set to zero instead of loaded.
.macro from_zero add, widen
; SMAC1                  | SMAC2                 | SIEU               | SLDST                 | SBR      | VMAC1            | VMAC2            | VIEU                 | VLDST1                     | VLDST2
  SMVAGA.M1 R10, AR8     | SMVAGA.M2 R12, AR0    | SSHFLR 3, R18, R24                                                                                                                                                              ;  0  row offsets of X in 8 bytes, of Y and W in 16
  SMVAGA.M1 R24, OR8     | SMVAGA.M2 R14, AR1    | SSHFLR 2, R18, R25                                                                                                                                                              ;  1
  SMVAGA.M1 R25, OR9     | SADD.M2 R24, R25, R26 | SSHFLR 4, R22, R28 | SLDW *AR8, R32                                                                                | VLDDW *AR0, VR17:VR16      | VLDDW *+AR0[16], VR19:VR18    ;  2  X1[0..5][0..3]; W1[0][0..3]
  SMVAGA.M1 R26, OR10    | SMVAGA.M2 R28, OR1    | SSHFLR 1, R18, R27 | SLDW *+AR8[OR8], R33             | VMOVI.M1 0, VR40 | VMOVI.M2 0, VR41                                                                                     ;  3  Y1 = 0
  SMVAGA.M1 R27, OR11    | SADD.M2 R24, R27, R29 | SSHFLR 4, R20, R30 | SLDW *+AR8[OR9], R34             | VMOVI.M1 0, VR42 | VMOVI.M2 0, VR43                                                                                     ;  4
  SMVAGA.M1 R29, OR12    | SMVAGA.M2 R30, OR0    | SSHFLR 2, R16, R0  | SLDW *+AR8[OR10], R35            | VMOVI.M1 0, VR44 | VMOVI.M2 0, VR45                                                                                     ;  5
  SADDA.M1 R20, AR0, AR0 | SMVAGA.M2 R14, AR3                         | SLDW *+AR8[OR11], R36            | VMOVI.M1 0, VR46 | VMOVI.M2 0, VR47                                                                                     ;  6  AR0 = w + pitch: row 1
                           SMOVI.M2 \add, R1                          | SLDW *+AR8[OR12], R37            | VMOVI.M1 0, VR48 | VMOVI.M2 0, VR49                                                                                     ;  7
  SSUB.M1 1, R0, R0      | SMOVI.M2 \widen, R2                                                           | VMOVI.M1 0, VR50 | VMOVI.M2 0, VR51                                                                                     ;  8  R0 = K/4 - 1
  SVBCAST.M1 R32, VR24                                                                        | SBR loop | VMOVI.M1 0, VR52 | VMOVI.M2 0, VR53                                                                                     ;  9  six delay slots
  SVBCAST.M1 R33, VR25                                                                                   | VMOVI.M1 0, VR54 | VMOVI.M2 0, VR55                                                                                     ; 10
  SVBCAST.M1 R34, VR26                                                                                   | VMOVI.M1 0, VR56 | VMOVI.M2 0, VR57                                                                                     ; 11
  SVBCAST.M1 R35, VR27                                                                                   | VMOVI.M1 0, VR58 | VMOVI.M2 0, VR59                                                                                     ; 12
  SVBCAST.M1 R36, VR28                                                                                   | VMOVI.M1 0, VR60 | VMOVI.M2 0, VR61 | VFEXTH16LL VR24, VR0                                                              ; 13  X1[0..2][0] into all quarters
  SVBCAST.M1 R37, VR29                                                                                   | VMOVI.M1 0, VR62 | VMOVI.M2 0, VR63 | VFEXTH16LL VR25, VR1                                                              ; 14
                                                                                                                                                 VFEXTH16LL VR26, VR2 | VLDDW *+AR0[16], VR23:VR22 | VLDDW *AR0++[OR0], VR21:VR20  ; 15  W1[1][0..3]
.endm
accumulate_f32:
  from_zero 1, 0
write_only_f32:
  from_zero 0, 1
write_only:
  from_zero 0, 0

; --- Four k-steps in 32 cycles. VMAC 96 of 96.
.region loop_6x256
loop:
; SMAC1                | SMAC2                | SLDST                 | SBR           | VMAC1                               | VMAC2                               | VMAC3                               | VIEU                  | VLDST1                     | VLDST2
                                                                                        VFMULAH16.M1 VR0, VR16, VR40, VR40  | VFMULAH16.M2 VR1, VR16, VR44, VR44  | VFMULAH16.M3 VR2, VR16, VR48, VR48  | VFEXTH16LL VR27, VR3                                                               ;  0  rows 0-2, k = 0 | X1[3][0]
                                                                                        VFMULAH16.M1 VR0, VR17, VR41, VR41  | VFMULAH16.M2 VR1, VR17, VR45, VR45  | VFMULAH16.M3 VR2, VR17, VR49, VR49  | VFEXTH16LL VR28, VR4                                                               ;  1
                                                                                        VFMULAH16.M1 VR0, VR18, VR42, VR42  | VFMULAH16.M2 VR1, VR18, VR46, VR46  | VFMULAH16.M3 VR2, VR18, VR50, VR50  | VFEXTH16LL VR29, VR5                                                               ;  2
                                                                                        VFMULAH16.M1 VR0, VR19, VR43, VR43  | VFMULAH16.M2 VR1, VR19, VR47, VR47  | VFMULAH16.M3 VR2, VR19, VR51, VR51                                                                                       ;  3
                                                                                        VFMULAH16.M1 VR3, VR16, VR52, VR52  | VFMULAH16.M2 VR4, VR16, VR56, VR56  | VFMULAH16.M3 VR5, VR16, VR60, VR60                                                                                       ;  4  rows 3-5
                                                                                        VFMULAH16.M1 VR3, VR17, VR53, VR53  | VFMULAH16.M2 VR4, VR17, VR57, VR57  | VFMULAH16.M3 VR5, VR17, VR61, VR61  | VFEXTH16LH VR24, VR8                                                               ;  5  X1[0][1]
                                                                                        VFMULAH16.M1 VR3, VR18, VR54, VR54  | VFMULAH16.M2 VR4, VR18, VR58, VR58  | VFMULAH16.M3 VR5, VR18, VR62, VR62  | VFEXTH16LH VR25, VR9                                                               ;  6
                                                                                        VFMULAH16.M1 VR3, VR19, VR55, VR55  | VFMULAH16.M2 VR4, VR19, VR59, VR59  | VFMULAH16.M3 VR5, VR19, VR63, VR63  | VFEXTH16LH VR26, VR10 | VLDDW *+AR0[16], VR19:VR18 | VLDDW *AR0++[OR0], VR17:VR16  ;  7  W1[2]
                                                                                        VFMULAH16.M1 VR8, VR20, VR40, VR40  | VFMULAH16.M2 VR9, VR20, VR44, VR44  | VFMULAH16.M3 VR10, VR20, VR48, VR48 | VFEXTH16LH VR27, VR11                                                              ;  8  rows 0-2, k = 1 | X1[3][1]
                                                                                        VFMULAH16.M1 VR8, VR21, VR41, VR41  | VFMULAH16.M2 VR9, VR21, VR45, VR45  | VFMULAH16.M3 VR10, VR21, VR49, VR49 | VFEXTH16LH VR28, VR12                                                              ;  9
                                                                                        VFMULAH16.M1 VR8, VR22, VR42, VR42  | VFMULAH16.M2 VR9, VR22, VR46, VR46  | VFMULAH16.M3 VR10, VR22, VR50, VR50 | VFEXTH16LH VR29, VR13                                                              ; 10
                                                                                        VFMULAH16.M1 VR8, VR23, VR43, VR43  | VFMULAH16.M2 VR9, VR23, VR47, VR47  | VFMULAH16.M3 VR10, VR23, VR51, VR51                                                                                      ; 11
                                                                                        VFMULAH16.M1 VR11, VR20, VR52, VR52 | VFMULAH16.M2 VR12, VR20, VR56, VR56 | VFMULAH16.M3 VR13, VR20, VR60, VR60                                                                                      ; 12  rows 3-5
                                                                                        VFMULAH16.M1 VR11, VR21, VR53, VR53 | VFMULAH16.M2 VR12, VR21, VR57, VR57 | VFMULAH16.M3 VR13, VR21, VR61, VR61 | VFEXTH16HL VR24, VR0                                                               ; 13  X1[0][2]
                         SADDA.M2 8, AR8, AR8                                         | VFMULAH16.M1 VR11, VR22, VR54, VR54 | VFMULAH16.M2 VR12, VR22, VR58, VR58 | VFMULAH16.M3 VR13, VR22, VR62, VR62 | VFEXTH16HL VR25, VR1                                                               ; 14
                                                                                        VFMULAH16.M1 VR11, VR23, VR55, VR55 | VFMULAH16.M2 VR12, VR23, VR59, VR59 | VFMULAH16.M3 VR13, VR23, VR63, VR63 | VFEXTH16HL VR26, VR2  | VLDDW *+AR0[16], VR23:VR22 | VLDDW *AR0++[OR0], VR21:VR20  ; 15  W1[3]
                                                                                        VFMULAH16.M1 VR0, VR16, VR40, VR40  | VFMULAH16.M2 VR1, VR16, VR44, VR44  | VFMULAH16.M3 VR2, VR16, VR48, VR48  | VFEXTH16HL VR27, VR3                                                               ; 16  rows 0-2, k = 2 | X1[3][2]
                                                                                        VFMULAH16.M1 VR0, VR17, VR41, VR41  | VFMULAH16.M2 VR1, VR17, VR45, VR45  | VFMULAH16.M3 VR2, VR17, VR49, VR49  | VFEXTH16HL VR28, VR4                                                               ; 17
                                                SLDW *AR8, R32                        | VFMULAH16.M1 VR0, VR18, VR42, VR42  | VFMULAH16.M2 VR1, VR18, VR46, VR46  | VFMULAH16.M3 VR2, VR18, VR50, VR50  | VFEXTH16HL VR29, VR5                                                               ; 18  Xnext[0..5][0..3]
                                                SLDW *+AR8[OR8], R33                  | VFMULAH16.M1 VR0, VR19, VR43, VR43  | VFMULAH16.M2 VR1, VR19, VR47, VR47  | VFMULAH16.M3 VR2, VR19, VR51, VR51                                                                                       ; 19
                                                SLDW *+AR8[OR9], R34                  | VFMULAH16.M1 VR3, VR16, VR52, VR52  | VFMULAH16.M2 VR4, VR16, VR56, VR56  | VFMULAH16.M3 VR5, VR16, VR60, VR60                                                                                       ; 20  rows 3-5
                                                SLDW *+AR8[OR10], R35                 | VFMULAH16.M1 VR3, VR17, VR53, VR53  | VFMULAH16.M2 VR4, VR17, VR57, VR57  | VFMULAH16.M3 VR5, VR17, VR61, VR61  | VFEXTH16HH VR24, VR8                                                               ; 21  X1[0][3]
                         SSUB.M2 1, R0, R0    | SLDW *+AR8[OR11], R36                 | VFMULAH16.M1 VR3, VR18, VR54, VR54  | VFMULAH16.M2 VR4, VR18, VR58, VR58  | VFMULAH16.M3 VR5, VR18, VR62, VR62  | VFEXTH16HH VR25, VR9                                                               ; 22
                                                SLDW *+AR8[OR12], R37                 | VFMULAH16.M1 VR3, VR19, VR55, VR55  | VFMULAH16.M2 VR4, VR19, VR59, VR59  | VFMULAH16.M3 VR5, VR19, VR63, VR63  | VFEXTH16HH VR26, VR10 | VLDDW *+AR0[16], VR19:VR18 | VLDDW *AR0++[OR0], VR17:VR16  ; 23  Wnext[0]
                                                                                        VFMULAH16.M1 VR8, VR20, VR40, VR40  | VFMULAH16.M2 VR9, VR20, VR44, VR44  | VFMULAH16.M3 VR10, VR20, VR48, VR48 | VFEXTH16HH VR27, VR11                                                              ; 24  rows 0-2, k = 3 | X1[3][3]
  SVBCAST.M1 R32, VR24                                                | [R0] SBR loop | VFMULAH16.M1 VR8, VR21, VR41, VR41  | VFMULAH16.M2 VR9, VR21, VR45, VR45  | VFMULAH16.M3 VR10, VR21, VR49, VR49 | VFEXTH16HH VR28, VR12                                                              ; 25  taken while quads remain beside the last | X1[0][0] of the next quad
  SVBCAST.M1 R33, VR25                                                                | VFMULAH16.M1 VR8, VR22, VR42, VR42  | VFMULAH16.M2 VR9, VR22, VR46, VR46  | VFMULAH16.M3 VR10, VR22, VR50, VR50 | VFEXTH16HH VR29, VR13                                                              ; 26
  SVBCAST.M1 R34, VR26                                                                | VFMULAH16.M1 VR8, VR23, VR43, VR43  | VFMULAH16.M2 VR9, VR23, VR47, VR47  | VFMULAH16.M3 VR10, VR23, VR51, VR51                                                                                      ; 27
  SVBCAST.M1 R35, VR27                                                                | VFMULAH16.M1 VR11, VR20, VR52, VR52 | VFMULAH16.M2 VR12, VR20, VR56, VR56 | VFMULAH16.M3 VR13, VR20, VR60, VR60                                                                                      ; 28  rows 3-5
  SVBCAST.M1 R36, VR28                                                                | VFMULAH16.M1 VR11, VR21, VR53, VR53 | VFMULAH16.M2 VR12, VR21, VR57, VR57 | VFMULAH16.M3 VR13, VR21, VR61, VR61 | VFEXTH16LL VR24, VR0                                                               ; 29  X1[0][0] of the next quad
  SVBCAST.M1 R37, VR29                                                                | VFMULAH16.M1 VR11, VR22, VR54, VR54 | VFMULAH16.M2 VR12, VR22, VR58, VR58 | VFMULAH16.M3 VR13, VR22, VR62, VR62 | VFEXTH16LL VR25, VR1                                                               ; 30
                                                                                        VFMULAH16.M1 VR11, VR23, VR55, VR55 | VFMULAH16.M2 VR12, VR23, VR59, VR59 | VFMULAH16.M3 VR13, VR23, VR63, VR63 | VFEXTH16LL VR26, VR2  | VLDDW *+AR0[16], VR23:VR22 | VLDDW *AR0++[OR0], VR21:VR20  ; 31  Wnext[1]
.endregion

; --- The last four k-steps: nothing more to load; the fourth goes row by row so that stores follow at one row a cycle.
; SBR                | VMAC1                               | VMAC2                               | VMAC3                               | VIEU                  | VLDST1                     | VLDST2
                       VFMULAH16.M1 VR0, VR16, VR40, VR40  | VFMULAH16.M2 VR1, VR16, VR44, VR44  | VFMULAH16.M3 VR2, VR16, VR48, VR48  | VFEXTH16LL VR27, VR3                                                               ;  0  rows 0-2, k = 0
                       VFMULAH16.M1 VR0, VR17, VR41, VR41  | VFMULAH16.M2 VR1, VR17, VR45, VR45  | VFMULAH16.M3 VR2, VR17, VR49, VR49  | VFEXTH16LL VR28, VR4                                                               ;  1
                       VFMULAH16.M1 VR0, VR18, VR42, VR42  | VFMULAH16.M2 VR1, VR18, VR46, VR46  | VFMULAH16.M3 VR2, VR18, VR50, VR50  | VFEXTH16LL VR29, VR5                                                               ;  2
                       VFMULAH16.M1 VR0, VR19, VR43, VR43  | VFMULAH16.M2 VR1, VR19, VR47, VR47  | VFMULAH16.M3 VR2, VR19, VR51, VR51                                                                                       ;  3
                       VFMULAH16.M1 VR3, VR16, VR52, VR52  | VFMULAH16.M2 VR4, VR16, VR56, VR56  | VFMULAH16.M3 VR5, VR16, VR60, VR60                                                                                       ;  4  rows 3-5
                       VFMULAH16.M1 VR3, VR17, VR53, VR53  | VFMULAH16.M2 VR4, VR17, VR57, VR57  | VFMULAH16.M3 VR5, VR17, VR61, VR61  | VFEXTH16LH VR24, VR8                                                               ;  5
                       VFMULAH16.M1 VR3, VR18, VR54, VR54  | VFMULAH16.M2 VR4, VR18, VR58, VR58  | VFMULAH16.M3 VR5, VR18, VR62, VR62  | VFEXTH16LH VR25, VR9                                                               ;  6
                       VFMULAH16.M1 VR3, VR19, VR55, VR55  | VFMULAH16.M2 VR4, VR19, VR59, VR59  | VFMULAH16.M3 VR5, VR19, VR63, VR63  | VFEXTH16LH VR26, VR10 | VLDDW *+AR0[16], VR19:VR18 | VLDDW *AR0++[OR0], VR17:VR16  ;  7  W1[2]
                       VFMULAH16.M1 VR8, VR20, VR40, VR40  | VFMULAH16.M2 VR9, VR20, VR44, VR44  | VFMULAH16.M3 VR10, VR20, VR48, VR48 | VFEXTH16LH VR27, VR11                                                              ;  8  rows 0-2, k = 1
                       VFMULAH16.M1 VR8, VR21, VR41, VR41  | VFMULAH16.M2 VR9, VR21, VR45, VR45  | VFMULAH16.M3 VR10, VR21, VR49, VR49 | VFEXTH16LH VR28, VR12                                                              ;  9
                       VFMULAH16.M1 VR8, VR22, VR42, VR42  | VFMULAH16.M2 VR9, VR22, VR46, VR46  | VFMULAH16.M3 VR10, VR22, VR50, VR50 | VFEXTH16LH VR29, VR13                                                              ; 10
                       VFMULAH16.M1 VR8, VR23, VR43, VR43  | VFMULAH16.M2 VR9, VR23, VR47, VR47  | VFMULAH16.M3 VR10, VR23, VR51, VR51                                                                                      ; 11
                       VFMULAH16.M1 VR11, VR20, VR52, VR52 | VFMULAH16.M2 VR12, VR20, VR56, VR56 | VFMULAH16.M3 VR13, VR20, VR60, VR60                                                                                      ; 12  rows 3-5
                       VFMULAH16.M1 VR11, VR21, VR53, VR53 | VFMULAH16.M2 VR12, VR21, VR57, VR57 | VFMULAH16.M3 VR13, VR21, VR61, VR61 | VFEXTH16HL VR24, VR0                                                               ; 13
                       VFMULAH16.M1 VR11, VR22, VR54, VR54 | VFMULAH16.M2 VR12, VR22, VR58, VR58 | VFMULAH16.M3 VR13, VR22, VR62, VR62 | VFEXTH16HL VR25, VR1                                                               ; 14
                       VFMULAH16.M1 VR11, VR23, VR55, VR55 | VFMULAH16.M2 VR12, VR23, VR59, VR59 | VFMULAH16.M3 VR13, VR23, VR63, VR63 | VFEXTH16HL VR26, VR2  | VLDDW *+AR0[16], VR23:VR22 | VLDDW *AR0++[OR0], VR21:VR20  ; 15  W1[3]
                       VFMULAH16.M1 VR0, VR16, VR40, VR40  | VFMULAH16.M2 VR1, VR16, VR44, VR44  | VFMULAH16.M3 VR2, VR16, VR48, VR48  | VFEXTH16HL VR27, VR3                                                               ; 16  rows 0-2, k = 2
  [R1] SBR add_f32   | VFMULAH16.M1 VR0, VR17, VR41, VR41  | VFMULAH16.M2 VR1, VR17, VR45, VR45  | VFMULAH16.M3 VR2, VR17, VR49, VR49  | VFEXTH16HL VR28, VR4                                                               ; 17  to packet 24 of FP32 sums that are added
  [R2] SBR widen_f32 | VFMULAH16.M1 VR0, VR18, VR42, VR42  | VFMULAH16.M2 VR1, VR18, VR46, VR46  | VFMULAH16.M3 VR2, VR18, VR50, VR50  | VFEXTH16HL VR29, VR5                                                               ; 18  to packet 25 of FP32 sums that are written
                       VFMULAH16.M1 VR0, VR19, VR43, VR43  | VFMULAH16.M2 VR1, VR19, VR47, VR47  | VFMULAH16.M3 VR2, VR19, VR51, VR51                                                                                       ; 19
                       VFMULAH16.M1 VR3, VR16, VR52, VR52  | VFMULAH16.M2 VR4, VR16, VR56, VR56  | VFMULAH16.M3 VR5, VR16, VR60, VR60                                                                                       ; 20  rows 3-5
                       VFMULAH16.M1 VR3, VR17, VR53, VR53  | VFMULAH16.M2 VR4, VR17, VR57, VR57  | VFMULAH16.M3 VR5, VR17, VR61, VR61  | VFEXTH16HH VR24, VR8                                                               ; 21
                       VFMULAH16.M1 VR3, VR18, VR54, VR54  | VFMULAH16.M2 VR4, VR18, VR58, VR58  | VFMULAH16.M3 VR5, VR18, VR62, VR62  | VFEXTH16HH VR25, VR9                                                               ; 22
                       VFMULAH16.M1 VR3, VR19, VR55, VR55  | VFMULAH16.M2 VR4, VR19, VR59, VR59  | VFMULAH16.M3 VR5, VR19, VR63, VR63  | VFEXTH16HH VR26, VR10                                                              ; 23
                       VFMULAH16.M1 VR8, VR20, VR40, VR40  | VFMULAH16.M2 VR8, VR21, VR41, VR41  | VFMULAH16.M3 VR8, VR22, VR42, VR42  | VFEXTH16HH VR27, VR11                                                              ; 24  k = 3: rows 0, 1, ... in turn
                       VFMULAH16.M1 VR8, VR23, VR43, VR43  | VFMULAH16.M2 VR9, VR20, VR44, VR44  | VFMULAH16.M3 VR9, VR21, VR45, VR45  | VFEXTH16HH VR28, VR12                                                              ; 25
                       VFMULAH16.M1 VR9, VR22, VR46, VR46  | VFMULAH16.M2 VR9, VR23, VR47, VR47  | VFMULAH16.M3 VR10, VR20, VR48, VR48 | VFEXTH16HH VR29, VR13                                                              ; 26
                       VFMULAH16.M1 VR10, VR21, VR49, VR49 | VFMULAH16.M2 VR10, VR22, VR50, VR50 | VFMULAH16.M3 VR10, VR23, VR51, VR51                                                                                      ; 27
                       VFMULAH16.M1 VR11, VR20, VR52, VR52 | VFMULAH16.M2 VR11, VR21, VR53, VR53 | VFMULAH16.M3 VR11, VR22, VR54, VR54                                                                                      ; 28
                       VFMULAH16.M1 VR11, VR23, VR55, VR55 | VFMULAH16.M2 VR12, VR20, VR56, VR56 | VFMULAH16.M3 VR12, VR21, VR57, VR57                                                                                      ; 29
                       VFMULAH16.M1 VR12, VR22, VR58, VR58 | VFMULAH16.M2 VR12, VR23, VR59, VR59 | VFMULAH16.M3 VR13, VR20, VR60, VR60                                                                                      ; 30
  SBR R63            | VFMULAH16.M1 VR13, VR21, VR61, VR61 | VFMULAH16.M2 VR13, VR22, VR62, VR62 | VFMULAH16.M3 VR13, VR23, VR63, VR63                                                                                      ; 31  return; six delay slots
                                                                                                                                                                 VSTDW VR43:VR42, *+AR3[16] | VSTDW VR41:VR40, *AR3++[OR1]  ; 32  row 0 is done since cycle 31
                                                                                                                                                                 VSTDW VR47:VR46, *+AR3[16] | VSTDW VR45:VR44, *AR3++[OR1]  ; 33
                                                                                                                                                                 VSTDW VR51:VR50, *+AR3[16] | VSTDW VR49:VR48, *AR3++[OR1]  ; 34
                                                                                                                                                                 VSTDW VR55:VR54, *+AR3[16] | VSTDW VR53:VR52, *AR3++[OR1]  ; 35
                                                                                                                                                                 VSTDW VR59:VR58, *+AR3[16] | VSTDW VR57:VR56, *AR3++[OR1]  ; 36
                                                                                                                                                                 VSTDW VR63:VR62, *+AR3[16] | VSTDW VR61:VR60, *AR3++[OR1]  ; 37  row 5: its last multiply-add issued 6 cycles ago

; --- From packet 24 on, the FP16 sums added to FP32 rows of Y1. VMAC is full until the last sum.
add_f32:
; SBR     | VMAC1                               | VMAC2                               | VMAC3                               | VIEU                           | VLDST1                     | VLDST2
            VFMULAH16.M1 VR8, VR20, VR40, VR40  | VFMULAH16.M2 VR8, VR21, VR41, VR41  | VFMULAH16.M3 VR8, VR22, VR42, VR42  | VFEXTH16HH VR27, VR11          | VLDDW *+AR1[48], VR3:VR2   | VLDDW *+AR1[32], VR1:VR0      ; 24  Y1[0]
            VFMULAH16.M1 VR8, VR23, VR43, VR43  | VFMULAH16.M2 VR9, VR20, VR44, VR44  | VFMULAH16.M3 VR9, VR21, VR45, VR45  | VFEXTH16HH VR28, VR12          | VLDDW *+AR1[16], VR7:VR6   | VLDDW *AR1++[OR1], VR5:VR4    ; 25
            VFMULAH16.M1 VR9, VR22, VR46, VR46  | VFMULAH16.M2 VR9, VR23, VR47, VR47  | VFMULAH16.M3 VR10, VR20, VR48, VR48 | VFEXTH16HH VR29, VR13          | VLDDW *+AR1[48], VR19:VR18 | VLDDW *+AR1[32], VR17:VR16    ; 26  Y1[1]
            VFMULAH16.M1 VR10, VR21, VR49, VR49 | VFMULAH16.M2 VR10, VR22, VR50, VR50 | VFMULAH16.M3 VR10, VR23, VR51, VR51 | VMOVI 0x3C003C003C003C00, VR14 | VLDDW *+AR1[16], VR27:VR26 | VLDDW *AR1++[OR1], VR25:VR24  ; 27
            VFMULAH16.M1 VR11, VR20, VR52, VR52 | VFMULAH16.M2 VR11, VR21, VR53, VR53 | VFMULAH16.M3 VR11, VR22, VR54, VR54                                  | VLDDW *+AR1[48], VR33:VR32 | VLDDW *+AR1[32], VR31:VR30    ; 28  Y1[2]
            VFMULAH16.M1 VR11, VR23, VR55, VR55 | VFMULAH16.M2 VR12, VR20, VR56, VR56 | VFMULAH16.M3 VR12, VR21, VR57, VR57                                  | VLDDW *+AR1[16], VR37:VR36 | VLDDW *AR1++[OR1], VR35:VR34  ; 29
            VFMULAH16.M1 VR12, VR22, VR58, VR58 | VFMULAH16.M2 VR12, VR23, VR59, VR59 | VFMULAH16.M3 VR13, VR20, VR60, VR60                                  | VLDDW *+AR1[48], VR9:VR8   | VLDDW *+AR1[32], VR39:VR38    ; 30  Y1[3]
            VFMULAH16.M1 VR13, VR21, VR61, VR61 | VFMULAH16.M2 VR13, VR22, VR62, VR62 | VFMULAH16.M3 VR13, VR23, VR63, VR63                                  | VLDDW *+AR1[16], VR11:VR10 | VLDDW *AR1++[OR1], VR29:VR28  ; 31
                                                                                                                                                               VLDDW *+AR1[48], VR21:VR20 | VLDDW *+AR1[32], VR13:VR12    ; 32  Y1[4]
            VFMULAHLS.M1 VR42, VR14, VR0, VR0   | VFMULAHHS.M2 VR42, VR14, VR1, VR1   | VFMULAHLS.M3 VR43, VR14, VR2, VR2                                                                                                 ; 33  Y1[0] += sums
            VFMULAHHS.M1 VR43, VR14, VR3, VR3   | VFMULAHLS.M2 VR40, VR14, VR4, VR4   | VFMULAHHS.M3 VR40, VR14, VR5, VR5                                    | VLDDW *+AR1[16], VR43:VR42 | VLDDW *AR1++[OR1], VR23:VR22  ; 34
            VFMULAHLS.M1 VR41, VR14, VR6, VR6   | VFMULAHHS.M2 VR41, VR14, VR7, VR7   | VFMULAHLS.M3 VR46, VR14, VR16, VR16                                                                                               ; 35  Y1[1] += sums
            VFMULAHHS.M1 VR46, VR14, VR17, VR17 | VFMULAHLS.M2 VR47, VR14, VR18, VR18 | VFMULAHHS.M3 VR47, VR14, VR19, VR19                                  | VLDDW *+AR1[48], VR47:VR46 | VLDDW *+AR1[32], VR41:VR40    ; 36  Y1[5]
            VFMULAHLS.M1 VR44, VR14, VR24, VR24 | VFMULAHHS.M2 VR44, VR14, VR25, VR25 | VFMULAHLS.M3 VR45, VR14, VR26, VR26                                                                                               ; 37
            VFMULAHHS.M1 VR45, VR14, VR27, VR27 | VFMULAHLS.M2 VR50, VR14, VR30, VR30 | VFMULAHHS.M3 VR50, VR14, VR31, VR31                                  | VLDDW *AR1, VR45:VR44                                      ; 38  Y1[2] += sums
            VFMULAHLS.M1 VR51, VR14, VR32, VR32 | VFMULAHHS.M2 VR51, VR14, VR33, VR33 | VFMULAHLS.M3 VR48, VR14, VR34, VR34                                  | VLDDW *+AR1[16], VR51:VR50                                 ; 39
            VFMULAHHS.M1 VR48, VR14, VR35, VR35 | VFMULAHLS.M2 VR49, VR14, VR36, VR36 | VFMULAHHS.M3 VR49, VR14, VR37, VR37                                  | VSTDW VR3:VR2, *+AR3[48]   | VSTDW VR1:VR0, *+AR3[32]      ; 40
            VFMULAHLS.M1 VR54, VR14, VR38, VR38 | VFMULAHHS.M2 VR54, VR14, VR39, VR39 | VFMULAHLS.M3 VR55, VR14, VR8, VR8                                    | VSTDW VR7:VR6, *+AR3[16]   | VSTDW VR5:VR4, *AR3++[OR1]    ; 41  Y1[3] += sums
            VFMULAHHS.M1 VR55, VR14, VR9, VR9   | VFMULAHLS.M2 VR52, VR14, VR28, VR28 | VFMULAHHS.M3 VR52, VR14, VR29, VR29                                  | VSTDW VR19:VR18, *+AR3[48] | VSTDW VR17:VR16, *+AR3[32]    ; 42
            VFMULAHLS.M1 VR53, VR14, VR10, VR10 | VFMULAHHS.M2 VR53, VR14, VR11, VR11 | VFMULAHLS.M3 VR58, VR14, VR12, VR12                                                                                               ; 43  Y1[4] += sums
            VFMULAHHS.M1 VR58, VR14, VR13, VR13 | VFMULAHLS.M2 VR59, VR14, VR20, VR20 | VFMULAHHS.M3 VR59, VR14, VR21, VR21                                  | VSTDW VR27:VR26, *+AR3[16] | VSTDW VR25:VR24, *AR3++[OR1]  ; 44
            VFMULAHLS.M1 VR56, VR14, VR22, VR22 | VFMULAHHS.M2 VR56, VR14, VR23, VR23 | VFMULAHLS.M3 VR57, VR14, VR42, VR42                                  | VSTDW VR33:VR32, *+AR3[48] | VSTDW VR31:VR30, *+AR3[32]    ; 45
            VFMULAHHS.M1 VR57, VR14, VR43, VR43 | VFMULAHLS.M2 VR62, VR14, VR40, VR40 | VFMULAHHS.M3 VR62, VR14, VR41, VR41                                  | VSTDW VR37:VR36, *+AR3[16] | VSTDW VR35:VR34, *AR3++[OR1]  ; 46  Y1[5] += sums
            VFMULAHLS.M1 VR63, VR14, VR46, VR46 | VFMULAHHS.M2 VR63, VR14, VR47, VR47 | VFMULAHLS.M3 VR60, VR14, VR44, VR44                                                                                               ; 47
  SBR R63 | VFMULAHHS.M1 VR60, VR14, VR45, VR45 | VFMULAHLS.M2 VR61, VR14, VR50, VR50 | VFMULAHHS.M3 VR61, VR14, VR51, VR51                                  | VSTDW VR9:VR8, *+AR3[48]   | VSTDW VR39:VR38, *+AR3[32]    ; 48  return
                                                                                                                                                               VSTDW VR11:VR10, *+AR3[16] | VSTDW VR29:VR28, *AR3++[OR1]  ; 49
                                                                                                                                                               VSTDW VR21:VR20, *+AR3[48] | VSTDW VR13:VR12, *+AR3[32]    ; 50
  SNOP 1                                                                                                                                                                                                                  ; 51
                                                                                                                                                               VSTDW VR43:VR42, *+AR3[16] | VSTDW VR23:VR22, *AR3++[OR1]  ; 52
                                                                                                                                                               VSTDW VR47:VR46, *+AR3[48] | VSTDW VR41:VR40, *+AR3[32]    ; 53
                                                                                                                                                               VSTDW VR51:VR50, *+AR3[16] | VSTDW VR45:VR44, *AR3++[OR1]  ; 54

; --- From packet 25 on, the FP16 sums written as FP32 rows of Y1.
widen_f32:
; SBR     | VMAC1                               | VMAC2                               | VMAC3                               | VIEU                           | VLDST1                     | VLDST2
            VFMULAH16.M1 VR8, VR23, VR43, VR43  | VFMULAH16.M2 VR9, VR20, VR44, VR44  | VFMULAH16.M3 VR9, VR21, VR45, VR45  | VFEXTH16HH VR28, VR12                                                                       ; 25
            VFMULAH16.M1 VR9, VR22, VR46, VR46  | VFMULAH16.M2 VR9, VR23, VR47, VR47  | VFMULAH16.M3 VR10, VR20, VR48, VR48 | VFEXTH16HH VR29, VR13                                                                       ; 26
            VFMULAH16.M1 VR10, VR21, VR49, VR49 | VFMULAH16.M2 VR10, VR22, VR50, VR50 | VFMULAH16.M3 VR10, VR23, VR51, VR51 | VMOVI 0x3C003C003C003C00, VR14                                                              ; 27
            VFMULAH16.M1 VR11, VR20, VR52, VR52 | VFMULAH16.M2 VR11, VR21, VR53, VR53 | VFMULAH16.M3 VR11, VR22, VR54, VR54 | VMOVI 0, VR15                                                                               ; 28
            VFMULAH16.M1 VR11, VR23, VR55, VR55 | VFMULAH16.M2 VR12, VR20, VR56, VR56 | VFMULAH16.M3 VR12, VR21, VR57, VR57                                                                                               ; 29
            VFMULAH16.M1 VR12, VR22, VR58, VR58 | VFMULAH16.M2 VR12, VR23, VR59, VR59 | VFMULAH16.M3 VR13, VR20, VR60, VR60                                                                                               ; 30
            VFMULAH16.M1 VR13, VR21, VR61, VR61 | VFMULAH16.M2 VR13, VR22, VR62, VR62 | VFMULAH16.M3 VR13, VR23, VR63, VR63                                                                                               ; 31
  SNOP 1                                                                                                                                                                                                                  ; 32
            VFMULAHLS.M1 VR42, VR14, VR15, VR0  | VFMULAHHS.M2 VR42, VR14, VR15, VR1  | VFMULAHLS.M3 VR43, VR14, VR15, VR2                                                                                                ; 33  Y1[0] = sums
            VFMULAHHS.M1 VR43, VR14, VR15, VR3  | VFMULAHLS.M2 VR40, VR14, VR15, VR4  | VFMULAHHS.M3 VR40, VR14, VR15, VR5                                                                                                ; 34
            VFMULAHLS.M1 VR41, VR14, VR15, VR6  | VFMULAHHS.M2 VR41, VR14, VR15, VR7  | VFMULAHLS.M3 VR46, VR14, VR15, VR16                                                                                               ; 35  Y1[1] = sums
            VFMULAHHS.M1 VR46, VR14, VR15, VR17 | VFMULAHLS.M2 VR47, VR14, VR15, VR18 | VFMULAHHS.M3 VR47, VR14, VR15, VR19                                                                                               ; 36
            VFMULAHLS.M1 VR44, VR14, VR15, VR24 | VFMULAHHS.M2 VR44, VR14, VR15, VR25 | VFMULAHLS.M3 VR45, VR14, VR15, VR26                                                                                               ; 37
            VFMULAHHS.M1 VR45, VR14, VR15, VR27 | VFMULAHLS.M2 VR50, VR14, VR15, VR30 | VFMULAHHS.M3 VR50, VR14, VR15, VR31                                                                                               ; 38  Y1[2] = sums
            VFMULAHLS.M1 VR51, VR14, VR15, VR32 | VFMULAHHS.M2 VR51, VR14, VR15, VR33 | VFMULAHLS.M3 VR48, VR14, VR15, VR34                                                                                               ; 39
            VFMULAHHS.M1 VR48, VR14, VR15, VR35 | VFMULAHLS.M2 VR49, VR14, VR15, VR36 | VFMULAHHS.M3 VR49, VR14, VR15, VR37                                  | VSTDW VR3:VR2, *+AR3[48]   | VSTDW VR1:VR0, *+AR3[32]      ; 40
            VFMULAHLS.M1 VR54, VR14, VR15, VR38 | VFMULAHHS.M2 VR54, VR14, VR15, VR39 | VFMULAHLS.M3 VR55, VR14, VR15, VR8                                   | VSTDW VR7:VR6, *+AR3[16]   | VSTDW VR5:VR4, *AR3++[OR1]    ; 41  Y1[3] = sums
            VFMULAHHS.M1 VR55, VR14, VR15, VR9  | VFMULAHLS.M2 VR52, VR14, VR15, VR28 | VFMULAHHS.M3 VR52, VR14, VR15, VR29                                  | VSTDW VR19:VR18, *+AR3[48] | VSTDW VR17:VR16, *+AR3[32]    ; 42
            VFMULAHLS.M1 VR53, VR14, VR15, VR10 | VFMULAHHS.M2 VR53, VR14, VR15, VR11 | VFMULAHLS.M3 VR58, VR14, VR15, VR12                                                                                               ; 43  Y1[4] = sums
            VFMULAHHS.M1 VR58, VR14, VR15, VR13 | VFMULAHLS.M2 VR59, VR14, VR15, VR20 | VFMULAHHS.M3 VR59, VR14, VR15, VR21                                  | VSTDW VR27:VR26, *+AR3[16] | VSTDW VR25:VR24, *AR3++[OR1]  ; 44
            VFMULAHLS.M1 VR56, VR14, VR15, VR22 | VFMULAHHS.M2 VR56, VR14, VR15, VR23 | VFMULAHLS.M3 VR57, VR14, VR15, VR42                                  | VSTDW VR33:VR32, *+AR3[48] | VSTDW VR31:VR30, *+AR3[32]    ; 45
            VFMULAHHS.M1 VR57, VR14, VR15, VR43 | VFMULAHLS.M2 VR62, VR14, VR15, VR40 | VFMULAHHS.M3 VR62, VR14, VR15, VR41                                  | VSTDW VR37:VR36, *+AR3[16] | VSTDW VR35:VR34, *AR3++[OR1]  ; 46  Y1[5] = sums
            VFMULAHLS.M1 VR63, VR14, VR15, VR46 | VFMULAHHS.M2 VR63, VR14, VR15, VR47 | VFMULAHLS.M3 VR60, VR14, VR15, VR44                                                                                               ; 47
  SBR R63 | VFMULAHHS.M1 VR60, VR14, VR15, VR45 | VFMULAHLS.M2 VR61, VR14, VR15, VR50 | VFMULAHHS.M3 VR61, VR14, VR15, VR51                                  | VSTDW VR9:VR8, *+AR3[48]   | VSTDW VR39:VR38, *+AR3[32]    ; 48  return
                                                                                                                                                               VSTDW VR11:VR10, *+AR3[16] | VSTDW VR29:VR28, *AR3++[OR1]  ; 49
                                                                                                                                                               VSTDW VR21:VR20, *+AR3[48] | VSTDW VR13:VR12, *+AR3[32]    ; 50
  SNOP 1                                                                                                                                                                                                                  ; 51
                                                                                                                                                               VSTDW VR43:VR42, *+AR3[16] | VSTDW VR23:VR22, *AR3++[OR1]  ; 52
                                                                                                                                                               VSTDW VR47:VR46, *+AR3[48] | VSTDW VR41:VR40, *+AR3[32]    ; 53
                                                                                                                                                               VSTDW VR51:VR50, *+AR3[16] | VSTDW VR45:VR44, *AR3++[OR1]  ; 54
