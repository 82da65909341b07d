; SPDX-License-Identifier: Apache-2.0
; The operators of low density as a compiler that knows no vectors writes them: scalar FP32 in SM, element by element,
; one instruction a packet, each waits for what it needs, delay slots stay empty. The baseline of the ablation.
;
;   add        y = x + a                          silu_mul   y = x / (1 + exp(-x)) * a
;   softmax    y = softmax(scale x)               rmsnorm    y = x / sqrt(mean(x^2) + value) * a
;   rope_interleaved, rope_half                   y = x with the pairs of its heads rotated by (value + row) * a[pair]
;   widen_f16  y = FP32 of x                      narrow_f16 y = FP16 of x, nearest even
;   fill       y = value
;
; In:   x  R10, a  R12, y  R14  in SM, FP32 (x of widen_f16, y of narrow_f16: FP16), 8-byte aligned; y may be x; what an
;       entry does not use may be any pointer into SM
;       rows  R16  at least 1      columns  R18  elements; widen_f16 and narrow_f16: 4 elements
;       each; fill: 8 bytes each; rope: pairs of a head      heads  R20  of a row, of rope alone      value  R22  FP32 in the low 32 bits:
;       scale of softmax, eps of rmsnorm, first position of rope; fill: 64 bits      per_column  R24  FP32, 1 / columns
;       pitch  R26  bytes from row to row of x, y and the rows of a
; a is rows of add and silu_mul, one row of rmsnorm and of rope. widen_f16, narrow_f16 and fill know no pitch.
;
; A NaN stays. softmax: a NaN or +infinity in a row makes the row NaN, a row of -infinity gives 0. rope: |angle| <= 2^17.
;
; Registers   AR8 x, AR9 a, AR10 y; R0 elements left, R1 rows left; R30-36 addresses, which never meet a value of
;             memory; R40-45 values of an entry, R50-61 of the functions

.param x, R10, pointer sm
.param a, R12, pointer sm
.param y, R14, pointer sm
.param rows, R16, count
.param columns, R18, count
.param heads, R20, count
.param value, R22, value
.param per_column, R24, value
.param pitch, R26, count

; --- One operation, waited for.
.macro load p, d
  SLDH *\p, \d
  SNOP 6
.endm
.macro store a, p
  SSTH \a, *\p
.endm
.macro add_to a, b, d
  SFADDS32.M1 \a, \b, \d
  SNOP 2
.endm
.macro subtract a, b, d               ; b - a
  SFSUBS32.M1 \a, \b, \d
  SNOP 2
.endm
.macro multiply a, b, d
  SFMULS32.M1 \a, \b, \d
  SNOP 3
.endm
.macro multiply_add a, b, c, d
  SFMULAS32.M1 \a, \b, \c, \d
  SNOP 5
.endm
.macro multiply_add_constant a, bits, d  ; d = a d + constant
  SMOVI \bits, R61
  multiply_add \a, \d, R61, \d
.endm
.macro next p
  SADDA 4, \p, \p
  SNOP 1
.endm
.macro to_sm a, p
  SMVAGA.M1 \a, \p
  SNOP 1
.endm
.macro loop_while r, label
  SSUB.M1 1, \r, \r
  [\r] SBR \label
  SNOP 6
.endm
.macro return
  SBR R63
  SNOP 6
.endm

; --- Functions. Each keeps its argument, and uses R50-61.

; d = a where the mask is all ones, else b.
.macro select mask, a, b, d
  SAND \mask, \a, R60
  SXOR -1, \mask, R61
  SAND R61, \b, R61
  SOR R60, R61, \d
.endm

; d = f(x) computed without regard to NaN becomes NaN where x is.
.macro keep_nan x, d
  SFCMPES32 \x, \x, R60
  SXOR -1, R60, R60
  SOR R60, \d, \d
.endm

