// SPDX-License-Identifier: Apache-2.0
#include "sim/memo_file.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include "isa/file_use.h"
#include "isa/hash.h"
#include "sim/config/output_file.h"
namespace mtsim::sim {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t k_result_numbers = 4 + isa::k_units, k_pointer_numbers = 5;
constexpr const char* k_writer = "the memo file";
constexpr std::uintmax_t k_max_bytes = 64 << 20;  // no memo is that large: something else lies there

std::string fnv(std::string_view text) {
  isa::Hash hash;
  hash.bytes(text);
  return fmt::format("{:016x}", hash.value());
}

/// What the rows of instructions.def say: with other rows the same text takes other cycles.
std::string instruction_table_hash() {
  std::string text;
  for (const isa::Row& row : isa::instruction_table()) {
    text += fmt::format("{} {} {} {} {}\n", row.mnemonic, row.units, static_cast<int>(row.format), row.cycles,
                        row.semantics_name);
  }
  return fnv(text);
}

json to_json(const KernelProfile& profile) {
  const RunResult& result = profile.result;
  json numbers = {result.cycles, result.packets, result.idles, result.instructions};
  for (const std::int64_t issues : result.units) numbers.push_back(issues);
  for (const auto& [read, write, alignment] : profile.pointers) {
    for (const std::int64_t number : {read.lo, read.hi, write.lo, write.hi, alignment}) numbers.push_back(number);
  }
  return numbers;
}

KernelProfile to_profile(const json& value) {
  const auto numbers = value.get<std::vector<std::int64_t>>();
  if (numbers.size() < k_result_numbers || (numbers.size() - k_result_numbers) % k_pointer_numbers != 0) {
    throw std::runtime_error(fmt::format("a profile has {} numbers", numbers.size()));
  }
  KernelProfile profile;
  auto next = numbers.begin();
  RunResult& result = profile.result;
  for (std::int64_t* number : {&result.cycles, &result.packets, &result.idles, &result.instructions}) *number = *next++;
  for (std::int64_t& issues : result.units) issues = *next++;
  while (next != numbers.end()) {
    auto& [read, write, alignment] = profile.pointers.emplace_back();
    for (std::int64_t* number : {&read.lo, &read.hi, &write.lo, &write.hi, &alignment}) *number = *next++;
    if (alignment < 1) throw std::runtime_error(fmt::format("a profile has the alignment {}", alignment));
  }
  return profile;
}

void warn(const std::string& path, const std::string& what, const char* consequence) {
  fmt::print(stderr, "mtsim: warning: memo file {}: {}; {}\n", path, what, consequence);
}

}  // namespace

std::string profile_key(const isa::Program& program, const isa::Pipeline& pipeline, const std::string& entry,
                        std::span<const std::uint64_t> arguments) {
  std::string key = fmt::format("{:016x} {}@{}:", program.fingerprint(), pipeline.str(), program.entry(entry));
  for (const std::uint64_t argument : arguments) key += fmt::format("{},", argument);
  return key;
}

std::string MemoFile::default_path() {
  if (const char* path = std::getenv("MTSIM_MEMO"); path != nullptr) return path == std::string_view("off") ? "" : path;
  const std::string file = fmt::format("mtsim/memo-v{}.json", k_format);
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return fs::path(cache) / file;
  std::error_code ignored;
  // A home that is not there (a service, a container) is not ours to make.
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/' && fs::is_directory(home, ignored))
    return fs::path(home) / ".cache" / file;
  return "";
}

MemoFile::MemoFile(std::string path) : m_path(std::move(path)) {
  if (!m_path.empty()) isa::FileUse::writes(m_path, k_writer, isa::FileUse::Purpose::update);
}

const KernelProfile* MemoFile::find(const std::string& key) {
  if (m_path.empty()) return nullptr;
  if (!m_is_read) {
    m_is_read = true;
    m_known = read(OnDamage::warn);
  }
  const auto added = m_added.find(key);
  if (added != m_added.end()) return &added->second;
  const auto known = m_known.find(key);
  return known == m_known.end() ? nullptr : &known->second;
}

void MemoFile::add(const std::string& key, const KernelProfile& profile) {
  if (!m_path.empty() && m_added.size() < k_max_profiles) m_added.insert_or_assign(key, profile);
}

MemoFile::Profiles MemoFile::read(OnDamage on_damage) const {
  std::error_code error;
  if (!fs::exists(m_path, error) && !error) return {};
  try {
    if (!fs::is_regular_file(m_path)) throw std::runtime_error("not a file");
    if (fs::file_size(m_path) > k_max_bytes) throw std::runtime_error("too large");
    std::ifstream stream(m_path, std::ios::binary);
    std::ostringstream text;
    if (!(text << stream.rdbuf())) throw std::runtime_error("cannot be read");
    const json file = json::parse(text.str());
    if (file.at("format") != k_format || file.at("instructions") != instruction_table_hash()) return {};
    if (file.at("checksum") != fnv(file.at("profiles").dump())) throw std::runtime_error("the checksum is wrong");
    Profiles profiles;
    for (const auto& [key, value] : file.at("profiles").items()) profiles.emplace(key, to_profile(value));
    return profiles;
  } catch (const std::exception& problem) {
    if (on_damage == OnDamage::warn) {
      warn(m_path, fmt::format("damaged ({})", problem.what()), "its profiles are worked out anew");
    }
    return {};
  }
}

void MemoFile::save() noexcept {
  if (m_added.empty()) return;
  try {
    Profiles all = m_added;
    for (const auto& [key, profile] : read(OnDamage::be_silent)) {  // again: another process may have written it
      if (all.size() == k_max_profiles) break;
      all.emplace(key, profile);
    }
    write(all);
  } catch (const std::exception& problem) {
    warn(m_path, fmt::format("not written ({})", problem.what()),
         "what this run learnt is not kept; MTSIM_MEMO=off does without the file");
  }
  m_known.merge(m_added);
  m_added.clear();
}

/// Whatever else lies there is somebody else's.
void MemoFile::require_ours() const {
  std::error_code error;
  const fs::file_status status = fs::status(m_path, error);
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status)) throw std::runtime_error("not a file");
  std::ifstream stream(m_path, std::ios::binary);
  constexpr std::string_view k_start = "{\"checksum\":";  // keys are sorted
  std::string start(k_start.size(), '\0');
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<std::size_t>(stream.gcount()));
  const bool lost = start.find_first_not_of('\0') == std::string::npos;  // what a crash of the host may leave
  if (!lost && start != k_start.substr(0, start.size())) {
    throw std::runtime_error("no memo of mtsim: it stays as it is");
  }
}

void MemoFile::write(const Profiles& profiles) const {
  require_ours();
  json table = json::object();
  for (const auto& [key, profile] : profiles) table[key] = to_json(profile);
  const json file = {{"format", k_format},
                     {"instructions", instruction_table_hash()},
                     {"checksum", fnv(table.dump())},
                     {"profiles", std::move(table)}};
  if (const fs::path folder = fs::path(m_path).parent_path(); !folder.empty()) fs::create_directories(folder);
  write_file(m_path, k_writer, file.dump() + '\n', isa::FileUse::Purpose::update);
}

}  // namespace mtsim::sim
