// SPDX-License-Identifier: Apache-2.0
#include "models/tokenizer.h"

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "models/error.h"
#include "models/gguf.h"
#include "models/mapped_file.h"
#include "models/sentencepiece_model.h"
#include "models/tensor.h"
#include "models/utf8.h"

namespace mtsim::models {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_space = "\u2581";
constexpr std::string_view k_replacement = "\uFFFD";
constexpr std::string_view k_unknown = " \u2047 ";  // what the library prints for an unknown piece

/// "<0x0A>" -> 10
unsigned char byte_of(std::string_view piece) {
  unsigned value = 0;
  std::from_chars(piece.data() + 3, piece.data() + piece.size() - 1, value, 16);
  return static_cast<unsigned char>(value);
}

std::string with_spaces(std::string_view piece) {
  std::string text;
  for (std::size_t at = 0; at < piece.size();) {
    const bool is_space = piece.substr(at).starts_with(k_space);
    text += is_space ? ' ' : piece[at];
    at += is_space ? k_space.size() : 1;
  }
  return text;
}

/// A vocabulary entry of GGUF, checked.
Piece piece_of(const GgufFile& gguf, std::size_t id, std::string_view text, float score, std::int64_t type) {
  const auto refuse = [&](const std::string& key, const std::string& what) {
    gguf.refuse(key, fmt::format("token {} {}", id, what));
  };
  if (text.empty()) refuse("tokenizer.ggml.tokens", "is empty");
  if (!is_utf8(text)) refuse("tokenizer.ggml.tokens", fmt::format("is '{}', which is not UTF-8", printable(text)));
  if (!(score > -1e30F && score < 1e30F)) refuse("tokenizer.ggml.scores", fmt::format("has score {}", score));
  if (type < 1 || type > 6) refuse("tokenizer.ggml.token_type", fmt::format("has type {}; there are 1 to 6", type));
  return {std::string(text), score, static_cast<PieceType>(type)};
}

/// The name of a special token, which the library finds by it.
void name_special(const GgufFile& gguf, const std::string& key, std::vector<Piece>& pieces, PieceType type,
                  std::string& name) {
  const auto id = gguf.integer(key);
  if (!id) return;
  if (*id < 0 || *id >= static_cast<std::int64_t>(pieces.size()))
    gguf.refuse(key, fmt::format("is {}; the vocabulary has {} tokens", *id, pieces.size()));
  Piece& piece = pieces[static_cast<std::size_t>(*id)];
  piece.type = type;
  name = piece.text;
}

}  // namespace

struct Tokenizer::Implementation {
  sentencepiece::SentencePieceProcessor processor;
  std::string file;
  bool drops_first_space = false;  // a text begins as if behind a space, which is not part of it
  bool drops_all_first_spaces = false;
  bool adds_bos = true;  // as the model was trained

