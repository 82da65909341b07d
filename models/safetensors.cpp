// SPDX-License-Identifier: Apache-2.0
#include "models/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "models/error.h"
#include "models/json.h"
#include "models/utf8.h"

namespace mtsim::models {

namespace {

using Json = nlohmann::json;

constexpr std::uint64_t k_length_bytes = 8;
constexpr std::uint64_t k_max_header_bytes = 100'000'000;  // the format's own limit

struct NamedType {
  std::string_view name;
  ElementType type;
  std::uint64_t bytes;
};

/// All that the format has whole bytes for, so that a tensor nobody needs does not stop the others.
constexpr NamedType k_types[] = {
    {"F32", ElementType::f32, 4},       {"F16", ElementType::f16, 2},       {"BF16", ElementType::bf16, 2},
    {"F64", ElementType::other, 8},     {"I64", ElementType::other, 8},     {"U64", ElementType::other, 8},
    {"I32", ElementType::other, 4},     {"U32", ElementType::other, 4},     {"I16", ElementType::other, 2},
    {"U16", ElementType::other, 2},     {"I8", ElementType::other, 1},      {"U8", ElementType::other, 1},
    {"BOOL", ElementType::other, 1},    {"F8_E4M3", ElementType::other, 1}, {"F8_E5M2", ElementType::other, 1},
    {"F8_E8M0", ElementType::other, 1}, {"C64", ElementType::other, 8},
};

/// One member of the header.
class Entry {
 public:
  Entry(const std::string& file, const std::string& name, const Json& json)
      : m_file(file), m_name(name), m_json(json) {}

  [[noreturn]] void refuse(const std::string& what) const {
    throw ModelError(fmt::format("{}: tensor '{}': {}", m_file, printable(m_name), what));
  }

  StoredTensor read(std::uint64_t data_begin) const {
    if (!m_json.is_object()) refuse("is not described by an object");
    StoredTensor tensor;
    tensor.name = m_name;
    const Json& dtype = member("dtype");
    const auto* type = std::find_if(std::begin(k_types), std::end(k_types), [&](const auto& known) {
      return dtype.is_string() && dtype == std::string(known.name);
    });
    if (type == std::end(k_types)) refuse(fmt::format("has dtype {}, which is not one of the format", shown(dtype)));
    tensor.type_name = type->name;
    tensor.type = type->type;
    std::uint64_t bytes = type->bytes;
    const Json& shape = member("shape");
    if (!shape.is_array()) refuse(fmt::format("has shape {}, not a list of sizes", shown(shape)));
    for (const Json& size : shape) {
      const std::uint64_t value = whole(size, "shape");
      if (value > (std::uint64_t{1} << 60) || __builtin_mul_overflow(bytes, value, &bytes))
        refuse(fmt::format("has shape {}, too large for any file", shown(shape)));
      tensor.shape.push_back(static_cast<std::int64_t>(value));
    }
    const Json& offsets = member("data_offsets");
    if (!offsets.is_array() || offsets.size() != 2)
      refuse(fmt::format("has data_offsets {}, not [begin, end]", shown(offsets)));
    const std::uint64_t begin = whole(offsets[0], "data_offsets"), end = whole(offsets[1], "data_offsets");
    if (end < begin || __builtin_add_overflow(begin, data_begin, &tensor.offset))
      refuse(fmt::format("has data_offsets {}, which is no range", shown(offsets)));
    if (end - begin != bytes)
      refuse(
          fmt::format("has {} bytes, but {} of shape {} are {}", end - begin, tensor.type_name, shown(shape), bytes));
    tensor.bytes = bytes;
    return tensor;
  }

 private:
  const Json& member(const char* key) const {
    const auto found = m_json.find(key);
    if (found == m_json.end()) refuse(fmt::format("has no '{}'", key));
    return *found;
  }

  std::uint64_t whole(const Json& value, const char* key) const {
    if (!value.is_number_unsigned()) refuse(fmt::format("has {} in its {}, not a whole number", shown(value), key));
    return value.get<std::uint64_t>();
  }

  static std::string shown(const Json& value) {
    return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace));
  }

  const std::string& m_file;
  const std::string& m_name;
  const Json& m_json;
};

/// The format leaves no byte to nobody.
void check_for_holes(const std::vector<StoredTensor>& tensors, std::uint64_t data_begin, std::uint64_t file_bytes,
                     const std::string& file) {
  std::uint64_t end = data_begin;
  for (const auto& tensor : tensors) {
    if (tensor.offset != end)
      throw ModelError(
          fmt::format("{}: tensor '{}': begins at byte {}, but what lies before it ends at {}; the file is damaged",
                      file, printable(tensor.name), tensor.offset, end));
    end += tensor.bytes;
  }
  if (end != file_bytes)
    throw ModelError(fmt::format("{}: its tensors end at byte {}, but the file has {} bytes; the file is damaged", file,
                                 end, file_bytes));
}

}  // namespace

std::vector<StoredTensor> safetensors_tensors(std::string_view bytes, const std::string& file) {
  const auto refuse = [&](const std::string& what) { throw ModelError(fmt::format("{}: {}", file, what)); };
  if (bytes.size() < k_length_bytes) refuse(fmt::format("has {} bytes, too few for a safetensors file", bytes.size()));
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, bytes.data(), k_length_bytes);
  if (header_bytes > k_max_header_bytes)
    refuse(fmt::format("is no safetensors file: its header would have {} bytes", header_bytes));
  if (header_bytes > bytes.size() - k_length_bytes)
    refuse(fmt::format("is cut short: its header has {} bytes, {} are there", header_bytes,
                       bytes.size() - k_length_bytes));
  const Json header = parse_json_object(bytes.substr(k_length_bytes, header_bytes), file + ": header");
  const std::uint64_t data_begin = k_length_bytes + header_bytes;
  std::vector<StoredTensor> tensors;
  for (const auto& [name, description] : header.items()) {
    if (name == "__metadata__") {
      const bool is_text = description.is_object() && std::all_of(description.begin(), description.end(),
                                                                  [](const Json& v) { return v.is_string(); });
      if (!is_text) refuse("'__metadata__' is not an object of texts");
    } else {
      tensors.push_back(Entry(file, name, description).read(data_begin));
    }
  }
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return a.offset != b.offset ? a.offset < b.offset : a.bytes < b.bytes;
  });
  check_places(tensors, bytes.size(), file);
  check_for_holes(tensors, data_begin, bytes.size(), file);
  return tensors;
}

std::map<std::string, std::string> parse_safetensors_index(std::string_view text, const std::string& file) {
  const auto refuse = [&](const std::string& what) { throw ModelError(fmt::format("{}: {}", file, what)); };
  const Json index = parse_json_object(text, file);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) refuse("has no object 'weight_map'");
  std::map<std::string, std::string> files;
  for (const auto& [name, shard] : map->items()) {
    const bool is_name = shard.is_string() && !shard.get<std::string>().empty() &&
                         shard.get<std::string>().find_first_of(std::string("/\0", 2)) == std::string::npos;
    if (!is_name)
      refuse(fmt::format("tensor '{}': its file is {}, not the name of a file in this folder", printable(name),
                         printable(shard.dump(-1, ' ', true, Json::error_handler_t::replace))));
    files[name] = shard.get<std::string>();
  }
  if (files.empty()) refuse("'weight_map' names no tensor");
  return files;
}

}  // namespace mtsim::models
