// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>

#include "models/checkpoint.h"
#include "models/error.h"
#include "models/tokenizer.h"
#include "runtime/backend/backend.h"
#include "runtime/backend/reference_backend.h"
#include "runtime/comm/mpirun.h"
#include "runtime/generation.h"
#include "scenarios/cli.h"
#include "scenarios/error.h"
#include "scenarios/files.h"
#include "scenarios/generate/generate_report.h"
#include "scenarios/generate/simulated_model.h"
#include "scenarios/progress.h"
#include "scenarios/serving/plan_file.h"
#include "scenarios/watch.h"
#include "sim/config/output_file.h"

namespace mtsim::scenarios {

namespace {

constexpr std::string_view k_model_help =
    "A Hugging Face folder (config.json, *.safetensors, tokenizer.model), a .gguf, a llama2.c .bin, or for timing a "
    "config.json or the name of a shipped configuration";

struct GenerateOptions {
  std::string model;
  std::string prompt, prompt_ids, tokenizer;
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 64;
  models::SamplerOptions sampler;
  std::string backend = "simulated", dtype = "f16", plan = "a2", kv = "reserve";
  std::int64_t layers = -1;
  std::string logits;
  bool stats = false, no_memo = false;
  CLI::App* app = nullptr;
  WatchOptions watch;
};

enum class BackendKind : std::uint8_t { reference, simulated, timing };

BackendKind parse_backend(const std::string& word) {
  if (word == "reference") return BackendKind::reference;
  if (word == "simulated") return BackendKind::simulated;
  if (word == "timing") return BackendKind::timing;
  throw UsageError(fmt::format("--backend '{}': reference, simulated or timing", word));
}

/// Whole numbers between blanks, commas and newlines.
std::vector<std::int64_t> read_ids(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<std::int64_t> ids;
  int line = 1;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '\n') ++line;
    if (std::string_view(" \t\r\n,").find(text[at]) != std::string_view::npos) {
      ++at;
      continue;
    }
    std::int64_t id = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), id);
    const auto stop = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || id < 0 ||
        (stop < text.size() && std::string_view(" \t\r\n,").find(text[stop]) == std::string_view::npos))
      throw UsageError(
          fmt::format("{}:{}: '{}' is no token id; whole numbers from 0 on, between blanks or commas", path, line,
                      text.substr(at, std::min<std::size_t>(20, text.find_first_of(" \t\r\n,", at) - at))));
    ids.push_back(id);
    at = stop;
  }
  return ids;
}

/// Raw FP32, step after step.
class LogitsFile {
 public:
  explicit LogitsFile(const std::string& path) {
    if (!path.empty()) m_file.emplace(path, "--logits");
  }
  void write(std::span<const float> logits) {
    if (m_file) m_file->write({reinterpret_cast<const char*>(logits.data()), logits.size_bytes()});
  }
  void finish() {
    if (m_file) m_file->commit();
  }

 private:
  std::optional<sim::OutputFile> m_file;
};

/// A model's files, as far as they are needed.
struct Model {
  models::LlamaConfig config;
  std::optional<models::Checkpoint> checkpoint;
  std::optional<models::Tokenizer> tokenizer;
};

Model open_model(const GenerateOptions& options, BackendKind backend) {
  Model model;
  if (backend == BackendKind::timing) {
    model.config = models::load_config(options.model);
  } else {
    model.checkpoint.emplace(models::Checkpoint::open(options.model));
    model.config = model.checkpoint->config();
  }
  const std::string& tokenizer = options.tokenizer.empty() ? options.model : options.tokenizer;
  const bool has_text = options.prompt_ids.empty() && options.prompt_tokens == 0;
  if (has_text || !options.tokenizer.empty()) {
    model.tokenizer.emplace(models::Tokenizer::load(tokenizer));
  } else if (backend != BackendKind::timing) {
    try {  // only to show what the ids say
      model.tokenizer.emplace(models::Tokenizer::load(tokenizer));
    } catch (const models::ModelError& error) {
      std::fputs(fmt::format("mtsim: ids only, no text: {}\n", error.what()).c_str(), stderr);
    }
  }
  return model;
}

