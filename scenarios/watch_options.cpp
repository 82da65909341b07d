// SPDX-License-Identifier: Apache-2.0
#include "scenarios/cli.h"
#include "scenarios/watch.h"

namespace mtsim::scenarios {

void add_hazard_options(CLI::App& app, WatchOptions& options) {
  app.add_option("--suppress", options.suppress,
                 "Reviewed DMA findings, with reasons (YAML, see docs/kernel-writers.md)")
      ->type_name("FILE");
  app.add_flag("--no-hazards", options.no_hazards, "Do not look for DMA races: saves host time, finds nothing");
}

void add_trace_options(CLI::App& app, WatchOptions& options) {
  app.add_option("--trace", options.trace, "Write a trace for ui.perfetto.dev: cores, DMA channels, DDR and GSM")
      ->type_name("FILE");
  app.add_option(
         "--trace-window", options.trace_window,
         "Of the trace: FROM:TO in cycles, or 10us:20us, 10us:, :20us; packets too when it has at most 20000 cycles")
      ->type_name("FROM:TO");
  app.add_option("--dram-trace", options.dram_trace, "Write every transfer's request to the DDR, a line each (CSV)")
      ->type_name("FILE");
}

void add_mistake_option(CLI::App& app, WatchOptions& options) {
  app.add_option("--omit-wait", options.omit_wait,
                 "Leave out every core's N-th dma_wait, to see what the hazard monitor says of such a program")
      ->type_name("N")
      ->check(whole_number(1));
}

}  // namespace mtsim::scenarios
