// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>
#include <string>

#include "isa/checker.h"
#include "isa/printer.h"
#include "kernels/library.h"

namespace mtsim::kernels {

TEST_CASE("every embedded microkernel assembles, checks clean and has a timing that does not depend on data",
          "[library]") {
  for (const std::string_view name : names()) {
    INFO(name);
    const isa::Program& kernel = program(name);
    CHECK(kernel.name == name);
    for (const isa::Diagnostic& finding : isa::check(kernel, {})) {
      if (finding.severity != isa::Severity::note) FAIL_CHECK(finding.str());
    }
    std::string why;
    CHECK(isa::timing_is_static(kernel, &why));
    CHECK(why == "");
  }
}

TEST_CASE("the microkernels use only packet shapes that published kernels show", "[library]") {
  for (const std::string_view name : names()) {
    for (const std::string& shape : isa::assumed_shapes(program(name))) FAIL_CHECK(name << ": " << shape);
  }
}

TEST_CASE("a microkernel's parameters are its register contract, in the order of a call's arguments", "[library]") {
  const isa::Program& kernel = program("gemm_f32_6x128");
  std::string contract;
  for (const isa::Parameter& parameter : kernel.parameters)
    contract += parameter.name + "=" + parameter.reg.str() + " ";
  CHECK(contract == "x=R10 w=R12 y=R14 k=R16 x_pitch=R18 w_pitch=R20 y_pitch=R22 ");
}

TEST_CASE("an unknown microkernel is refused with the known ones and the nearest name", "[library]") {
  CHECK_THROWS_AS(program("gemm_f32_6x182"), KernelError);
  CHECK_THROWS_WITH(program("gemm_f32_6x182"), Catch::Contains("no microkernel 'gemm_f32_6x182'") &&
                                                   Catch::Contains("did you mean 'gemm_f32_6x128'") &&
                                                   Catch::Contains("zero_am"));
}

TEST_CASE("a program is assembled once and its source stays readable", "[library]") {
  CHECK(&program("zero_am") == &program("zero_am"));
  CHECK(source("zero_am").find("SPDX-License-Identifier") != std::string_view::npos);
}

}  // namespace mtsim::kernels
