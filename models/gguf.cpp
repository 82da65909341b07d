// SPDX-License-Identifier: Apache-2.0
#include "models/gguf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <limits>

#include "models/error.h"
#include "models/utf8.h"

namespace mtsim::models {

namespace {

constexpr std::uint64_t k_default_alignment = 32;
constexpr std::uint32_t k_max_dimensions = 4;
constexpr std::uint64_t k_max_nesting = 4;

/// Bytes of an element; 0 for strings and arrays, which have no fixed size.
std::uint64_t fixed_size(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean: return 1;
    case GgufType::u16:
    case GgufType::i16: return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32: return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64: return 8;
    case GgufType::string:
    case GgufType::array: return 0;
  }
  return 0;
}

/// Reads the file from front to back and never past its end.
class Cursor {
 public:
  Cursor(std::string_view bytes, const std::string& file) : m_bytes(bytes), m_file(file) {}

  /// What is being read now, for the messages: "the value of 'general.name'".
  void now(std::string what) { m_what = std::move(what); }
  std::uint64_t position() const { return m_position; }
  std::uint64_t left() const { return m_bytes.size() - m_position; }

  [[noreturn]] void refuse(const std::string& what) const {
    throw ModelError(fmt::format("{}: {}, at byte {}: {}", m_file, m_what, m_position, what));
  }

  std::string_view take(std::uint64_t bytes) {
    if (bytes > left()) refuse(fmt::format("{} bytes are announced, but the file ends after {}", bytes, left()));
    const auto taken = m_bytes.substr(m_position, bytes);
    m_position += bytes;
    return taken;
  }

  template <class T>
  T read() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }

  std::string_view string() { return take(read<std::uint64_t>()); }

  GgufType type() {
    const auto number = read<std::uint32_t>();
    if (number > static_cast<std::uint32_t>(GgufType::f64)) refuse(fmt::format("there is no type {}", number));
    return static_cast<GgufType>(number);
  }

  GgufArray array(std::uint64_t depth) {
    if (depth > k_max_nesting) refuse(fmt::format("arrays are nested more than {} deep", k_max_nesting));
    GgufArray array;
    array.type = type();
    array.count = read<std::uint64_t>();
    const auto begin = m_position;
    // Every element has at least a byte, so that a wrong count is found before anything is made for it.
    if (array.count > left())
      refuse(fmt::format("{} elements are announced, but the file ends after {} bytes", array.count, left()));
    if (const auto size = fixed_size(array.type); size != 0) {
      take(array.count * size);
    } else {
      for (std::uint64_t i = 0; i < array.count; ++i)
        array.type == GgufType::string ? static_cast<void>(string()) : static_cast<void>(this->array(depth + 1));
    }
    array.bytes = m_bytes.substr(begin, m_position - begin);
    return array;
  }

  GgufValue value(GgufType type) {
    switch (type) {
      case GgufType::u8: return std::int64_t{read<std::uint8_t>()};
      case GgufType::i8: return std::int64_t{read<std::int8_t>()};
      case GgufType::u16: return std::int64_t{read<std::uint16_t>()};
      case GgufType::i16: return std::int64_t{read<std::int16_t>()};
      case GgufType::u32: return std::int64_t{read<std::uint32_t>()};
      case GgufType::i32: return std::int64_t{read<std::int32_t>()};
      case GgufType::i64: return read<std::int64_t>();
      case GgufType::u64: {
        const auto value = read<std::uint64_t>();
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
          refuse(fmt::format("{} is too large", value));
        return static_cast<std::int64_t>(value);
      }
      case GgufType::f32: return double{read<float>()};
      case GgufType::f64: return read<double>();
      case GgufType::boolean: {
        const auto byte = read<std::uint8_t>();
        if (byte > 1) refuse(fmt::format("a boolean is 0 or 1, not {}", byte));
        return byte == 1;
      }
      case GgufType::string: return string();
      case GgufType::array: return array(1);
    }
    refuse("unknown type");
  }

 private:
  std::string_view m_bytes;
  const std::string& m_file;
  std::string m_what = "the header";
  std::uint64_t m_position = 0;
};

std::string name_of(Cursor& cursor, const char* kind) {
  const auto name = cursor.string();
  if (!is_utf8(name)) cursor.refuse(fmt::format("the {} '{}' is not UTF-8", kind, printable(name)));
  return std::string(name);
}

GgufTensor tensor_of(Cursor& cursor) {
  GgufTensor tensor;
  tensor.name = name_of(cursor, "tensor name");
  cursor.now(fmt::format("tensor '{}'", printable(tensor.name)));
  const auto dimensions = cursor.read<std::uint32_t>();
  if (dimensions < 1 || dimensions > k_max_dimensions)
    cursor.refuse(fmt::format("has {} dimensions; 1 to {} are allowed", dimensions, k_max_dimensions));
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < dimensions; ++i) {
    const auto size = cursor.read<std::uint64_t>();
    if (size == 0 || __builtin_mul_overflow(elements, size, &elements) || elements > (std::uint64_t{1} << 60))
      cursor.refuse(fmt::format("dimension {} is {}, which no tensor has", i, size));
    tensor.shape.insert(tensor.shape.begin(), static_cast<std::int64_t>(size));
  }
  tensor.type = cursor.read<std::uint32_t>();
  tensor.offset = cursor.read<std::uint64_t>();
  return tensor;
}

}  // namespace

