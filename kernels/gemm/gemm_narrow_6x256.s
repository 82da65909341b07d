; SPDX-License-Identifier: Apache-2.0
; FP16 Y1[6][256] = sums[6][256], or Y1 + sums: what becomes of the FP32 sums of gemm_f16_6x256.s.
;
; In:   sums  R10  in AM, 16-byte aligned, rows in the order of gemm_f16_6x256.s    sums_pitch  R14  bytes, a multiple of 16
;       y     R12  in AM, row-major, 16-byte aligned                                y_pitch     R16  bytes, a multiple of 16
; Out:  Entry narrow: Y1 = sums, rounded once; 38 cycles. Entry merge: Y1 = Y1 + sums, added in FP32 and rounded; 46 cycles.
; A row of Y1 may start where its row of sums starts (narrow).
;
; Registers   AR0 row of sums, OR0 its pitch; AR1 row of Y1 to store, AR2 to load, OR1 their pitch
;             narrow   VR0-23 sums of three rows, VR24-31 Y1 of two
;             merge    VR0-39 sums of five rows, VR40-51 FP16 of three, VR52-59 Y1 of two, VR63 = 1.0

.param sums, R10, pointer am
.param y, R12, pointer am
.param sums_pitch, R14, count
.param y_pitch, R16, count
.scheduled_for VLDDW=9, VFMULAHLS=6, VFMULAHHS=6, VFSPHP16=3

; A row every four cycles: VIEU converts one vector a cycle.
narrow:
; SMAC1              | SMAC2              | SIEU               | SBR     | VIEU                      | VLDST1                     | VLDST2
  SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1 | SSHFLR 4, R14, R24                                                                                                    ;  0  pitches in 16 bytes
  SMVAGA.M1 R24, OR0 |                    | SSHFLR 4, R16, R25                                                                                                    ;  1
  SMVAGA.M1 R25, OR1 |                    |                    |         |                           | VLDDW *+AR0[48], VR7:VR6   | VLDDW *+AR0[32], VR5:VR4      ;  2  sums of row 0
                                                                                                       VLDDW *+AR0[16], VR3:VR2   | VLDDW *AR0++[OR0], VR1:VR0    ;  3
  SNOP 1                                                                                                                                                          ;  4
  SNOP 1                                                                                                                                                          ;  5
                                                                                                       VLDDW *+AR0[48], VR15:VR14 | VLDDW *+AR0[32], VR13:VR12    ;  6  sums of row 1
                                                                                                       VLDDW *+AR0[16], VR11:VR10 | VLDDW *AR0++[OR0], VR9:VR8    ;  7
  SNOP 1                                                                                                                                                          ;  8
  SNOP 1                                                                                                                                                          ;  9
                                                                                                       VLDDW *+AR0[48], VR23:VR22 | VLDDW *+AR0[32], VR21:VR20    ; 10  sums of row 2
                                                                           VFSPHP16 VR4, VR5, VR26   | VLDDW *+AR0[16], VR19:VR18 | VLDDW *AR0++[OR0], VR17:VR16  ; 11
                                                                           VFSPHP16 VR6, VR7, VR27                                                                ; 12
                                                                           VFSPHP16 VR0, VR1, VR24                                                                ; 13
                                                                           VFSPHP16 VR2, VR3, VR25   | VLDDW *+AR0[48], VR7:VR6   | VLDDW *+AR0[32], VR5:VR4      ; 14  sums of row 3
                                                                           VFSPHP16 VR12, VR13, VR30 | VLDDW *+AR0[16], VR3:VR2   | VLDDW *AR0++[OR0], VR1:VR0    ; 15
                                                                           VFSPHP16 VR14, VR15, VR31                                                              ; 16
                                                                           VFSPHP16 VR8, VR9, VR28   | VSTDW VR27:VR26, *+AR1[16] | VSTDW VR25:VR24, *AR1++[OR1]  ; 17  row 0 of Y1
                                                                           VFSPHP16 VR10, VR11, VR29 | VLDDW *+AR0[48], VR15:VR14 | VLDDW *+AR0[32], VR13:VR12    ; 18  sums of row 4
                                                                           VFSPHP16 VR20, VR21, VR26 | VLDDW *+AR0[16], VR11:VR10 | VLDDW *AR0++[OR0], VR9:VR8    ; 19
                                                                           VFSPHP16 VR22, VR23, VR27                                                              ; 20
                                                                           VFSPHP16 VR16, VR17, VR24 | VSTDW VR31:VR30, *+AR1[16] | VSTDW VR29:VR28, *AR1++[OR1]  ; 21  row 1 of Y1
                                                                           VFSPHP16 VR18, VR19, VR25 | VLDDW *+AR0[48], VR23:VR22 | VLDDW *+AR0[32], VR21:VR20    ; 22  sums of row 5
                                                                           VFSPHP16 VR4, VR5, VR30   | VLDDW *+AR0[16], VR19:VR18 | VLDDW *AR0++[OR0], VR17:VR16  ; 23
                                                                           VFSPHP16 VR6, VR7, VR31                                                                ; 24
                                                                           VFSPHP16 VR0, VR1, VR28   | VSTDW VR27:VR26, *+AR1[16] | VSTDW VR25:VR24, *AR1++[OR1]  ; 25  row 2 of Y1
                                                                           VFSPHP16 VR2, VR3, VR29                                                                ; 26
                                                                           VFSPHP16 VR12, VR13, VR26                                                              ; 27
                                                                           VFSPHP16 VR14, VR15, VR27                                                              ; 28
                                                                           VFSPHP16 VR8, VR9, VR24   | VSTDW VR31:VR30, *+AR1[16] | VSTDW VR29:VR28, *AR1++[OR1]  ; 29  row 3 of Y1
                                                                           VFSPHP16 VR10, VR11, VR25                                                              ; 30
                                                                 SBR R63 | VFSPHP16 VR20, VR21, VR30                                                              ; 31  return
                                                                           VFSPHP16 VR22, VR23, VR31                                                              ; 32
                                                                           VFSPHP16 VR16, VR17, VR28 | VSTDW VR27:VR26, *+AR1[16] | VSTDW VR25:VR24, *AR1++[OR1]  ; 33  row 4 of Y1
                                                                           VFSPHP16 VR18, VR19, VR29                                                              ; 34
  SNOP 1                                                                                                                                                          ; 35
  SNOP 1                                                                                                                                                          ; 36
                                                                                                       VSTDW VR31:VR30, *+AR1[16] | VSTDW VR29:VR28, *AR1++[OR1]  ; 37  row 5 of Y1

