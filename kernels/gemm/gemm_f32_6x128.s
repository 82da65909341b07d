; SPDX-License-Identifier: Apache-2.0
; Y1[6][128] (+)= X1[6][K] * W1[K][128], FP32, K even and at least 4: the microkernel of paper III-B3 and Table I.
;
; In:   x  R10  &X1[0][0] in SM, row-major, 4-byte aligned     x_pitch  R18  bytes from row to row, a multiple of 4
;       w  R12  &W1[0][0] in AM, row-major, 16-byte aligned    w_pitch  R20  bytes from row to row, a multiple of 16
;       y  R14  &Y1[0][0] in AM, row-major, 16-byte aligned    y_pitch  R22  bytes from row to row, a multiple of 16
;       k  R16  K
; Out:  Y1 in AM. Entry accumulate: Y1 = Y1 + X1 * W1. Entry write_only: Y1 = X1 * W1, Y1 is not read.
; Takes 8 K + 22 cycles: prologue 16, loop 16 (K/2 - 1), last 22. Nothing beyond X1 and W1 is read.
;
; Maths: for each element one fused multiply-add per k, k ascending, starting from Y1 (or from +0). A 64-bit lane holds two
; neighbouring columns; SBALE2 doubles the FP32 of X1 into both halves and SVBCAST sends it to all 16 lanes.
;
; Registers   VR0-5    X1[0..5][k even]      R32-37  the same as scalars     AR8, AR9   X1[0][k even], X1[0][k odd]
;             VR8-13   X1[0..5][k odd]       R40-45  the same as scalars     OR8-12     rows 1-5 of X1, in words
;             VR16-19  W1[k even][0..3]      R0      k pairs left            AR0, AR2   W1[k][0,1], W1[k][2,3]; OR0 its pitch
;             VR20-23  W1[k odd][0..3]       R24-29  prologue only           AR1, AR3   Y1 row to load, to store; OR1 its pitch
;             VR32+4r+c  Y1[r][c]            c = 0..3 counts groups of 32 columns
; Kept: everything else.
;
; The comment behind each packet starts with its cycle.

.param x, R10, pointer sm
.param w, R12, pointer am
.param y, R14, pointer am
.param k, R16, count
.param x_pitch, R18, count
.param w_pitch, R20, count
.param y_pitch, R22, count
.scheduled_for VFMULAS32=6, SVBCAST=4, SLDH=7, SBALE2=1, VLDDW=9

; --- Prologue of Y1 = Y1 + X1 * W1. The X chain alone (move 2, SLDH 7, SBALE2 1, SVBCAST 4, two more rows) needs these 16 packets.
accumulate:
; SMAC1                  | SMAC2                 | SIEU                 | SLDST                 | VLDST1                       | VLDST2
  SMVAGA.M1 R10, AR8     | SMVAGA.M2 R12, AR0    | SSHFLR 2, R18, R24                                                                                          ;  0  AR8 = x, AR0 = w; row offsets of X in words, of Y and W in 16 B
  SMVAGA.M1 R24, OR8     | SMVAGA.M2 R14, AR1    | SSHFLR 1, R18, R25                                                                                          ;  1
  SMVAGA.M1 R25, OR9     | SADD.M2 R24, R25, R26 | SSHFLR 4, R22, R28   | SLDH *AR8, R32        | VLDDW *AR0, VR17:VR16        | VLDDW *+AR0[16], VR19:VR18    ;  2  X1[0..5][0]; W1[0][0..3]
  SMVAGA.M1 R26, OR10    | SMVAGA.M2 R28, OR1    | SSHFLR 4, R20, R29   | SLDH *+AR8[OR8], R33                                                                 ;  3
  SMVAGA.M1 R18, OR11    | SADD.M2 R24, R18, R27 | SSHFLR 1, R16, R0    | SLDH *+AR8[OR9], R34                                                                 ;  4
  SMVAGA.M1 R27, OR12    | SMVAGA.M2 R29, OR0    |                      | SLDH *+AR8[OR10], R35 | VLDDW *+AR1[16], VR35:VR34   | VLDDW *AR1++[OR1], VR33:VR32  ;  5  Y1 row by row into the accumulators
  SADDA.M1 R20, AR0, AR0 | SMVAGA.M2 R14, AR3    |                      | SLDH *+AR8[OR11], R36 | VLDDW *+AR1[16], VR39:VR38   | VLDDW *AR1++[OR1], VR37:VR36  ;  6  AR0 = w + pitch: row 1
                           SADDA.M2 4, AR8, AR9  |                      | SLDH *+AR8[OR12], R37 | VLDDW *+AR1[16], VR43:VR42   | VLDDW *AR1++[OR1], VR41:VR40  ;  7
  SSUB.M1 1, R0, R0      |                       |                      |                       | VLDDW *+AR1[16], VR47:VR46   | VLDDW *AR1++[OR1], VR45:VR44  ;  8  R0 = K/2 - 1
  SADDA.M1 256, AR0, AR2 | SADDA.M2 8, AR8, AR8  | SBALE2 R32, R32, R32 |                       | VLDDW *+AR1[16], VR51:VR50   | VLDDW *AR1++[OR1], VR49:VR48  ;  9  AR2 = AR0 + 256: columns 64..127 of W
  SVBCAST.M1 R32, VR0    |                       | SBALE2 R33, R33, R33 | SLDH *AR9, R40        | VLDDW *+AR1[16], VR55:VR54   | VLDDW *AR1++[OR1], VR53:VR52  ; 10  X1[0..5][1]
  SVBCAST.M1 R33, VR1    |                       | SBALE2 R34, R34, R34 | SLDH *+AR9[OR8], R41                                                                 ; 11
  SVBCAST.M1 R34, VR2    |                       | SBALE2 R35, R35, R35 | SLDH *+AR9[OR9], R42                                                                 ; 12
  SVBCAST.M1 R35, VR3    |                       | SBALE2 R36, R36, R36 | SLDH *+AR9[OR10], R43                                                                ; 13
  SVBCAST.M1 R36, VR4    |                       | SBALE2 R37, R37, R37 | SLDH *+AR9[OR11], R44                                                                ; 14
  SVBCAST.M1 R37, VR5    |                       |                      | SLDH *+AR9[OR12], R45 | VLDDW *AR0++[OR0], VR21:VR20                                 ; 15  W1[1][0,1]

