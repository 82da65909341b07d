// SPDX-License-Identifier: Apache-2.0
// A SentencePiece model as the library reads it: a protocol buffer message (sentencepiece_model.proto), of which only
// these fields are written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mtsim::models {

/// The numbers the message gives its types; GGUF has the same.
enum class PieceType : std::uint8_t { normal = 1, unknown, control, user_defined, unused, byte };

struct Piece {
  std::string text;  // spaces as U+2581
  float score = 0;   // the higher, the sooner two neighbours become this piece
  PieceType type = PieceType::normal;
};

struct SentencePieceModel {
  std::vector<Piece> pieces;  // by id
  std::string unknown_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>";
  bool space_in_front = true;  // a text begins as if behind a space
};

/// The bytes of a tokenizer.model: byte-pair merges by score, bytes for what has no piece, text as it is (no
/// normalisation).
std::string serialize(const SentencePieceModel& model);

}  // namespace mtsim::models