std::vector<std::int64_t> prompt_of(const GenerateOptions& options, const Model& model, BackendKind backend) {
  const int given = static_cast<int>(!options.prompt.empty()) + static_cast<int>(!options.prompt_ids.empty()) +
                    static_cast<int>(options.prompt_tokens > 0);
  if (given != 1) throw UsageError("give one of --prompt, --prompt-ids and, for timing, --prompt-tokens");
  if (options.prompt_tokens > model.config.max_positions) {
    throw UsageError(fmt::format("--prompt-tokens {}: the context of {} holds {}", options.prompt_tokens,
                                 model.config.name, model.config.max_positions));
  }
  if (options.prompt_tokens > 0) {
    if (backend != BackendKind::timing)
      throw UsageError("--prompt-tokens has no tokens to compute with; it is for --backend timing");
    return std::vector<std::int64_t>(static_cast<std::size_t>(options.prompt_tokens));
  }
  if (!options.prompt_ids.empty()) return read_ids(options.prompt_ids);
  return model.tokenizer->encode(options.prompt);
}

/// Text to the terminal as it comes.
class Printer {
 public:
  Printer(const std::optional<models::Tokenizer>& tokenizer, bool quiet) : m_quiet(quiet) {
    if (tokenizer) m_stream.emplace(*tokenizer);
  }
  void push(std::int64_t id) {
    if (m_stream) put(m_stream->push(id));
  }
  void finish() {
    if (!m_stream) return;
    put(m_stream->finish());
    if (!m_quiet) put("\n");
  }
  /// All that was said.
  const std::string& text() const { return m_text; }

 private:
  void put(const std::string& piece) {
    if (!m_quiet) {
      std::fwrite(piece.data(), 1, piece.size(), stdout);
      std::fflush(stdout);
    }
    m_text += piece;
  }

  bool m_quiet;
  std::optional<models::TextStream> m_stream;
  std::string m_text;
};

/// The same places again, in a later launch, are one finding more often.
void add_once(std::vector<sim::Finding>& findings, const sim::Finding& finding) {
  const auto same = [&](const sim::Finding& known) {
    return known.kind == finding.kind &&
           std::equal(known.ends.begin(), known.ends.end(), finding.ends.begin(), finding.ends.end(),
                      [](const sim::FindingEnd& a, const sim::FindingEnd& b) {
                        return a.what == b.what && a.file == b.file && a.line == b.line;
                      });
  };
  const auto known = std::find_if(findings.begin(), findings.end(), same);
  if (known == findings.end())
    findings.push_back(finding);
  else
    known->count += finding.count;
}

/// The reference computes all layers in FP32, on no machine.
void refuse_cluster_options(const CLI::App& app) {
  for (const char* name : {"--dtype", "--plan", "--kv", "--layers", "--no-memo", "--no-hazards", "--suppress",
                           "--trace", "--trace-window", "--dram-trace", "--machine", "--set"}) {
    if (app.get_option(name)->count() > 0 &&
        !(std::string_view(name) == "--dtype" && app.get_option(name)->as<std::string>() == "f32"))
      throw UsageError(fmt::format("{} is for a cluster; the reference backend has none", name));
  }
}

/// Findings and notes of all launches, those the user has reviewed apart.
sim::LaunchResult verdict(const runtime::Generation& generation, Watch* watch) {
  sim::LaunchResult all;
  for (const auto& step : generation.steps) {
    for (const sim::Finding& finding : step.result.findings) add_once(all.findings, finding);
    for (const sim::Finding& note : step.result.notes) add_once(all.notes, note);
  }
  if (watch != nullptr) watch->review(all);
  return all;
}

int finish(const runtime::Generation& generation, const sim::LaunchResult& launches) {
  if (generation.stop == runtime::StopReason::failure) throw ProgramFailed(generation.failure);
  return launches.findings.empty() ? k_exit_done : k_exit_failed;
}

