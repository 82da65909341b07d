; SPDX-License-Identifier: Apache-2.0
; Y[columns][rows] = X[rows][columns] transposed, for one panel: as many rows as 128 B have elements (FP32: 32, FP16: 64) and
; `blocks` times as many columns.
;
; In:   x        R10  &X[0][0] in AM, 8-byte aligned           x_pitch  R18  bytes from row to row of X, a multiple of 8
;       y        R12  &Y[0][0] in AM, 8-byte aligned           y_pitch  R20  bytes from row to row of Y, a multiple of 8
;       scratch  R14  in AM, 16-byte aligned: 8 KB, FP16 16 KB      blocks   R16  at least 1
;
; A lane of 64 bits takes E = 2 (FP16: 4) rows of one column; packing rows Eq .. Eq+E-1 leaves E classes of 16 columns:
; column El + k is lane l of class k. What remains per class is a 16 x 16 transpose of lanes, q against l, by two rounds of
; the published stores VSTDW0M16 and VSTDW1M16: four vectors to memory so that lane after lane their four values lie together.
;   gather   q = g + 4p: for each g the four vectors p = 0..3        ->  [g][k][l][p]
;   spread   the four vectors g = 0..3 that start at lane 4m of k    ->  [k][l][p][g], and p, g count q
;   copy     128 B a column to Y

.equ FP16, 0
.equ E, 2 + 2*FP16
.equ GROUP, 64*E       ; 512 B a class, in units of 8 B
.equ COLUMNS, 256      ; 16 columns of a class, in units of 8 B
.equ UNROLL, 8/E       ; lanes a pass of copy: 8 columns

.param x, R10, pointer am
.param y, R12, pointer am
.param scratch, R14, pointer am
.param blocks, R16, count
.param x_pitch, R18, count
.param y_pitch, R20, count

; Two vectors a packet go through one address register: the second one at an offset.
; The E classes of rows Eq..Eq+E-1 as vectors classK_P, from the next E rows at `row`.
.macro pack row, p
.if FP16
.reg VR, a\@, b\@, c\@, d\@, ab\@, cd\@, ab_high\@, cd_high\@
    VLDW    *+\row[x_step], b\@
    VLDW    *\row++[two_x_steps], a\@
    VLDW    *+\row[x_step], d\@
    VLDW    *\row++[two_x_steps], c\@
    VBALE4L a\@, b\@, ab\@
    VBALE4L c\@, d\@, cd\@
    VBALE4H a\@, b\@, ab_high\@
    VBALE4H c\@, d\@, cd_high\@
    VBALE2  ab\@, cd\@, class0_\p
    VBALE2H ab\@, cd\@, class1_\p
    VBALE2  ab_high\@, cd_high\@, class2_\p
    VBALE2H ab_high\@, cd_high\@, class3_\p
.else
.reg VR, a\@, b\@
    VLDW    *+\row[x_step], b\@
    VLDW    *\row++[two_x_steps], a\@
    VBALE2  a\@, b\@, class0_\p
    VBALE2H a\@, b\@, class1_\p
.endif
.endm

.linear
.independent  ; X, Y and the two halves of scratch do not overlap
.reg R, n, g, m, l, from, to, packed, spread_out, four_e_rows, x_units, y_units, two_x_units
.reg AR, row0, row1, row2, row3, to_packed, low_groups, high_groups, to_spread, low_classes, high_classes, column
.reg OR, x_step, y_step, two_x_steps
    SSHFLR  3, x_pitch, x_units
    SSHFLR  3, y_pitch, y_units
    SSHFLR  2, x_pitch, two_x_units
    SMVAGA  x_units, x_step
    SMVAGA  y_units, y_step
    SMVAGA  two_x_units, two_x_steps
.if FP16
    SSHFLL  4, x_pitch, four_e_rows
.else
    SSHFLL  3, x_pitch, four_e_rows
.endif
    SMOV    scratch, packed
    SADD    E*2048, scratch, spread_out
    SMOV    x, from
    SMVAGA  y, column
    SMOV    blocks, n

block:
    SMVAGA  from, row0
    SADDA   four_e_rows, row0, row1
    SADDA   four_e_rows, row1, row2
    SADDA   four_e_rows, row2, row3
    SMVAGA  packed, to_packed
    SMOVI24 4, g

.region loop_gather
gather: .trip 4
.rept E, k
.reg VR, class\k\()_0, class\k\()_1, class\k\()_2, class\k\()_3
.endr
    pack    row0, 0
    pack    row1, 1
    pack    row2, 2
    pack    row3, 3
.rept E, k
    VSTDW0M16 class\k\()_1:class\k\()_0, *+to_packed[\k*32]
    VSTDW1M16 class\k\()_3:class\k\()_2, *+to_packed[\k*32+16]
.endr
    SADDA   E*512, to_packed, to_packed
    SSUB    1, g, g
    [g] SBR gather
.endregion

    SMVAGA  packed, low_groups
    SADDA   E*1024, low_groups, high_groups
    SMVAGA  spread_out, to_spread
    SMOVI24 2*E, m

.region loop_spread
spread: .trip 4
.rept 2, i
.reg VR, group0_\i, group1_\i, group2_\i, group3_\i
    VLDW    *+low_groups[\i*16], group0_\i
    VLDW    *+low_groups[GROUP+\i*16], group1_\i
    VLDW    *+high_groups[\i*16], group2_\i
    VLDW    *+high_groups[GROUP+\i*16], group3_\i
    VSTDW0M16 group1_\i:group0_\i, *+to_spread[\i*32]
    VSTDW1M16 group3_\i:group2_\i, *+to_spread[\i*32+16]
.endr
    SADDA   256, low_groups, low_groups
    SADDA   256, high_groups, high_groups
    SADDA   1024, to_spread, to_spread
    SSUB    1, m, m
    [m] SBR spread
.endregion

    SMVAGA  spread_out, low_classes
.if FP16
    SADDA   4096, low_classes, high_classes
.endif
    SMOVI24 2*E, l

.region loop_copy
copy: .trip 4
.rept UNROLL, i
.reg VR, column0_\i, column1_\i
    VLDW    *+low_classes[\i*16], column0_\i
    VLDW    *+low_classes[COLUMNS+\i*16], column1_\i
    VSTW    column0_\i, *column++[y_step]
    VSTW    column1_\i, *column++[y_step]
.if FP16
.reg VR, column2_\i, column3_\i
    VLDW    *+high_classes[\i*16], column2_\i
    VLDW    *+high_classes[COLUMNS+\i*16], column3_\i
    VSTW    column2_\i, *column++[y_step]
    VSTW    column3_\i, *column++[y_step]
.endif
.endr
    SADDA   UNROLL*128, low_classes, low_classes
.if FP16
    SADDA   UNROLL*128, high_classes, high_classes
.endif
    SSUB    1, l, l
    [l] SBR copy
.endregion

    SADD    128, from, from
    SSUB    1, n, n
    [n] SBR block
    SBR     R63
.endlinear