; --- Two k-steps in 16 cycles: Table I. VMAC 48 of 48.
.region loop_6x128
loop:
; SMAC1                | SMAC2                | SIEU                 | SLDST                 | SBR           | VMAC1                               | VMAC2                               | VMAC3                               | VLDST1
                         SADDA.M2 8, AR9, AR9 |                      |                       |               | VFMULAS32.M1 VR0, VR16, VR32, VR32  | VFMULAS32.M2 VR1, VR16, VR36, VR36  | VFMULAS32.M3 VR2, VR16, VR40, VR40  | VLDDW *AR2++[OR0], VR23:VR22  ;  0  rows 0-2, k even | W1[1][2,3]
                                                SBALE2 R40, R40, R40 |                       |               | VFMULAS32.M1 VR0, VR17, VR33, VR33  | VFMULAS32.M2 VR1, VR17, VR37, VR37  | VFMULAS32.M3 VR2, VR17, VR41, VR41                                  ;  1
  SVBCAST.M1 R40, VR8  |                      | SBALE2 R41, R41, R41 | SLDH *AR8, R32        |               | VFMULAS32.M1 VR0, VR18, VR34, VR34  | VFMULAS32.M2 VR1, VR18, VR38, VR38  | VFMULAS32.M3 VR2, VR18, VR42, VR42                                  ;  2
  SVBCAST.M1 R41, VR9  |                      | SBALE2 R42, R42, R42 | SLDH *+AR8[OR8], R33  |               | VFMULAS32.M1 VR0, VR19, VR35, VR35  | VFMULAS32.M2 VR1, VR19, VR39, VR39  | VFMULAS32.M3 VR2, VR19, VR43, VR43                                  ;  3
  SVBCAST.M1 R42, VR10 |                      | SBALE2 R43, R43, R43 | SLDH *+AR8[OR9], R34  |               | VFMULAS32.M1 VR3, VR16, VR44, VR44  | VFMULAS32.M2 VR4, VR16, VR48, VR48  | VFMULAS32.M3 VR5, VR16, VR52, VR52                                  ;  4  rows 3-5, k even
  SVBCAST.M1 R43, VR11 |                      | SBALE2 R44, R44, R44 | SLDH *+AR8[OR10], R35 |               | VFMULAS32.M1 VR3, VR17, VR45, VR45  | VFMULAS32.M2 VR4, VR17, VR49, VR49  | VFMULAS32.M3 VR5, VR17, VR53, VR53                                  ;  5
  SVBCAST.M1 R44, VR12 |                      | SBALE2 R45, R45, R45 | SLDH *+AR8[OR11], R36 |               | VFMULAS32.M1 VR3, VR18, VR46, VR46  | VFMULAS32.M2 VR4, VR18, VR50, VR50  | VFMULAS32.M3 VR5, VR18, VR54, VR54                                  ;  6
  SVBCAST.M1 R45, VR13 |                      |                      | SLDH *+AR8[OR12], R37 |               | VFMULAS32.M1 VR3, VR19, VR47, VR47  | VFMULAS32.M2 VR4, VR19, VR51, VR51  | VFMULAS32.M3 VR5, VR19, VR55, VR55  | VLDDW *AR0++[OR0], VR17:VR16  ;  7  Wnext[0][0,1]
                         SSUB.M2 1, R0, R0    |                      |                       |               | VFMULAS32.M1 VR8, VR20, VR32, VR32  | VFMULAS32.M2 VR9, VR20, VR36, VR36  | VFMULAS32.M3 VR10, VR20, VR40, VR40 | VLDDW *AR2++[OR0], VR19:VR18  ;  8  rows 0-2, k odd | Wnext[0][2,3]
                         SADDA.M2 8, AR8, AR8 | SBALE2 R32, R32, R32 |                       | [R0] SBR loop | VFMULAS32.M1 VR8, VR21, VR33, VR33  | VFMULAS32.M2 VR9, VR21, VR37, VR37  | VFMULAS32.M3 VR10, VR21, VR41, VR41                                 ;  9  taken while pairs remain beside the last
  SVBCAST.M1 R32, VR0  |                      | SBALE2 R33, R33, R33 | SLDH *AR9, R40        |               | VFMULAS32.M1 VR8, VR22, VR34, VR34  | VFMULAS32.M2 VR9, VR22, VR38, VR38  | VFMULAS32.M3 VR10, VR22, VR42, VR42                                 ; 10
  SVBCAST.M1 R33, VR1  |                      | SBALE2 R34, R34, R34 | SLDH *+AR9[OR8], R41  |               | VFMULAS32.M1 VR8, VR23, VR35, VR35  | VFMULAS32.M2 VR9, VR23, VR39, VR39  | VFMULAS32.M3 VR10, VR23, VR43, VR43                                 ; 11
  SVBCAST.M1 R34, VR2  |                      | SBALE2 R35, R35, R35 | SLDH *+AR9[OR9], R42  |               | VFMULAS32.M1 VR11, VR20, VR44, VR44 | VFMULAS32.M2 VR12, VR20, VR48, VR48 | VFMULAS32.M3 VR13, VR20, VR52, VR52                                 ; 12  rows 3-5, k odd
  SVBCAST.M1 R35, VR3  |                      | SBALE2 R36, R36, R36 | SLDH *+AR9[OR10], R43 |               | VFMULAS32.M1 VR11, VR21, VR45, VR45 | VFMULAS32.M2 VR12, VR21, VR49, VR49 | VFMULAS32.M3 VR13, VR21, VR53, VR53                                 ; 13
  SVBCAST.M1 R36, VR4  |                      | SBALE2 R37, R37, R37 | SLDH *+AR9[OR11], R44 |               | VFMULAS32.M1 VR11, VR22, VR46, VR46 | VFMULAS32.M2 VR12, VR22, VR50, VR50 | VFMULAS32.M3 VR13, VR22, VR54, VR54                                 ; 14
  SVBCAST.M1 R37, VR5  |                      |                      | SLDH *+AR9[OR12], R45 |               | VFMULAS32.M1 VR11, VR23, VR47, VR47 | VFMULAS32.M2 VR12, VR23, VR51, VR51 | VFMULAS32.M3 VR13, VR23, VR55, VR55 | VLDDW *AR0++[OR0], VR21:VR20  ; 15  Wnext[1][0,1]