SimulatedOptions simulated_options(const GenerateOptions& options, const Model& model, kernels::DType dtype,
                                   Watch& watch, const sim::Machine& machine, const std::vector<std::int64_t>& prompt) {
  const runtime::InferencePlan plan = inference_plan(options.plan);
  SimulatedOptions result;
  result.cluster.depth = options.backend == "timing" ? sim::Depth::timing : sim::Depth::functional;
  result.cluster.memo = !options.no_memo;
  result.cluster.hazards = watch.hazards();
  result.cluster.observer = watch.observer();
  result.backend.dtype = dtype;
  result.backend.plan = plan.execution;
  result.backend.kv = runtime::parse_kv_options(options.kv);
  result.backend.kv.sequences = 1;
  result.backend.layers = options.layers;
  result.backend.longest = runtime::longest_context(model.config, std::ssize(prompt), options.tokens);
  result.parallelism = plan.parallelism;
  const auto& s = options.sampler;
  result.inputs = {{"machine", fmt::format("{:016x}", machine.fingerprint())},
                   {"model", model.config.name},
                   {"weights", model.checkpoint ? identity_of(*model.checkpoint) : "none"},
                   {"prompt", fmt::format("{}", fmt::join(prompt, " "))},
                   {"request", fmt::format("{} tokens, {}, {}, plan {}, KV cache {}, temperature {}, top-p {}, seed {}",
                                           options.tokens, options.backend, to_string(dtype),
                                           plan.execution.name + "," + plan.parallelism.str(), options.kv,
                                           s.temperature, s.top_p, s.seed)}};
  return result;
}

int generate_command(const GenerateOptions& options, const CommonOptions& common) {
  const BackendKind kind = parse_backend(options.backend);
  const auto dtype = kernels::parse_dtype(options.dtype);
  if (!dtype) throw UsageError(fmt::format("--dtype '{}': f32 or f16", options.dtype));
  const bool has_cluster = kind != BackendKind::reference;
  if (!has_cluster) refuse_cluster_options(*options.app);
  if (kind == BackendKind::timing && !options.logits.empty())
    throw UsageError("--logits: timing has no values; use --backend simulated");
  Model model = open_model(options, kind);
  const std::vector<std::int64_t> prompt = prompt_of(options, model, kind);
  runtime::check_prompt(model.config, prompt);  // before weights are read and text is shown
  static_cast<void>(models::Sampler(options.sampler));
  const bool leads = runtime::mpirun::rank() == 0;  // and speaks for all ranks
  LogitsFile logits(leads ? options.logits : "");

  std::optional<sim::Machine> machine;
  std::optional<Watch> watch;
  std::optional<SimulatedModel> simulated;
  std::unique_ptr<runtime::Backend> reference;
  GenerateRequest request{options.model, options.backend, options.plan, options.kv,
                          has_cluster ? *dtype : kernels::DType::f32};
  request.sampler = options.sampler;
  request.has_ids = options.prompt_tokens == 0;
  request.prompt_tokens = std::ssize(prompt);
  request.layers = model.config.layers;
  if (has_cluster) {
    machine.emplace(load_machine(common));
    watch.emplace(options.watch, machine->config());
    const SimulatedOptions its = simulated_options(options, model, *dtype, *watch, *machine, prompt);
    Progress progress("weights of " + model.config.name);
    simulated.emplace(machine->config(), model.config, kind == BackendKind::timing ? nullptr : &*model.checkpoint, its);
    request.layers = simulated->layers();
    request.clusters = simulated->clusters();
    request.weight_bytes = static_cast<double>(simulated->weight_bytes());
    request.cache_bytes = simulated->cache_bytes();
    request.clock_hz = simulated->backend().clock_hz();
  } else {
    reference = std::make_unique<runtime::ReferenceBackend>(*model.checkpoint);
  }
  runtime::Backend& backend = simulated ? simulated->backend() : *reference;

  Printer printer(model.tokenizer, common.json == "-" || !leads);
  if (backend.has_values()) {
    for (const std::int64_t id : prompt) printer.push(id);
  }
  runtime::Generation generation;
  {
    std::optional<Progress> progress;  // the text shows life otherwise
    if (!backend.has_values() && leads) progress.emplace(model.config.name, options.tokens);
    generation = runtime::generate(backend, prompt, {options.tokens, options.sampler},
                                   [&](std::span<const float> values, std::span<const std::int64_t> token) {
                                     logits.write(values);
                                     for (const std::int64_t id : token) printer.push(id);
                                     if (progress) progress->step();
                                   });
  }
  printer.finish();
  logits.finish();
  const sim::LaunchResult launches = verdict(generation, watch ? &*watch : nullptr);
  std::string text = findings_text(launches);
  if (options.stats || !backend.has_values()) text += generate_stats_text(request, generation);
  if (simulated && backend.has_values()) request.work = simulated->work();
  text += work_text(request.work);
  if (!leads) return finish(generation, launches);
  Json json = generate_json(request, generation, printer.text(), options.stats, machine ? &*machine : nullptr);
  if (!launches.findings.empty()) json["findings"] = findings_json(launches.findings);
  if (!launches.suppressed.empty()) json["suppressed"] = findings_json(launches.suppressed);
  emit(common, json, text);
  if (watch) watch->finish();
  if (generation.stop == runtime::StopReason::context) {
    std::fputs(fmt::format("mtsim: stopped behind {} of {} tokens: the context of {} is full\n", generation.generated,
                           options.tokens, model.config.max_positions)
                   .c_str(),
               stderr);
  }
  return finish(generation, launches);
}

}  // namespace