; y = exp(x) for x <= 0; below -104 it rounds to 0. n = x log2(e) rounded, r = x - n ln 2 in two steps, Taylor's polynomial
; of degree 7 (its error on |r| <= 0.347 is below 2^-27), n + 64 added to the exponent and 2^-64 multiplied to it, so that
; subnormal results are rounded once.
.macro exponential x, y
  SMOVI 0xC2D00000, R50               ; -104
  SFMAXS32 \x, R50, R50
  SMOVI 0x3FB8AA3B, R61               ; log2(e)
  multiply R50, R61, R51
  SFSINT32 R51, R52
  SNOP 2
  SFINTS32 R52, R51
  SNOP 2
  SMOVI 0xBF317200, R61               ; -0.693145752, 16 bits
  multiply_add R51, R61, R50, R50
  SMOVI 0xB5BFBE8E, R61               ; -1.42860682e-6
  multiply_add R51, R61, R50, R50
  SMOVI 0x39500D01, R53               ; 1/7!
  multiply_add_constant R50, 0x3AB60B61, R53  ; 1/6!
  multiply_add_constant R50, 0x3C088889, R53  ; 1/5!
  multiply_add_constant R50, 0x3D2AAAAB, R53  ; 1/4!
  multiply_add_constant R50, 0x3E2AAAAB, R53  ; 1/3!
  multiply_add_constant R50, 0x3F000000, R53
  multiply_add_constant R50, 0x3F800000, R53
  multiply_add_constant R50, 0x3F800000, R53
  SADD 64, R52, R52
  SSHFLL 23, R52, R52
  SADD R52, R53, R53
  SMOVI 0x1F800000, R61               ; 2^-64
  multiply R53, R61, \y
  keep_nan \x, \y
.endm

; y = 1 / d for normal d whose inverse is normal: seed and two Newton steps. A NaN stays.
.macro reciprocal d, y
  SMOVI 0x80000000, R61
  SXOR R61, \d, R50
  SMOVI 0x3F800000, R51
  SFRCPS32 \d, R52
  multiply_add R50, R52, R51, R53
  multiply_add R52, R53, R52, R52
  multiply_add R50, R52, R51, R53
  multiply_add R52, R53, R52, \y
.endm

; y = 1 / sqrt(d) for d >= 0; +0 gives NaN, +infinity 0. d meets y / 2 first, so that a subnormal d keeps its accuracy.
.macro reciprocal_root d, y
  SMOVI 0xBF000000, R50               ; -0.5
  SMOVI 0x3F000000, R51
  SFRSQS32 \d, R52
  SMOV R52, R55
.rept 2
  multiply R50, R52, R53
  multiply R53, \d, R53
  multiply_add R53, R52, R51, R54
  multiply_add R52, R54, R52, R52
.endr
  SMOVI 0x7F800000, R61
  SFCMPES32 R61, \d, R56
  select R56, R55, R52, \y            ; Newton makes NaN of infinity times 0
.endm

; sine and cosine of x: n = x 2/pi rounded, r = x - n pi/2 in three steps (the first is exact for |x| <= 2^17), Taylor's
; polynomials of r^9 and r^10 (their errors on |r| <= pi/4 are below 2^-28), exchanged for odd n, signs by n mod 4.
.macro sine_cosine x, sine, cosine
  SMOVI 0x3F22F983, R61               ; 2/pi
  multiply \x, R61, R51
  SFSINT32 R51, R52
  SNOP 2
  SFINTS32 R52, R51
  SNOP 2
  SMOVI 0xBFC90FDB, R61               ; -pi/2 in parts: -1.57079637
  multiply_add R51, R61, \x, R50
  SMOVI 0x333BBD2E, R61               ; 4.37113883e-8
  multiply_add R51, R61, R50, R50
  SMOVI 0x26F72CED, R61               ; 1.71512489e-15
  multiply_add R51, R61, R50, R50
  multiply R50, R50, R53              ; r^2
  SMOVI 0x3638EF1D, R54               ; 1/9!
  multiply_add_constant R53, 0xB9500D01, R54  ; -1/7!
  multiply_add_constant R53, 0x3C088889, R54  ; 1/5!
  multiply_add_constant R53, 0xBE2AAAAB, R54  ; -1/3!
  multiply R54, R53, R54
  multiply_add R54, R50, R50, R55     ; sin r
  SMOVI 0xB493F27E, R54               ; -1/10!
  multiply_add_constant R53, 0x37D00D01, R54  ; 1/8!
  multiply_add_constant R53, 0xBAB60B61, R54  ; -1/6!
  multiply_add_constant R53, 0x3D2AAAAB, R54  ; 1/4!
  multiply_add_constant R53, 0xBF000000, R54  ; -1/2!
  multiply_add_constant R53, 0x3F800000, R54  ; cos r
  SAND 1, R52, R3
  SMOV R55, R56
  [R3] SMOV R54, R55
  [R3] SMOV R56, R54
  SAND 2, R52, R56
  SSHFLL 30, R56, R56
  SXOR R56, R55, \sine
  SADD 1, R52, R56
  SAND 2, R56, R56
  SSHFLL 30, R56, R56
  SXOR R56, R54, \cosine