.endregion

; --- The last two k-steps: nothing more to load; the odd one goes row by row so that stores follow at one row a cycle.
; SMAC1                | SIEU                 | SBR     | VMAC1                               | VMAC2                               | VMAC3                               | VLDST1                       | VLDST2
                                                          VFMULAS32.M1 VR0, VR16, VR32, VR32  | VFMULAS32.M2 VR1, VR16, VR36, VR36  | VFMULAS32.M3 VR2, VR16, VR40, VR40  | VLDDW *AR2++[OR0], VR23:VR22                                 ;  0  rows 0-2, k even | W1[1][2,3]
                         SBALE2 R40, R40, R40 |         | VFMULAS32.M1 VR0, VR17, VR33, VR33  | VFMULAS32.M2 VR1, VR17, VR37, VR37  | VFMULAS32.M3 VR2, VR17, VR41, VR41                                                                 ;  1
  SVBCAST.M1 R40, VR8  | SBALE2 R41, R41, R41 |         | VFMULAS32.M1 VR0, VR18, VR34, VR34  | VFMULAS32.M2 VR1, VR18, VR38, VR38  | VFMULAS32.M3 VR2, VR18, VR42, VR42                                                                 ;  2
  SVBCAST.M1 R41, VR9  | SBALE2 R42, R42, R42 |         | VFMULAS32.M1 VR0, VR19, VR35, VR35  | VFMULAS32.M2 VR1, VR19, VR39, VR39  | VFMULAS32.M3 VR2, VR19, VR43, VR43                                                                 ;  3
  SVBCAST.M1 R42, VR10 | SBALE2 R43, R43, R43 |         | VFMULAS32.M1 VR3, VR16, VR44, VR44  | VFMULAS32.M2 VR4, VR16, VR48, VR48  | VFMULAS32.M3 VR5, VR16, VR52, VR52                                                                 ;  4
  SVBCAST.M1 R43, VR11 | SBALE2 R44, R44, R44 |         | VFMULAS32.M1 VR3, VR17, VR45, VR45  | VFMULAS32.M2 VR4, VR17, VR49, VR49  | VFMULAS32.M3 VR5, VR17, VR53, VR53                                                                 ;  5
  SVBCAST.M1 R44, VR12 | SBALE2 R45, R45, R45 |         | VFMULAS32.M1 VR3, VR18, VR46, VR46  | VFMULAS32.M2 VR4, VR18, VR50, VR50  | VFMULAS32.M3 VR5, VR18, VR54, VR54                                                                 ;  6
  SVBCAST.M1 R45, VR13 |                      |         | VFMULAS32.M1 VR3, VR19, VR47, VR47  | VFMULAS32.M2 VR4, VR19, VR51, VR51  | VFMULAS32.M3 VR5, VR19, VR55, VR55                                                                 ;  7
                                                          VFMULAS32.M1 VR8, VR20, VR32, VR32  | VFMULAS32.M2 VR8, VR21, VR33, VR33  | VFMULAS32.M3 VR9, VR20, VR36, VR36                                                                 ;  8  k odd: rows 0, 1, ... in turn
                                                          VFMULAS32.M1 VR8, VR22, VR34, VR34  | VFMULAS32.M2 VR8, VR23, VR35, VR35  | VFMULAS32.M3 VR9, VR21, VR37, VR37                                                                 ;  9
                                                          VFMULAS32.M1 VR9, VR22, VR38, VR38  | VFMULAS32.M2 VR9, VR23, VR39, VR39  | VFMULAS32.M3 VR10, VR20, VR40, VR40                                                                ; 10
                                                          VFMULAS32.M1 VR10, VR21, VR41, VR41 | VFMULAS32.M2 VR10, VR22, VR42, VR42 | VFMULAS32.M3 VR10, VR23, VR43, VR43                                                                ; 11
                                                          VFMULAS32.M1 VR11, VR20, VR44, VR44 | VFMULAS32.M2 VR11, VR21, VR45, VR45 | VFMULAS32.M3 VR11, VR22, VR46, VR46                                                                ; 12
                                                          VFMULAS32.M1 VR11, VR23, VR47, VR47 | VFMULAS32.M2 VR12, VR20, VR48, VR48 | VFMULAS32.M3 VR12, VR21, VR49, VR49                                                                ; 13
                                                          VFMULAS32.M1 VR12, VR22, VR50, VR50 | VFMULAS32.M2 VR12, VR23, VR51, VR51 | VFMULAS32.M3 VR13, VR20, VR52, VR52                                                                ; 14
                                                SBR R63 | VFMULAS32.M1 VR13, VR21, VR53, VR53 | VFMULAS32.M2 VR13, VR22, VR54, VR54 | VFMULAS32.M3 VR13, VR23, VR55, VR55                                                                ; 15  return; six delay slots
                                                                                                                                                                            VSTDW VR35:VR34, *+AR3[16]   | VSTDW VR33:VR32, *AR3++[OR1]  ; 16  row 0 is done since cycle 15
                                                                                                                                                                            VSTDW VR39:VR38, *+AR3[16]   | VSTDW VR37:VR36, *AR3++[OR1]  ; 17
                                                                                                                                                                            VSTDW VR43:VR42, *+AR3[16]   | VSTDW VR41:VR40, *AR3++[OR1]  ; 18
                                                                                                                                                                            VSTDW VR47:VR46, *+AR3[16]   | VSTDW VR45:VR44, *AR3++[OR1]  ; 19
                                                                                                                                                                            VSTDW VR51:VR50, *+AR3[16]   | VSTDW VR49:VR48, *AR3++[OR1]  ; 20
                                                                                                                                                                            VSTDW VR55:VR54, *+AR3[16]   | VSTDW VR53:VR52, *AR3++[OR1]  ; 21  row 5: its last FMA issued 6 cycles ago