Command add_generate(CLI::App& app, CommonOptions& common) {
  auto options = std::make_shared<GenerateOptions>();
  CLI::App* sub = app.add_subcommand("generate", "Text from a Llama-family model, every operator as microcode");
  options->app = sub;
  sub->add_option("--model", options->model, std::string(k_model_help))->required();
  sub->add_option("--prompt", options->prompt, "Text to go on with");
  sub->add_option("--prompt-ids", options->prompt_ids, "A file of token ids instead");
  sub->add_option("--prompt-tokens", options->prompt_tokens, "Timing: a prompt of so many tokens instead")
      ->check(whole_number(1));
  sub->add_option("--tokenizer", options->tokenizer, "A SentencePiece .model, when it is not beside the weights");
  sub->add_option("--tokens", options->tokens, "To generate, at most (default 64)")->check(whole_number(1));
  sub->add_option("--temperature", options->sampler.temperature, "0, the default: the likeliest token, always");
  sub->add_option("--top-p", options->sampler.top_p,
                  "Sample from the likeliest tokens of this probability (default 1)");
  sub->add_option("--seed", options->sampler.seed, "Of the sampler (default 1)")->check(whole_number(0));
  sub->add_option("--backend", options->backend,
                  "simulated (default), timing (no values; needs no weights) or reference (plain C++, no time)");
  sub->add_option("--dtype", options->dtype,
                  "f16 (default) or f32: of weights, activations with the residual stream, and cache");
  sub->add_option(
      "--plan", options->plan,
      "a0, a1 or a2 (default) of Table VII: naive operators, the library, fused. With tp=N and pp=N over more "
      "clusters: a2,tp=2,pp=2; or FILE.yaml of mtsim plan");
  sub->add_option("--kv", options->kv, "reserve (default), paged or paged(BLOCK)");
  sub->add_option("--layers", options->layers, "The first so many only")->check(whole_number(1));
  sub->add_option("--logits", options->logits, "Raw FP32 logits of each step to this file");
  sub->add_flag("--stats", options->stats, "Where the simulated time goes, by operator");
  sub->add_flag("--no-memo", options->no_memo, "Timing: profile every microkernel call anew and keep nothing on disk");
  add_hazard_options(*sub, options->watch);
  add_trace_options(*sub, options->watch);
  add_json_option(*sub, common);
  add_machine_options(*sub, common);
  sub->footer(
      "\nExit status 1 after a fault or a DMA finding."
      "\n  mtsim generate --model stories260K.gguf --prompt 'Once upon a time' --dtype f32 --stats"
      "\n  mpirun -n 2 mtsim generate --model stories260K.gguf --prompt 'Once upon a time' --plan tp=2,pp=2"
      "\n  mtsim generate --model Llama-2-7B --backend timing --prompt-tokens 512 --tokens 2");
  return {sub, [options, &common] { return generate_command(*options, common); }};
}

}  // namespace mtsim::scenarios
