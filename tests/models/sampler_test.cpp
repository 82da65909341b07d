// SPDX-License-Identifier: Apache-2.0
#include "models/sampler.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/models/support.h"

using namespace mtsim::models;
using mtsim::models::test::error_of;

namespace {

constexpr float k_infinity = std::numeric_limits<float>::infinity();

std::vector<std::int64_t> draw(const SamplerOptions& options, const std::vector<float>& logits, int count) {
  Sampler sampler(options);
  std::vector<std::int64_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(sampler.sample(logits));
  return ids;
}

}  // namespace

TEST_CASE("without a temperature the largest logit wins, the first of equal ones", "[sampler]") {
  CHECK(Sampler({}).sample(std::vector<float>{1, 3, 2}) == 1);
  CHECK(Sampler({}).sample(std::vector<float>{1, 3, 3}) == 1);
  CHECK(Sampler({}).sample(std::vector<float>{-k_infinity, -5, -k_infinity}) == 1);
  CHECK(Sampler({}).sample(std::vector<float>{-0.0F, 0.0F}) == 0);
}

TEST_CASE("the random sequence is SplitMix64", "[sampler]") {
  RandomSequence random(1234567);  // its published first values for this seed
  CHECK(random.next() == 6457827717110365317u);
  CHECK(random.next() == 3203168211198807973u);
  CHECK(random.next() == 9817491932198370423u);
}

TEST_CASE("a seed decides the text, and this one always the same", "[sampler]") {
  const std::vector<float> logits = {0, 0.5F, 1, -1, 2};
  const SamplerOptions options{1.0, 0.95, 7};
  const auto ids = draw(options, logits, 12);
  CHECK(ids == draw(options, logits, 12));
  CHECK(ids != draw({1.0, 0.95, 8}, logits, 12));
  CHECK(ids == std::vector<std::int64_t>{4, 4, 1, 2, 4, 4, 4, 4, 4, 4, 4, 0});
}

TEST_CASE("tokens come as often as their probability says", "[sampler]") {
  // Probabilities 1/2, 1/4, 1/4 at temperature 1; at 2 the square roots. 40,000 draws: a deviation of 0.0025, so that
  // 0.0125 is five of them.
  const std::vector<float> logits = {static_cast<float>(std::log(2.0)), 0, 0};
  for (const double temperature : {1.0, 2.0}) {
    const double first = std::pow(2.0, 1 / temperature), share = first / (first + 2);
    std::vector<double> counts(3);
    for (const auto id : draw({temperature, 1, 3}, logits, 40000)) counts[static_cast<std::size_t>(id)] += 1.0 / 40000;
    CHECK(counts[0] == Approx(share).margin(0.0125));
    CHECK(counts[1] == Approx((1 - share) / 2).margin(0.0125));
  }
}

TEST_CASE("top-p takes as few of the likeliest tokens as have that probability", "[sampler]") {
  // 1/2, 1/4, 1/8, 1/8: the first alone has 0.5; 0.6 needs two; of the equal last ones the lower id comes first.
  std::vector<float> logits;
  for (const double p : {0.125, 0.5, 0.125, 0.25}) logits.push_back(static_cast<float>(std::log(p)));
  const auto seen = [&](double top_p) {
    std::vector<bool> ids(4);
    for (const auto id : draw({1, top_p, 1}, logits, 2000)) ids[static_cast<std::size_t>(id)] = true;
    return ids;
  };
  CHECK(seen(0.4) == std::vector<bool>{false, true, false, false});
  CHECK(seen(0.6) == std::vector<bool>{false, true, false, true});
  CHECK(seen(0.8) == std::vector<bool>{true, true, false, true});
  CHECK(seen(1) == std::vector<bool>{true, true, true, true});
}

TEST_CASE("what is no number is refused by its token, what is no option by its value", "[sampler]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(error_of([&] {
          Sampler({}).sample(std::vector<float>{0, nan});
        }) == "the logit of token 1 is NaN; the model computed no number");
  CHECK(error_of([&] {
          Sampler({1, 0.9, 1}).sample(std::vector<float>{k_infinity, 0});
        }) == "the logit of token 0 is infinite; the model computed no number");
  CHECK(error_of([&] { Sampler({}).sample(std::vector<float>{-k_infinity}); }) != "");
  CHECK(error_of([&] { Sampler({-1, 1, 1}); }) == "a temperature of -1; give 0 (the likeliest token) or more");
  CHECK(error_of([&] { Sampler({nan, 1, 1}); }) != "");
  CHECK(error_of([&] { Sampler({1, 0, 1}); }) == "a top-p of 0; give more than 0 and at most 1");
  CHECK(error_of([&] { Sampler({1, 1.5, 1}); }) != "");
}