  void load(std::string_view model, std::string name) {
    file = std::move(name);
    const auto status = processor.LoadFromSerializedProto(model);
    if (!status.ok())
      throw ModelError(fmt::format("{}: is no SentencePiece model: {}", file, printable(status.ToString())));
    // The library keeps its normaliser to itself, so it is asked.
    const int space = processor.PieceToId(std::string(k_space));
    if (processor.IsUnknown(space)) return;
    drops_first_space = processor.DecodeIds({space}).empty();
    drops_all_first_spaces = drops_first_space && processor.DecodeIds({space, space}).empty();
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Implementation> implementation) : m_implementation(std::move(implementation)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::parse(std::string_view model, const std::string& file) {
  auto implementation = std::make_unique<Implementation>();
  implementation->load(model, file);
  return Tokenizer(std::move(implementation));
}

Tokenizer Tokenizer::from_gguf(const GgufFile& gguf) {
  const auto kind = gguf.string("tokenizer.ggml.model");
  if (!kind) gguf.refuse("tokenizer.ggml.model", "is missing; give token ids with --prompt-ids");
  if (*kind != "llama")
    gguf.refuse("tokenizer.ggml.model", fmt::format("is '{}'; only SentencePiece vocabularies ('llama') are read. Give "
                                                    "a .model with --tokenizer or token ids with --prompt-ids",
                                                    printable(*kind)));
  const auto tokens = gguf.strings("tokenizer.ggml.tokens");
  const auto scores = gguf.floats("tokenizer.ggml.scores");
  const auto types = gguf.integers("tokenizer.ggml.token_type");
  if (!tokens || tokens->empty()) gguf.refuse("tokenizer.ggml.tokens", "is missing or empty");
  if (!scores || scores->size() != tokens->size())
    gguf.refuse("tokenizer.ggml.scores", "does not have one score a token");
  if (types && types->size() != tokens->size())
    gguf.refuse("tokenizer.ggml.token_type", "does not have one type a token");
  SentencePieceModel model;
  for (std::size_t id = 0; id < tokens->size(); ++id)
    model.pieces.push_back(piece_of(gguf, id, (*tokens)[id], (*scores)[id], types ? (*types)[id] : 1));
  name_special(gguf, "tokenizer.ggml.unknown_token_id", model.pieces, PieceType::unknown, model.unknown_piece);
  name_special(gguf, "tokenizer.ggml.bos_token_id", model.pieces, PieceType::control, model.bos_piece);
  name_special(gguf, "tokenizer.ggml.eos_token_id", model.pieces, PieceType::control, model.eos_piece);
  model.space_in_front = gguf.boolean("tokenizer.ggml.add_space_prefix").value_or(true);
  Tokenizer tokenizer = parse(serialize(model), gguf.file());
  tokenizer.m_implementation->adds_bos = gguf.boolean("tokenizer.ggml.add_bos_token").value_or(true);
  return tokenizer;
}

Tokenizer Tokenizer::load(const std::string& path) {
  std::error_code error;
  fs::path file = path;
  if (file.extension() == ".gguf") {
    const MappedFile mapped(path);
    return from_gguf(GgufFile(mapped.text(), path));
  }
  if (file.extension() == ".bin")
    file = file.parent_path() / "tokenizer.model";
  else if (fs::is_directory(file, error))
    file /= "tokenizer.model";
  if (!fs::exists(file, error)) {
    const bool has_json = fs::exists(fs::path(file).replace_filename("tokenizer.json"), error);
    throw ModelError(
        fmt::format("{}: is not there{}; give a SentencePiece .model with --tokenizer or token ids with --prompt-ids",
                    file.string(), has_json ? ", only a tokenizer.json, which is not read" : ""));
  }
  const MappedFile mapped(file.string());
  if (file.extension() == ".json")
    throw ModelError(fmt::format(
        "{}: is not read; give a SentencePiece .model with --tokenizer or token ids with --prompt-ids", file.string()));
  return parse(mapped.text(), file.string());
}

std::int64_t Tokenizer::size() const { return m_implementation->processor.GetPieceSize(); }

std::optional<std::int64_t> Tokenizer::bos_id() const {
  const int id = m_implementation->processor.bos_id();
  return id < 0 ? std::nullopt : std::optional<std::int64_t>(id);
}

std::optional<std::int64_t> Tokenizer::eos_id() const {
  const int id = m_implementation->processor.eos_id();
  return id < 0 ? std::nullopt : std::optional<std::int64_t>(id);
}

std::vector<std::int64_t> Tokenizer::encode(std::string_view text, bool with_bos) const {
  if (!is_utf8(text))
    throw ModelError(
        fmt::format("the text '{}' is not UTF-8 or has a zero byte; it cannot be tokenised", printable(text)));
  std::vector<int> ids;
  const auto status = m_implementation->processor.Encode(text, &ids);
  if (!status.ok())
    throw ModelError(fmt::format("{}: cannot tokenise the text: {}", m_implementation->file, status.ToString()));
  std::vector<std::int64_t> result(ids.begin(), ids.end());
  if (const auto bos = bos_id(); bos && with_bos && m_implementation->adds_bos) result.insert(result.begin(), *bos);
  return result;
}

std::string Tokenizer::decode(std::span<const std::int64_t> ids) const {
  TextStream stream(*this);
  std::string text;
  for (const std::int64_t id : ids) text += stream.push(id);
  return text + stream.finish();
}

std::string TextStream::push(std::int64_t id) {
  const auto& model = *m_tokenizer->m_implementation;
  const bool is_known = id >= 0 && id < m_tokenizer->size();
  if (is_known && model.processor.IsByte(static_cast<int>(id))) {
    m_bytes += static_cast<char>(byte_of(model.processor.IdToPiece(static_cast<int>(id))));
    m_at_start = false;
    return take_complete(false);
  }
  std::string text = take_complete(true);
  if (is_known && model.processor.IsControl(static_cast<int>(id))) return text;
  if (!is_known || model.processor.IsUnknown(static_cast<int>(id))) {
    m_at_start = false;
    return text.append(k_unknown);
  }
  std::string_view piece = model.processor.IdToPiece(static_cast<int>(id));
  const bool drops = m_at_start && model.drops_first_space && piece.starts_with(k_space);
  if (drops) piece.remove_prefix(k_space.size());
  // A lone first space that is dropped may leave the next piece at the start still.
  m_at_start = m_at_start && drops && piece.empty() && model.drops_all_first_spaces;
  return text + with_spaces(piece);
}

std::string TextStream::finish() { return take_complete(true); }

/// The characters in m_bytes, and what cannot become one as U+FFFD a byte; with `all` nothing waits.
std::string TextStream::take_complete(bool all) {
  std::string text;
  while (!m_bytes.empty()) {
    const std::size_t length = utf8_length(m_bytes);
    if (length == 0 && !all && is_utf8_beginning(m_bytes)) break;
    text += length == 0 ? k_replacement : std::string_view(m_bytes).substr(0, length);
    m_bytes.erase(0, length == 0 ? 1 : length);
  }
  return text;
}

}  // namespace mtsim::models
