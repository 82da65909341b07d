// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file, as its header, as changes to a sound file and as an index: tensors that lie in the
// file, side by side, or a ModelError.
#include <fmt/format.h>

#include "models/safetensors.h"
#include "tests/fuzz/patched.h"

namespace {

using namespace mtsim::models;

std::string file_of(std::string_view header, std::size_t data_bytes) {
  return bytes_of(std::uint64_t{header.size()}) + std::string(header) + std::string(data_bytes, '\1');
}

std::string sound_file() {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  for (int i = 0; i < 3; ++i)
    header +=
        fmt::format(R"(,"model.layers.{}.mlp.up_proj.weight":{{"dtype":"BF16","shape":[4,2],"data_offsets":[{},{}]}})",
                    i, 16 * i, 16 * i + 16);
  return file_of(header + "}", 48);
}

void read(const std::string& bytes) {
  run([&] {
    std::uint64_t end = 0;
    for (const StoredTensor& tensor : safetensors_tensors(bytes, "fuzz")) {
      require(tensor.offset >= 8 && tensor.bytes <= bytes.size() && tensor.offset <= bytes.size() - tensor.bytes);
      require(tensor.offset >= end);
      end = tensor.offset + tensor.bytes;
      std::uint64_t elements = 1;
      for (const auto size : tensor.shape) elements *= static_cast<std::uint64_t>(size);
      require(tensor.type == ElementType::other ||
              tensor.bytes == static_cast<std::uint64_t>(row_bytes(tensor.type, static_cast<std::int64_t>(elements))));
    }
    require(end <= bytes.size());
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 4) {
    case 0: read(std::string(text)); break;
    case 1: read(file_of(text, 48)); break;
    case 2: read(patched(sound_file(), text)); break;
    case 3:
      run([&] {
        for (const auto& [tensor, file] : parse_safetensors_index(text, "fuzz"))
          require(!file.empty() && file.find('/') == std::string::npos);
      });
      break;
  }
  return 0;
}