merge:
; SMAC1              | SMAC2              | SIEU               | SBR     | VMAC1                               | VMAC2                               | VMAC3                               | VIEU                           | VLDST1                     | VLDST2
  SMVAGA.M1 R10, AR0 | SMVAGA.M2 R12, AR1 | SSHFLR 4, R14, R24                                                                                                                                                                                                                           ;  0  pitches in 16 bytes
  SMVAGA.M1 R24, OR0 | SMVAGA.M2 R12, AR2 | SSHFLR 4, R16, R25                                                                                                                                                                                                                           ;  1
  SMVAGA.M1 R25, OR1 |                    |                    |         |                                     |                                     |                                     | VMOVI 0x3C003C003C003C00, VR63 | VLDDW *+AR0[48], VR7:VR6   | VLDDW *+AR0[32], VR5:VR4      ;  2  sums of row 0
                                                                                                                                                                                                                              VLDDW *+AR0[16], VR3:VR2   | VLDDW *AR0++[OR0], VR1:VR0    ;  3
                                                                                                                                                                                                                              VLDDW *+AR2[16], VR43:VR42 | VLDDW *AR2++[OR1], VR41:VR40  ;  4  FP16 of row 0
  SNOP 1                                                                                                                                                                                                                                                                                 ;  5
                                                                                                                                                                                                                              VLDDW *+AR0[48], VR15:VR14 | VLDDW *+AR0[32], VR13:VR12    ;  6  sums of row 1
                                                                                                                                                                                                                              VLDDW *+AR0[16], VR11:VR10 | VLDDW *AR0++[OR0], VR9:VR8    ;  7
                                                                                                                                                                                                                              VLDDW *+AR2[16], VR47:VR46 | VLDDW *AR2++[OR1], VR45:VR44  ;  8  FP16 of row 1
  SNOP 1                                                                                                                                                                                                                                                                                 ;  9
                                                                                                                                                                                                                              VLDDW *+AR0[48], VR23:VR22 | VLDDW *+AR0[32], VR21:VR20    ; 10  sums of row 2
                                                                                                                                                                                                                              VLDDW *+AR0[16], VR19:VR18 | VLDDW *AR0++[OR0], VR17:VR16  ; 11
                                                                                                                                                                                                                              VLDDW *+AR2[16], VR51:VR50 | VLDDW *AR2++[OR1], VR49:VR48  ; 12  FP16 of row 2
                                                                           VFMULAHLS.M1 VR42, VR63, VR4, VR4   | VFMULAHHS.M2 VR42, VR63, VR5, VR5   | VFMULAHLS.M3 VR43, VR63, VR6, VR6                                                                                                 ; 13
                                                                           VFMULAHHS.M1 VR43, VR63, VR7, VR7   | VFMULAHLS.M2 VR40, VR63, VR0, VR0   | VFMULAHHS.M3 VR40, VR63, VR1, VR1   |                                | VLDDW *+AR0[48], VR31:VR30 | VLDDW *+AR0[32], VR29:VR28    ; 14  sums of row 3
                                                                           VFMULAHLS.M1 VR41, VR63, VR2, VR2   | VFMULAHHS.M2 VR41, VR63, VR3, VR3   |                                     |                                | VLDDW *+AR0[16], VR27:VR26 | VLDDW *AR0++[OR0], VR25:VR24  ; 15
                                                                                                                                                                                                                              VLDDW *+AR2[16], VR43:VR42 | VLDDW *AR2++[OR1], VR41:VR40  ; 16  FP16 of row 3
                                                                           VFMULAHLS.M1 VR46, VR63, VR12, VR12 | VFMULAHHS.M2 VR46, VR63, VR13, VR13 | VFMULAHLS.M3 VR47, VR63, VR14, VR14                                                                                               ; 17
                                                                           VFMULAHHS.M1 VR47, VR63, VR15, VR15 | VFMULAHLS.M2 VR44, VR63, VR8, VR8   | VFMULAHHS.M3 VR44, VR63, VR9, VR9   |                                | VLDDW *+AR0[48], VR39:VR38 | VLDDW *+AR0[32], VR37:VR36    ; 18  sums of row 4
                                                                           VFMULAHLS.M1 VR45, VR63, VR10, VR10 | VFMULAHHS.M2 VR45, VR63, VR11, VR11 |                                     | VFSPHP16 VR4, VR5, VR54        | VLDDW *+AR0[16], VR35:VR34 | VLDDW *AR0++[OR0], VR33:VR32  ; 19
                                                                                                                                                                                             VFSPHP16 VR6, VR7, VR55        | VLDDW *+AR2[16], VR47:VR46 | VLDDW *AR2++[OR1], VR45:VR44  ; 20  FP16 of row 4
                                                                           VFMULAHLS.M1 VR50, VR63, VR20, VR20 | VFMULAHHS.M2 VR50, VR63, VR21, VR21 | VFMULAHLS.M3 VR51, VR63, VR22, VR22 | VFSPHP16 VR0, VR1, VR52                                                                     ; 21
                                                                           VFMULAHHS.M1 VR51, VR63, VR23, VR23 | VFMULAHLS.M2 VR48, VR63, VR16, VR16 | VFMULAHHS.M3 VR48, VR63, VR17, VR17 | VFSPHP16 VR2, VR3, VR53        | VLDDW *+AR0[48], VR7:VR6   | VLDDW *+AR0[32], VR5:VR4      ; 22  sums of row 5
                                                                           VFMULAHLS.M1 VR49, VR63, VR18, VR18 | VFMULAHHS.M2 VR49, VR63, VR19, VR19 |                                     | VFSPHP16 VR12, VR13, VR58      | VLDDW *+AR0[16], VR3:VR2   | VLDDW *AR0++[OR0], VR1:VR0    ; 23
                                                                                                                                                                                             VFSPHP16 VR14, VR15, VR59      | VLDDW *+AR2[16], VR51:VR50 | VLDDW *AR2++[OR1], VR49:VR48  ; 24  FP16 of row 5
                                                                           VFMULAHLS.M1 VR42, VR63, VR28, VR28 | VFMULAHHS.M2 VR42, VR63, VR29, VR29 | VFMULAHLS.M3 VR43, VR63, VR30, VR30 | VFSPHP16 VR8, VR9, VR56        | VSTDW VR55:VR54, *+AR1[16] | VSTDW VR53:VR52, *AR1++[OR1]  ; 25  row 0 of Y1
                                                                           VFMULAHHS.M1 VR43, VR63, VR31, VR31 | VFMULAHLS.M2 VR40, VR63, VR24, VR24 | VFMULAHHS.M3 VR40, VR63, VR25, VR25 | VFSPHP16 VR10, VR11, VR57                                                                   ; 26
                                                                           VFMULAHLS.M1 VR41, VR63, VR26, VR26 | VFMULAHHS.M2 VR41, VR63, VR27, VR27 |                                     | VFSPHP16 VR20, VR21, VR54                                                                   ; 27
                                                                                                                                                                                             VFSPHP16 VR22, VR23, VR55                                                                   ; 28
                                                                           VFMULAHLS.M1 VR46, VR63, VR36, VR36 | VFMULAHHS.M2 VR46, VR63, VR37, VR37 | VFMULAHLS.M3 VR47, VR63, VR38, VR38 | VFSPHP16 VR16, VR17, VR52      | VSTDW VR59:VR58, *+AR1[16] | VSTDW VR57:VR56, *AR1++[OR1]  ; 29  row 1 of Y1
                                                                           VFMULAHHS.M1 VR47, VR63, VR39, VR39 | VFMULAHLS.M2 VR44, VR63, VR32, VR32 | VFMULAHHS.M3 VR44, VR63, VR33, VR33 | VFSPHP16 VR18, VR19, VR53                                                                   ; 30
                                                                           VFMULAHLS.M1 VR45, VR63, VR34, VR34 | VFMULAHHS.M2 VR45, VR63, VR35, VR35 |                                     | VFSPHP16 VR28, VR29, VR58                                                                   ; 31
                                                                                                                                                                                             VFSPHP16 VR30, VR31, VR59                                                                   ; 32
                                                                           VFMULAHLS.M1 VR50, VR63, VR4, VR4   | VFMULAHHS.M2 VR50, VR63, VR5, VR5   | VFMULAHLS.M3 VR51, VR63, VR6, VR6   | VFSPHP16 VR24, VR25, VR56      | VSTDW VR55:VR54, *+AR1[16] | VSTDW VR53:VR52, *AR1++[OR1]  ; 33  row 2 of Y1
                                                                           VFMULAHHS.M1 VR51, VR63, VR7, VR7   | VFMULAHLS.M2 VR48, VR63, VR0, VR0   | VFMULAHHS.M3 VR48, VR63, VR1, VR1   | VFSPHP16 VR26, VR27, VR57                                                                   ; 34
                                                                           VFMULAHLS.M1 VR49, VR63, VR2, VR2   | VFMULAHHS.M2 VR49, VR63, VR3, VR3   |                                     | VFSPHP16 VR36, VR37, VR54                                                                   ; 35
                                                                                                                                                                                             VFSPHP16 VR38, VR39, VR55                                                                   ; 36
                                                                                                                                                                                             VFSPHP16 VR32, VR33, VR52      | VSTDW VR59:VR58, *+AR1[16] | VSTDW VR57:VR56, *AR1++[OR1]  ; 37  row 3 of Y1
                                                                                                                                                                                             VFSPHP16 VR34, VR35, VR53                                                                   ; 38
                                                                 SBR R63 |                                     |                                     |                                     | VFSPHP16 VR4, VR5, VR58                                                                     ; 39  return
                                                                                                                                                                                             VFSPHP16 VR6, VR7, VR59                                                                     ; 40
                                                                                                                                                                                             VFSPHP16 VR0, VR1, VR56        | VSTDW VR55:VR54, *+AR1[16] | VSTDW VR53:VR52, *AR1++[OR1]  ; 41  row 4 of Y1
                                                                                                                                                                                             VFSPHP16 VR2, VR3, VR57                                                                     ; 42
  SNOP 1                                                                                                                                                                                                                                                                                 ; 43
  SNOP 1                                                                                                                                                                                                                                                                                 ; 44
                                                                                                                                                                                                                              VSTDW VR59:VR58, *+AR1[16] | VSTDW VR57:VR56, *AR1++[OR1]  ; 45  row 5 of Y1
