# SPDX-License-Identifier: Apache-2.0
# SystemC has no CMake package on Debian: one target carries what every translation unit that sees its headers needs.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(SYSTEMC QUIET IMPORTED_TARGET systemc)
endif()
add_library(mtsim_systemc INTERFACE)
add_library(mtsim::systemc ALIAS mtsim_systemc)
if(TARGET PkgConfig::SYSTEMC)
  target_link_libraries(mtsim_systemc INTERFACE PkgConfig::SYSTEMC)
else()
  find_path(SYSTEMC_INCLUDE_DIR systemc REQUIRED)
  find_library(SYSTEMC_LIBRARY systemc REQUIRED)
  target_include_directories(mtsim_systemc SYSTEM INTERFACE ${SYSTEMC_INCLUDE_DIR})
  target_link_libraries(mtsim_systemc INTERFACE ${SYSTEMC_LIBRARY})
endif()
# The library is built as C++17 and checks that its users are too; C++20 code links with this value everywhere.
target_compile_definitions(mtsim_systemc INTERFACE SC_CPLUSPLUS=201703L SC_INCLUDE_DYNAMIC_PROCESSES)

mtsim_library(sim
  accounting.cpp
  cluster.cpp
  core.cpp
  dma_engine.cpp
  dsp.cpp
  fabric.cpp
  hazard.cpp
  hazard_calls.cpp
  hazard_cores.cpp
  hazard_report.cpp
  hazard_values.cpp
  link.cpp
  memo.cpp
  memo_file.cpp
  memory.cpp
  memory_model.cpp
  never_written.cpp
  pointer.cpp
  rendezvous.cpp
  source.cpp
  suppression.cpp
  trace.cpp
  zone.cpp)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
target_link_libraries(mtsim_sim PUBLIC mtsim::core mtsim::config mtsim::systemc PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
mtsim_precompile(mtsim_sim <systemc>)