.endm

; --- Elements.
add:
  SMOV R16, R1
add_row:
  to_sm R10, AR8
  to_sm R12, AR9
  to_sm R14, AR10
  SMOV R18, R0
add_element:
  load AR8, R40
  load AR9, R41
  add_to R40, R41, R40
  store R40, AR10
  next AR8
  next AR9
  next AR10
  loop_while R0, add_element
  SADD R26, R10, R10
  SADD R26, R12, R12
  SADD R26, R14, R14
  loop_while R1, add_row
  return

; With e = exp(-|x|) the denominator 1 + e is in 1..2: 1 / (1 + exp(-x)) = (x < 0 ? e : 1) / (1 + e).
silu_mul:
  SMOV R16, R1
silu_row:
  to_sm R10, AR8
  to_sm R12, AR9
  to_sm R14, AR10
  SMOV R18, R0
silu_element:
  load AR8, R40
  load AR9, R41
  SMOVI 0x80000000, R61
  SOR R61, R40, R42                   ; -|x|
  exponential R42, R43
  SMOVI 0x3F800000, R42
  add_to R42, R43, R44
  reciprocal R44, R45
  SMOVI 0, R61
  SFCMPLS32 R40, R61, R44
  select R44, R43, R42, R42
  multiply R40, R42, R40
  multiply R40, R45, R40
  multiply R40, R41, R40
  store R40, AR10
  next AR8
  next AR9
  next AR10
  loop_while R0, silu_element
  SADD R26, R10, R10
  SADD R26, R12, R12
  SADD R26, R14, R14
  loop_while R1, silu_row
  return

; --- Rows.
softmax:
  SMOV R16, R1
softmax_row:
  to_sm R10, AR8
  SMOV R18, R0
  SMOVI 0xFF7FFFFF, R42               ; the least finite number: -infinity less it is -infinity
softmax_maximum:
  load AR8, R40
  SFMAXS32 R40, R42, R42
  next AR8
  loop_while R0, softmax_maximum
  to_sm R10, AR8
  to_sm R14, AR10
  SMOV R18, R0
  SMOVI 0, R43
softmax_exponential:
  load AR8, R40
  subtract R42, R40, R40
  multiply R22, R40, R40
  exponential R40, R41
  add_to R41, R43, R43
  store R41, AR10
  next AR8
  next AR10
  loop_while R0, softmax_exponential
  SMOVI 0x3F800000, R61               ; the sum is at least 1, but for a row of nothing
  SFMAXS32 R61, R43, R44
  reciprocal R44, R45
  keep_nan R43, R45
  to_sm R14, AR10
  SMOV R18, R0
softmax_scale:
  load AR10, R40
  multiply R40, R45, R40
  store R40, AR10
  next AR10
  loop_while R0, softmax_scale
  SADD R26, R10, R10
  SADD R26, R14, R14
  loop_while R1, softmax_row
  return

rmsnorm:
  SMOV R16, R1
rmsnorm_row:
  to_sm R10, AR8
  SMOV R18, R0
  SMOVI 0, R43
