// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace of requests, and as rows below a sound header: a workload whose requests can be served in order,
// or a RuntimeError that says where.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "runtime/error.h"
#include "runtime/serving/request.h"

namespace {

using namespace mtsim::runtime;

void require(bool condition) {
  if (!condition) std::abort();
}

void parse(std::string_view text, const TraceOptions& options) {
  try {
    double last = 0;
    std::int64_t id = 0;
    for (const Request& request : parse_trace(text, "fuzz.csv", options)) {
      require(request.id == id++ && request.prompt_tokens >= 1 && request.output_tokens >= 1);
      require(std::isfinite(request.arrival_s) && request.arrival_s >= last);
      last = request.arrival_s;
    }
    require(id > 0);
  } catch (const RuntimeError& error) {
    require(std::string_view(error.what()).find("fuzz.csv") != std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse(text, {});
  parse("TIMESTAMP,ContextTokens,GeneratedTokens\r\n" + std::string(text), {0, -1, 0.5});
  parse("prompt,\"time\",output\n1,2023-11-16 18:17:03.9799600,1\n" + std::string(text), {1, 5, 3});
  return 0;
}
