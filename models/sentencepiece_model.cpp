// SPDX-License-Identifier: Apache-2.0
#include "models/sentencepiece_model.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace mtsim::models {

namespace {

/// The wire format of protocol buffers.
class Message {
 public:
  void integer(std::uint32_t field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void number(std::uint32_t field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) m_bytes += static_cast<char>(bits >> shift);
  }
  void text(std::uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    m_bytes += value;
  }
  void message(std::uint32_t field, const Message& value) { text(field, value.m_bytes); }
  std::string take() { return std::move(m_bytes); }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) m_bytes += static_cast<char>(value | 0x80);
    m_bytes += static_cast<char>(value);
  }

  std::string m_bytes;
};

}  // namespace

std::string serialize(const SentencePieceModel& model) {
  Message file;
  for (const Piece& piece : model.pieces) {
    Message message;
    message.text(1, piece.text);
    message.number(2, piece.score);
    message.integer(3, static_cast<std::uint64_t>(piece.type));
    file.message(1, message);
  }
  const bool has_bytes = std::any_of(model.pieces.begin(), model.pieces.end(),
                                     [](const Piece& piece) { return piece.type == PieceType::byte; });
  const auto id_of = [&](const std::string& text) {  // -1, as 64 bits, where there is none
    const auto found =
        std::find_if(model.pieces.begin(), model.pieces.end(), [&](const Piece& piece) { return piece.text == text; });
    return found == model.pieces.end() ? ~std::uint64_t{0} : static_cast<std::uint64_t>(found - model.pieces.begin());
  };
  Message trainer;
  trainer.integer(3, 2);  // model_type: BPE
  trainer.integer(4, model.pieces.size());
  trainer.integer(35, has_bytes ? 1 : 0);
  trainer.integer(40, id_of(model.unknown_piece));
  trainer.integer(41, id_of(model.bos_piece));
  trainer.integer(42, id_of(model.eos_piece));
  trainer.text(45, model.unknown_piece);
  trainer.text(46, model.bos_piece);
  trainer.text(47, model.eos_piece);
  file.message(2, trainer);
  Message normalizer;
  normalizer.text(1, "identity");
  normalizer.integer(3, model.space_in_front ? 1 : 0);
  normalizer.integer(4, 0);  // remove_extra_whitespaces
  normalizer.integer(5, 1);  // escape_whitespaces
  file.message(3, normalizer);
  return file.take();
}

}  // namespace mtsim::models