rmsnorm_square:
  load AR8, R40
  multiply_add R40, R40, R43, R43
  next AR8
  loop_while R0, rmsnorm_square
  multiply_add R43, R24, R22, R44
  reciprocal_root R44, R45
  to_sm R10, AR8
  to_sm R12, AR9
  to_sm R14, AR10
  SMOV R18, R0
rmsnorm_scale:
  load AR8, R40
  load AR9, R41
  multiply R40, R45, R40
  multiply R40, R41, R40
  store R40, AR10
  next AR8
  next AR9
  next AR10
  loop_while R0, rmsnorm_scale
  SADD R26, R10, R10
  SADD R26, R14, R14
  loop_while R1, rmsnorm_row
  return

; Pairs 2 i and 2 i + 1: R30 bytes to the other of a pair, R31 from pair to pair, R32 from the last pair of a head to the
; next head.
rope_interleaved:
  SMOVI24 4, R30
  SMOVI24 8, R31
  SMOVI24 0, R32
  SBR rope
  SNOP 6
; Pairs i and i + columns.
rope_half:
  SSHFLL 2, R18, R30
  SMOVI24 4, R31
  SMOV R30, R32
  SBR rope
  SNOP 6
rope:
  SMOV R16, R1
rope_row:
  SMOV R10, R33
  SMOV R14, R34
  SMOV R20, R2
rope_head:
  SMOV R12, R35
  SMOV R18, R0
rope_pair:
  to_sm R35, AR9
  load AR9, R40
  multiply R22, R40, R40
  sine_cosine R40, R41, R42
  to_sm R33, AR8
  load AR8, R43
  SADD R30, R33, R36
  to_sm R36, AR8
  load AR8, R44
  SMOVI 0x80000000, R61
  SXOR R61, R44, R45
  multiply R45, R41, R45              ; x0 cos - x1 sin
  multiply_add R43, R42, R45, R45
  to_sm R34, AR10
  store R45, AR10
  multiply R44, R42, R45              ; x1 cos + x0 sin
  multiply_add R43, R41, R45, R45
  SADD R30, R34, R36
  to_sm R36, AR10
  store R45, AR10
  SADD R31, R33, R33
  SADD R31, R34, R34
  SADD 4, R35, R35
  loop_while R0, rope_pair
  SADD R32, R33, R33
  SADD R32, R34, R34
  loop_while R2, rope_head
  SMOVI 0x3F800000, R61
  add_to R61, R22, R22                ; the next position
  SADD R26, R10, R10
  SADD R26, R14, R14
  loop_while R1, rope_row
  return

; --- FP16 storage: there are no loads and stores of 16 bits, so that four elements go at a time.
widen_f16:
  SMOV R16, R1
  to_sm R10, AR8
  to_sm R14, AR10
widen_row:
  SMOV R18, R0
widen_element:
  SLDW *AR8, R40
  SNOP 6
  SFHPSP16L R40, R41
  SNOP 2
  SSTW R41, *AR10
  SFHPSP16H R40, R41
  SNOP 2
  SSTW R41, *+AR10[1]
  SADDA 8, AR8, AR8
  SADDA 16, AR10, AR10
  SNOP 1
  loop_while R0, widen_element
  loop_while R1, widen_row
  return

narrow_f16:
  SMOV R16, R1
  to_sm R10, AR8
  to_sm R14, AR10
narrow_row:
  SMOV R18, R0
narrow_element:
  SLDW *AR8, R40
  SNOP 6
  SLDW *+AR8[1], R41
  SNOP 6
  SFSPHP16 R40, R41, R42
  SNOP 2
  SSTW R42, *AR10
  SADDA 16, AR8, AR8
  SADDA 8, AR10, AR10
  SNOP 1
  loop_while R0, narrow_element
  loop_while R1, narrow_row
  return

fill:
  SMOV R16, R1
  to_sm R14, AR10
fill_row:
  SMOV R18, R0
fill_element:
  SSTW R22, *AR10
  SADDA 8, AR10, AR10
  SNOP 1
  loop_while R0, fill_element
  loop_while R1, fill_row
  return