; --- Prologue of Y1 = X1 * W1: as above, accumulators set to zero instead of loaded; enters the loop through the branch.
write_only:
; SMAC1                  | SMAC2                 | SIEU                 | SLDST                 | SBR      | VMAC1            | VMAC2            | VLDST1                       | VLDST2
  SMVAGA.M1 R10, AR8     | SMVAGA.M2 R12, AR0    | SSHFLR 2, R18, R24                                                                                                                                         ;  0
  SMVAGA.M1 R24, OR8     |                       | SSHFLR 1, R18, R25                                                                                                                                         ;  1
  SMVAGA.M1 R25, OR9     | SADD.M2 R24, R25, R26 | SSHFLR 4, R22, R28   | SLDH *AR8, R32        |          |                  |                  | VLDDW *AR0, VR17:VR16        | VLDDW *+AR0[16], VR19:VR18  ;  2
  SMVAGA.M1 R26, OR10    | SMVAGA.M2 R28, OR1    | SSHFLR 4, R20, R29   | SLDH *+AR8[OR8], R33  |          | VMOVI.M1 0, VR32 | VMOVI.M2 0, VR33                                                              ;  3  Y1 = 0
  SMVAGA.M1 R18, OR11    | SADD.M2 R24, R18, R27 | SSHFLR 1, R16, R0    | SLDH *+AR8[OR9], R34  |          | VMOVI.M1 0, VR34 | VMOVI.M2 0, VR35                                                              ;  4
  SMVAGA.M1 R27, OR12    | SMVAGA.M2 R29, OR0    |                      | SLDH *+AR8[OR10], R35 |          | VMOVI.M1 0, VR36 | VMOVI.M2 0, VR37                                                              ;  5
  SADDA.M1 R20, AR0, AR0 | SMVAGA.M2 R14, AR3    |                      | SLDH *+AR8[OR11], R36 |          | VMOVI.M1 0, VR38 | VMOVI.M2 0, VR39                                                              ;  6
                           SADDA.M2 4, AR8, AR9  |                      | SLDH *+AR8[OR12], R37 |          | VMOVI.M1 0, VR40 | VMOVI.M2 0, VR41                                                              ;  7
  SSUB.M1 1, R0, R0      |                       |                      |                       |          | VMOVI.M1 0, VR42 | VMOVI.M2 0, VR43                                                              ;  8
  SADDA.M1 256, AR0, AR2 | SADDA.M2 8, AR8, AR8  | SBALE2 R32, R32, R32 |                       | SBR loop | VMOVI.M1 0, VR44 | VMOVI.M2 0, VR45                                                              ;  9  six delay slots
  SVBCAST.M1 R32, VR0    |                       | SBALE2 R33, R33, R33 | SLDH *AR9, R40        |          | VMOVI.M1 0, VR46 | VMOVI.M2 0, VR47                                                              ; 10
  SVBCAST.M1 R33, VR1    |                       | SBALE2 R34, R34, R34 | SLDH *+AR9[OR8], R41  |          | VMOVI.M1 0, VR48 | VMOVI.M2 0, VR49                                                              ; 11
  SVBCAST.M1 R34, VR2    |                       | SBALE2 R35, R35, R35 | SLDH *+AR9[OR9], R42  |          | VMOVI.M1 0, VR50 | VMOVI.M2 0, VR51                                                              ; 12
  SVBCAST.M1 R35, VR3    |                       | SBALE2 R36, R36, R36 | SLDH *+AR9[OR10], R43 |          | VMOVI.M1 0, VR52 | VMOVI.M2 0, VR53                                                              ; 13
  SVBCAST.M1 R36, VR4    |                       | SBALE2 R37, R37, R37 | SLDH *+AR9[OR11], R44 |          | VMOVI.M1 0, VR54 | VMOVI.M2 0, VR55                                                              ; 14
  SVBCAST.M1 R37, VR5    |                       |                      | SLDH *+AR9[OR12], R45 |          |                  |                  | VLDDW *AR0++[OR0], VR21:VR20                               ; 15
