// SPDX-License-Identifier: Apache-2.0
// Sizes in whole tiles.
#pragma once

#include <cstdint>

namespace mtsim::kernels {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace mtsim::kernels
