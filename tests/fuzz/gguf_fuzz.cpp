// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file, behind its first eight bytes and as changes to a sound one: metadata, a configuration,
// tensors that lie in the file and a vocabulary, or a ModelError.
#include "models/gguf.h"
#include "models/tokenizer.h"
#include "tests/fuzz/patched.h"

namespace {

using namespace mtsim::models;

std::string text_of(std::string_view text) { return bytes_of(std::uint64_t{text.size()}) + std::string(text); }

/// A model of one layer with some of its tensors, and a vocabulary of five.
std::string sound_file() {
  std::string pairs, tensors;
  std::uint64_t count = 0, offset = 0, tensor_count = 0;
  const auto pair = [&](std::string_view key, std::uint32_t type, const std::string& value) {
    pairs += text_of(key) + bytes_of(type) + value;
    ++count;
  };
  const auto integer = [&](std::string_view key, std::uint32_t value) { pair(key, 4, bytes_of(value)); };
  const auto array = [](std::uint32_t type, std::uint64_t elements) { return bytes_of(type) + bytes_of(elements); };
  pair("general.architecture", 8, text_of("llama"));
  integer("llama.embedding_length", 32);
  integer("llama.block_count", 1);
  integer("llama.feed_forward_length", 32);
  integer("llama.attention.head_count", 4);
  integer("llama.context_length", 16);
  pair("llama.attention.layer_norm_rms_epsilon", 6, bytes_of(1e-5F));
  pair("tokenizer.ggml.model", 8, text_of("llama"));
  std::string tokens, scores, types;
  for (const char* token : {"<unk>", "<s>", "</s>", "\u2581", "a"}) {
    tokens += text_of(token);
    scores += bytes_of(-static_cast<float>(tokens.size()));
    types += bytes_of(std::int32_t{token[0] != '<' ? 1 : token[1] == 'u' ? 2 : 3});
  }
  pair("tokenizer.ggml.tokens", 9, array(8, 5) + tokens);
  pair("tokenizer.ggml.scores", 9, array(6, 5) + scores);
  pair("tokenizer.ggml.token_type", 9, array(5, 5) + types);
  integer("tokenizer.ggml.bos_token_id", 1);
  integer("tokenizer.ggml.eos_token_id", 2);
  const auto tensor = [&](std::string_view name, std::vector<std::uint64_t> shape, std::uint32_t type,
                          std::uint64_t bytes) {
    tensors += text_of(name) + bytes_of(static_cast<std::uint32_t>(shape.size()));
    for (const auto size : shape) tensors += bytes_of(size);
    tensors += bytes_of(type) + bytes_of(offset);
    offset += (bytes + 31) / 32 * 32;
    ++tensor_count;
  };
  tensor("token_embd.weight", {32, 5}, 8, 5 * 34);
  tensor("blk.0.attn_q.weight", {32, 32}, 1, 2 * 32 * 32);
  tensor("output_norm.weight", {32}, 0, 4 * 32);
  std::string file = "GGUF" + bytes_of(std::uint32_t{3}) + bytes_of(tensor_count) + bytes_of(count) + pairs + tensors;
  file.resize((file.size() + 31) / 32 * 32 + offset, '\0');
  return file;
}

void read(const std::string& bytes) {
  run([&] {
    const GgufFile file(bytes, "fuzz");
    run([&] { config_of(file).check("fuzz"); });
    run([&] {
      for (const StoredTensor& tensor : stored_tensors(file, bytes.size()))
        require(tensor.bytes <= bytes.size() && tensor.offset <= bytes.size() - tensor.bytes);
    });
    run([&] {
      const auto tokenizer = Tokenizer::from_gguf(file);
      require(tokenizer.size() > 0);
      tokenizer.decode(tokenizer.encode("a b\n"));
    });
    for (const auto& [key, value] : file.metadata()) {
      run([&] { file.integers(key); });
      run([&] { file.strings(key); });
      run([&] { file.floats(key); });
    }
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  static const std::string s_sound = sound_file();
  switch (data[0] % 4) {
    case 0: read(std::string(text)); break;
    case 1: read("GGUF" + bytes_of(std::uint32_t{3}) + std::string(text)); break;
    default: read(patched(s_sound, text)); break;
  }
  return 0;
}
