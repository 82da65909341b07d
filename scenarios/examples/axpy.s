; SPDX-License-Identifier: Apache-2.0
; Y[32 n] += a * X[32 n], FP32: one vector of 128 bytes a pass, both loads in flight together. n at least 1.
; The two loads use two address registers in one packet: no published kernel does, so `mtsim check` remarks on it.
.param x, R10, pointer am
.param y, R12, pointer am
.param a, R14, value
.param n, R16, count
; SMAC1               | SMAC2              | SIEU
  SMVAGA.M1 R10, AR0  | SMVAGA.M2 R12, AR1 | SBALE2 R14, R14, R14
  SVBCAST.M1 R14, VR0 | SMVAGA.M2 R12, AR2 | SMOVI24 16, R2  ; 16 index units of 8 bytes a vector
  SMVAGA.M1 R2, OR0   |                    | SMOV R16, R1
  SNOP 1
loop:
; SMAC1              | SBR           | VMAC1                           | VLDST1                | VLDST2
  SADD.M1 -1, R1, R1 |               |                                 | VLDW *AR0++[OR0], VR1 | VLDW *AR1++[OR0], VR2
  SNOP 8
                       [R1] SBR loop | VFMULAS32.M1 VR1, VR0, VR2, VR3
  SNOP 5
                                                                         VSTW VR3, *AR2++[OR0]  ; the sixth delay slot: VR3 has just landed
                       SBR R63
  SNOP 6
