// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <csignal>
#include <memory>

#include "isa/file_use.h"
#include "models/random_model.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/progress.h"

namespace mtsim::scenarios {

namespace {

constexpr std::uint64_t k_progress_bytes = 1 << 20;

volatile std::sig_atomic_t s_signal = 0;
extern "C" void note_signal(int signal) { s_signal = signal; }

/// Thrown out of the writing, which removes what it has written.
struct Interrupted {};

/// While it lives, a signal waits until it is asked for; then the process ends by it as it would have without.
class SignalsNoted {
 public:
  SignalsNoted() {
    for (std::size_t i = 0; i < std::size(k_signals); ++i) {
      ::sigaction(k_signals[i], nullptr, &m_old[i]);
      struct sigaction action {};
      action.sa_handler = note_signal;
      if (m_old[i].sa_handler != SIG_IGN) ::sigaction(k_signals[i], &action, nullptr);
    }
  }
  ~SignalsNoted() {
    for (std::size_t i = 0; i < std::size(k_signals); ++i) ::sigaction(k_signals[i], &m_old[i], nullptr);
    if (s_signal != 0) ::raise(s_signal);
  }
  SignalsNoted(const SignalsNoted&) = delete;
  SignalsNoted& operator=(const SignalsNoted&) = delete;

 private:
  static constexpr int k_signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction m_old[std::size(k_signals)];
};

struct MakeModelOptions {
  std::string folder;
  models::RandomModel model;
  std::string dtype = "bf16";
  bool force = false;
};

models::ElementType element_type(const std::string& dtype) {
  return dtype == "f32"   ? models::ElementType::f32
         : dtype == "f16" ? models::ElementType::f16
                          : models::ElementType::bf16;
}

models::WrittenModel write(const MakeModelOptions& options) {
  const SignalsNoted signals;
  try {
    const auto steps = [](std::uint64_t bytes) { return static_cast<std::int64_t>(bytes / k_progress_bytes); };
    const std::uint64_t all = static_cast<std::uint64_t>(options.model.config.parameters()) *
                              static_cast<std::uint64_t>(models::row_bytes(options.model.type, 1));
    Progress progress("make-model", steps(all));
    std::int64_t done = 0;
    return models::write_random_model(options.folder, options.model, options.force,
                                      [&](std::uint64_t bytes, std::uint64_t) {
                                        if (s_signal != 0) throw Interrupted();
                                        for (; done < steps(bytes); ++done) progress.step();
                                      });
  } catch (const Interrupted&) {
    return {};  // the signal, raised again, ends the process
  }
}

int make_model_command(MakeModelOptions& options, const CommonOptions& common) {
  auto& config = options.model.config;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.head_dim == 0) {
    if (config.hidden_size % config.heads != 0)
      throw UsageError(
          fmt::format("--heads {} does not divide --hidden {}; give --head-dim too", config.heads, config.hidden_size));
    config.head_dim = config.hidden_size / config.heads;
  }
  options.model.type = element_type(options.dtype);
  config.check("make-model");
  isa::FileUse::writes(options.folder, "make-model");
  const auto written = write(options);
  const Json json = {{"folder", options.folder},
                     {"files", written.files},
                     {"parameters", config.parameters()},
                     {"weight_bytes", written.weight_bytes},
                     {"dtype", options.dtype},
                     {"seed", options.model.seed}};
  std::string text = fmt::format("{}: {} parameters, {} bytes of {} weights\n", options.folder, config.parameters(),
                                 written.weight_bytes, models::to_string(options.model.type));
  for (const auto& file : written.files) text += fmt::format("  {}\n", file);
  emit(common, json, text);
  return k_exit_done;
}

}  // namespace

Command add_make_model(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<MakeModelOptions>();
  auto& config = options->model.config;
  config.rms_norm_eps = 1e-5;
  config.rope_theta = 10000;
  CLI::App* sub =
      app.add_subcommand("make-model", "Write a random Llama of any shape, with a tokenizer, for tests and timing");
  sub->add_option("DIR", options->folder, "Folder to make; a Hugging Face checkpoint")->required();
  const auto size = [&](const char* name, std::int64_t& value, const char* help, std::int64_t fallback) {
    value = fallback;
    auto* option = sub->add_option(name, value, help)->check(whole_number(1))->type_name("N");
    if (fallback != 0) option->capture_default_str();
  };
  size("--hidden", config.hidden_size, "Width of the residual stream", 64);
  size("--layers", config.layers, "Decoder layers", 2);
  size("--heads", config.heads, "Query heads", 4);
  size("--kv-heads", config.kv_heads, "Key and value heads, a divisor of --heads (default: as many)", 0);
  size("--head-dim", config.head_dim, "Width of a head, even (default: --hidden / --heads)", 0);
  size("--intermediate", config.intermediate_size, "Width of the feed-forward", 172);
  size("--vocab", config.vocab_size, "Tokens, at least 260: 3 special ones, 256 bytes, the space", 512);
  size("--positions", config.max_positions, "Longest context", 512);
  sub->add_option("--dtype", options->dtype, "Type of the weights")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
  sub->add_option("--seed", options->model.seed, "The same seed gives the same bytes on every host")
      ->check(whole_number(0))
      ->capture_default_str();
  sub->add_option("--shard-bytes", options->model.shard_bytes,
                  "A new file before one would hold more weights (default: one file)")
      ->check(whole_number(1))
      ->type_name("N");
  sub->add_flag("--tied", config.tie_word_embeddings, "The head is the embedding");
  sub->add_flag("--qkv-bias", config.qkv_bias, "Biases on Q, K and V, as Qwen2 has them");
  sub->add_flag("--force", options->force, "Replace a model that is there");
  add_json_option(*sub, common);
  sub->footer(R"(
Weights are written as they are made: a model of any size takes little memory. DIR appears when it is complete.
  mtsim make-model tiny --hidden 64 --layers 2 --heads 4 --kv-heads 2 --dtype f16)");
  return {sub, [options, &common] { return make_model_command(*options, common); }};
}

}  // namespace mtsim::scenarios
