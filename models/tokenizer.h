// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, by the sentencepiece library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::models {

class GgufFile;

class Tokenizer {
 public:
  /// From a SentencePiece .model, the folder it is in as tokenizer.model (a llama2.c .bin: beside it), or a .gguf whose
  /// vocabulary is one of SentencePiece's. Throws ModelError, also for a folder that has only a tokenizer.json.
  static Tokenizer load(const std::string& path);
  /// The bytes of a .model; `file` is for the messages.
  static Tokenizer parse(std::string_view model, const std::string& file);
  static Tokenizer from_gguf(const GgufFile& gguf);

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  std::int64_t size() const;  // ids are below it
  std::optional<std::int64_t> bos_id() const;
  std::optional<std::int64_t> eos_id() const;

  /// BOS, where the vocabulary has one, the model wants it (`tokenizer.ggml.add_bos_token`) and `with_bos`, then the
  /// text. Throws ModelError for what is not UTF-8.
  std::vector<std::int64_t> encode(std::string_view text, bool with_bos = true) const;
  /// A whole text at once.
  std::string decode(std::span<const std::int64_t> ids) const;

 private:
  friend class TextStream;
  struct Implementation;
  explicit Tokenizer(std::unique_ptr<Implementation> implementation);

  std::unique_ptr<Implementation> m_implementation;
};

/// Ids to text as they come. What is given out is UTF-8 and final: bytes of a character that is not complete yet wait
/// for the next id. All pieces together are decode() of all ids.
class TextStream {
 public:
  /// `tokenizer` must outlive this.
  explicit TextStream(const Tokenizer& tokenizer) : m_tokenizer(&tokenizer) {}

  /// What can be said with this id. An id that is outside the vocabulary shows as the unknown one does.
  std::string push(std::int64_t id);
  /// What is left when no more ids come; bytes that are no character become U+FFFD.
  std::string finish();

 private:
  std::string take_complete(bool all);

  const Tokenizer* m_tokenizer;
  std::string m_bytes;  // of byte tokens, not yet a character
  bool m_at_start = true;
};

}  // namespace mtsim::models
