; SPDX-License-Identifier: Apache-2.0
; Reductions along rows, 32 rows at a time, for .linear code (paper, Fig. 9). A row leaves 32 FP32 partial results in one
; vector; 32 such vectors become one with the result of row r in FP32 lane r, and that one becomes 32 vectors, each with one
; row's value in every lane.
;
; The caller owns an area in AM, 512-byte aligned and rows_bytes long, with these parts:

.equ rows_first, 0       ; 32 vectors, e.g. partial results
.equ rows_second, 4096   ; 32 more
.equ rows_value, 8192    ; 32 more
.equ rows_turn, 12288    ; what reduce_32_rows turns over
.equ rows_kept, 14848    ; one vector
.equ rows_bytes, 15360

; `op`: VFADDS32 or VFMAXS32. `from`: AR, the 32 vectors. `turn`: AR, rows_turn. `result`: VR.
;
; VBALE2 and VBALE2H put equal elements of two rows into one 64-bit lane, so that one `op` halves both rows. Stored with
; VSTDW0M16 and VSTDW1M16 and loaded back, four such vectors are turned over: lane 4 q + k of the vectors loaded holds lanes
; q, 4 + q, 8 + q and 12 + q of vector k. Vector k of group g is that of rows 8 k + 2 g and the next; after a second turn
; lane l belongs to rows 2 l and 2 l + 1.
.macro reduce_32_rows op, from, turn, result
  .reg VR, even\@, odd\@, low\@, high\@, group\@_0, group\@_1, group\@_2, group\@_3
  .rept 4, k
  .reg VR, pair\@_\k\()_0, pair\@_\k\()_1, pair\@_\k\()_2, pair\@_\k\()_3
  .rept 4, g
  VLDDW *+\from[64*\k+16*\g], odd\@:even\@
  VBALE2 even\@, odd\@, low\@
  VBALE2H even\@, odd\@, high\@
  \op low\@, high\@, pair\@_\k\()_\g
  .endr
  .endr
  .rept 4, g
  turn_4_vectors \op, pair\@_0_\g, pair\@_1_\g, pair\@_2_\g, pair\@_3_\g, \turn, 32*\g, group\@_\g
  .endr
  turn_4_vectors \op, group\@_0, group\@_1, group\@_2, group\@_3, \turn, 128, \result
.endm

; At 16 * `at` bytes behind `turn`.
.macro turn_4_vectors op, a, b, c, d, turn, at, result
  .reg VR, turned\@_0, turned\@_1, turned\@_2, turned\@_3, half\@_0, half\@_1
  VSTDW0M16 \b:\a, *+\turn[\at]
  VSTDW1M16 \d:\c, *+\turn[\at+16]
  VLDDW *+\turn[\at], turned\@_1:turned\@_0
  VLDDW *+\turn[\at+16], turned\@_3:turned\@_2
  \op turned\@_0, turned\@_1, half\@_0
  \op turned\@_2, turned\@_3, half\@_1
  \op half\@_0, half\@_1, \result
.endm

; FP32 lane r of `value` goes to every lane of the vector at `to` + 128 r.
.macro spread_32_rows value, to
  .reg R, scalar\@
  .reg VR, lane\@, even\@, odd\@
  VMVCGC \value, SVR0
  .rept 16, l
  SMVCCG SVR\l, scalar\@
  SVBCAST scalar\@, lane\@
  VFEXTS32L lane\@, even\@
  VFEXTS32H lane\@, odd\@
  VSTDW odd\@:even\@, *+\to[16*\l]
  .endr
.endm

; sum = PREFIX_0 + ... + PREFIX_7, in three levels.
.macro add_8_vectors prefix, sum
  .rept 4, i
  .reg VR, two\@_\i
  .endr
  VFADDS32 \prefix\()_0, \prefix\()_1, two\@_0
  VFADDS32 \prefix\()_2, \prefix\()_3, two\@_1
  VFADDS32 \prefix\()_4, \prefix\()_5, two\@_2
  VFADDS32 \prefix\()_6, \prefix\()_7, two\@_3
  VFADDS32 two\@_0, two\@_1, two\@_0
  VFADDS32 two\@_2, two\@_3, two\@_2
  VFADDS32 two\@_0, two\@_2, \sum
.endm
