// SPDX-License-Identifier: Apache-2.0
// `make bench`: how fast this host executes packets of the 6x128 FP32 kernel, values computed, beside its yardsticks.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "kernels/library.h"
#include "sim/core/executor.h"
#include "yardsticks.h"

namespace {

using namespace mtsim;

constexpr int k_rows = 6, k_columns = 128, k_depth = 1024;
constexpr double k_macs = static_cast<double>(k_rows) * k_columns * k_depth;

struct Operands {
  std::vector<float> x, w, y;
  Operands() : x(k_rows * k_depth), w(static_cast<std::size_t>(k_depth) * k_columns), y(k_rows * k_columns) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(-1, 1);
    for (auto* operand : {&x, &w}) {
      for (float& element : *operand) element = value(random);
    }
  }
};

void interpreter(benchmark::State& state, sim::HostLevel level) {
  const Operands operands;
  std::vector<std::byte> sm(65536), am(786432);
  std::memcpy(sm.data(), operands.x.data(), 4 * operands.x.size());
  const std::size_t y_address = 4 * operands.w.size() + 4096;  // behind the over-read of the last k-pair
  std::memcpy(am.data(), operands.w.data(), 4 * operands.w.size());
  const sim::DecodedProgram program(kernels::program("gemm_f32_6x128"), {});
  sim::Executor executor(sm, am, level);
  const std::map<std::string, std::uint64_t> arguments = {{"x", 0},
                                                          {"w", 0},
                                                          {"y", y_address},
                                                          {"k", k_depth},
                                                          {"x_pitch", 4 * k_depth},
                                                          {"w_pitch", 4 * k_columns},
                                                          {"y_pitch", 4 * k_columns}};
  for (const isa::Parameter& parameter : program.program().parameters) {
    executor.registers().r[parameter.reg.index] = arguments.at(parameter.name);
  }
  const sim::RegisterState start = executor.registers();
  std::int64_t packets = 0;
  for (auto _ : state) {
    executor.registers() = start;
    const sim::RunResult result = executor.run(program, {.entry = "accumulate"});
    if (result.status != sim::RunStatus::done) state.SkipWithError(result.fault.str().c_str());
    packets += result.packets;
  }
  state.counters["packets/s"] = benchmark::Counter(static_cast<double>(packets), benchmark::Counter::kIsRate);
  state.counters["MAC/s"] =
      benchmark::Counter(k_macs * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void bare_fma(benchmark::State& state) {
  if (!bench::host_has_avx2()) {
    state.SkipWithError("this host has no AVX2");
    return;
  }
  struct alignas(64) Registers {
    float value[64 * 32] = {};
  };
  const auto registers = std::make_unique<Registers>();
  for (auto _ : state) bench::bare_fma_steps(registers->value, k_depth);
  state.counters["MAC/s"] =
      benchmark::Counter(k_macs * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void openblas(benchmark::State& state) {
  Operands operands;
  for (auto _ : state) {
    bench::openblas_sgemm(k_rows, k_columns, k_depth, operands.x.data(), operands.w.data(), operands.y.data());
  }
  state.counters["MAC/s"] =
      benchmark::Counter(k_macs * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

// Prints as usual and keeps what the closing lines compare.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      if (run.error_occurred) continue;
      for (const auto& [name, counter] : run.counters) m_rates[run.run_name.function_name][name] = counter.value;
    }
  }
  double rate(const std::string& benchmark, const std::string& counter) const {
    const auto it = m_rates.find(benchmark);
    return it == m_rates.end() || !it->second.contains(counter) ? 0.0 : it->second.at(counter);
  }

 private:
  std::map<std::string, std::map<std::string, double>> m_rates;
};

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const auto levels = sim::supported_host_levels();
  for (const sim::HostLevel level : levels) {
    benchmark::RegisterBenchmark((std::string("interpreter_") + sim::to_string(level)).c_str(), interpreter, level);
  }
  benchmark::RegisterBenchmark("bare_avx2_fma", bare_fma);
  benchmark::RegisterBenchmark("openblas_sgemm", openblas);
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);

  const std::string best = std::string("interpreter_") + sim::to_string(levels.back());
  const double macs = reporter.rate(best, "MAC/s");
  fmt::print("\n6x128 FP32 kernel, K = {}, values computed, one host core\n", k_depth);
  fmt::print("  {:<22} {:8.1f} M packets/s  {:8.2f} GMAC/s\n", best, reporter.rate(best, "packets/s") / 1e6,
             macs / 1e9);
  for (const char* yardstick : {"bare_avx2_fma", "openblas_sgemm"}) {
    const double rate = reporter.rate(yardstick, "MAC/s");
    if (rate > 0)
      fmt::print("  {:<22} {:26.2f} GMAC/s   interpreter / yardstick = {:.2f}\n", yardstick, rate / 1e9, macs / rate);
  }
}
