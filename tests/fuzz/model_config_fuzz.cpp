// SPDX-License-Identifier: Apache-2.0
// Any bytes as config.json, as a member of a sound one and as the header of a llama2.c file: a configuration whose
// numbers can be multiplied, or a ModelError.
#include "models/config.h"
#include "models/llama2c.h"
#include "tests/fuzz/patched.h"

namespace {

using namespace mtsim::models;

const std::string k_sound =
    R"({"model_type":"mistral","hidden_size":96,"intermediate_size":192,"num_hidden_layers":2,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,"vocab_size":112,"max_position_embeddings":64,"rms_norm_eps":1e-5,"rope_theta":1e4,)"
    R"("sliding_window":null,"bos_token_id":1,"eos_token_id":[2,3],"rope_parameters":{"rope_type":"default"})";

void use(const LlamaConfig& config) {
  config.check("fuzz");
  require(config.parameters() > 0 && config.kv_bytes_per_token(4) > 0);
  require(config.q_width() > 0 && config.queries_per_kv_head() > 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: run([&] { use(parse_hugging_face_config(text, "fuzz")); }); break;
    case 1: run([&] { use(parse_hugging_face_config(k_sound + "," + std::string(text) + "}", "fuzz")); }); break;
    case 2: run([&] { use(parse_hugging_face_config(patched(k_sound + "}", text), "fuzz")); }); break;
    case 3:
      run([&] {
        const auto config = parse_llama2c_header(text, "fuzz");
        use(config);
        if (config.layers < 100) llama2c_tensors(config, 1 << 20, "fuzz");
      });
      break;
  }
  return 0;
}