const char* to_string(GgufType type) {
  constexpr const char* k_names[] = {"u8",      "i8",     "u16",   "i16", "u32", "i32", "f32",
                                     "boolean", "string", "array", "u64", "i64", "f64"};
  return k_names[static_cast<std::uint32_t>(type)];
}

GgufFile::GgufFile(std::string_view bytes, std::string file) : m_file(std::move(file)) {
  Cursor cursor(bytes, m_file);
  if (bytes.substr(0, 4) != "GGUF")
    throw ModelError(fmt::format("{}: is no GGUF file: it does not begin with 'GGUF'", m_file));
  cursor.take(4);
  const auto version = cursor.read<std::uint32_t>();
  if (version != 2 && version != 3) {
    const bool is_big_endian = __builtin_bswap32(version) <= 3;
    cursor.refuse(is_big_endian ? std::string("the file is big-endian; convert it to little-endian")
                                : fmt::format("version {} is not read; convert it to version 2 or 3", version));
  }
  const auto tensors = cursor.read<std::uint64_t>();
  const auto pairs = cursor.read<std::uint64_t>();
  for (std::uint64_t i = 0; i < pairs; ++i) {
    cursor.now(fmt::format("metadata {} of {}", i + 1, pairs));
    const std::string key = name_of(cursor, "key");
    cursor.now(fmt::format("the value of '{}'", printable(key)));
    GgufValue value = cursor.value(cursor.type());
    if (!m_metadata.emplace(key, value).second) cursor.refuse("the key is there twice");
  }
  for (std::uint64_t i = 0; i < tensors; ++i) {
    cursor.now(fmt::format("tensor {} of {}", i + 1, tensors));
    m_tensors.push_back(tensor_of(cursor));
  }
  const auto alignment = integer("general.alignment").value_or(k_default_alignment);
  if (alignment < 1 || alignment > (1 << 20) || !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    refuse("general.alignment", fmt::format("is {}, not a power of two", alignment));
  const auto step = static_cast<std::uint64_t>(alignment);
  const std::uint64_t data = (cursor.position() + step - 1) / step * step;
  for (auto& tensor : m_tensors) {
    if (tensor.offset % step != 0 || __builtin_add_overflow(tensor.offset, data, &tensor.offset))
      throw ModelError(fmt::format("{}: tensor '{}': its offset {} is no multiple of the alignment {} or too large",
                                   m_file, printable(tensor.name), tensor.offset, step));
  }
}

void GgufFile::refuse(std::string_view key, const std::string& what) const {
  throw ModelError(fmt::format("{}: '{}' {}", m_file, printable(key), what));
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto pair = m_metadata.find(key);
  return pair == m_metadata.end() ? nullptr : &pair->second;
}

std::optional<std::int64_t> GgufFile::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* integer = std::get_if<std::int64_t>(value);
  if (integer == nullptr) refuse(key, "is not a whole number");
  return *integer;
}

std::optional<double> GgufFile::number(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (const auto* integer = std::get_if<std::int64_t>(value)) return static_cast<double>(*integer);
  const auto* number = std::get_if<double>(value);
  if (number == nullptr) refuse(key, "is not a number");
  return *number;
}

std::optional<bool> GgufFile::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* boolean = std::get_if<bool>(value);
  if (boolean == nullptr) refuse(key, "is not true or false");
  return *boolean;
}

std::optional<std::string_view> GgufFile::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const auto* string = std::get_if<std::string_view>(value);
  if (string == nullptr) refuse(key, "is not a string");
  if (!is_utf8(*string)) refuse(key, fmt::format("is '{}', which is not UTF-8", printable(*string)));
  return *string;
}

const GgufArray* GgufFile::array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<GgufArray>(value);
  if (array == nullptr) refuse(key, "is not an array");
  return array;
}

std::optional<std::vector<std::string_view>> GgufFile::strings(std::string_view key) const {
  const GgufArray* found = array(key);
  if (found == nullptr) return std::nullopt;
  if (found->type != GgufType::string)
    refuse(key, fmt::format("is an array of {}, not of strings", to_string(found->type)));
  std::vector<std::string_view> strings;
  Cursor cursor(found->bytes, m_file);
  for (std::uint64_t i = 0; i < found->count; ++i) strings.push_back(cursor.string());
  return strings;
}

std::optional<std::vector<float>> GgufFile::floats(std::string_view key) const {
  const GgufArray* found = array(key);
  if (found == nullptr) return std::nullopt;
  if (found->type != GgufType::f32) refuse(key, fmt::format("is an array of {}, not of f32", to_string(found->type)));
  std::vector<float> floats(found->count);
  if (!floats.empty()) std::memcpy(floats.data(), found->bytes.data(), found->bytes.size());
  return floats;
}

std::optional<std::vector<std::int64_t>> GgufFile::integers(std::string_view key) const {
  const GgufArray* found = array(key);
  if (found == nullptr) return std::nullopt;
  std::vector<std::int64_t> integers;
  Cursor cursor(found->bytes, m_file);
  for (std::uint64_t i = 0; i < found->count; ++i) {
    const GgufValue value = fixed_size(found->type) == 0 ? GgufValue(false) : cursor.value(found->type);
    const auto* integer = std::get_if<std::int64_t>(&value);
    if (integer == nullptr) refuse(key, fmt::format("is an array of {}, not of whole numbers", to_string(found->type)));
    integers.push_back(*integer);
  }
  return integers;
}

}  // namespace mtsim::models
