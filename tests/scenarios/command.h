// SPDX-License-Identifier: Apache-2.0
// Runs the built command in a folder of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace mtsim::test {

struct CommandResult {
  int exit_code = -1;  // 128 + signal when it crashed
  std::string out;
  std::string err;
  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// An empty folder that goes away with the object; commands run in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string path(const std::string& name) const { return (m_path / name).string(); }
  void write(const std::string& name, std::string_view text) const;
  std::string read(const std::string& name) const;
  bool has(const std::string& name) const { return std::filesystem::exists(m_path / name); }

  template <class Value>
  void write_values(const std::string& name, const std::vector<Value>& values) const {
    write(name, {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(Value)});
  }
  template <class Value>
  std::vector<Value> read_values(const std::string& name) const {
    const std::string bytes = read(name);
    std::vector<Value> values(bytes.size() / sizeof(Value));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
    return values;
  }

  /// `mtsim ARGUMENTS`, a shell line.
  CommandResult mtsim(const std::string& arguments) const;
  /// The same under mpirun, however few cores this host has.
  CommandResult mpirun(int ranks, const std::string& arguments) const;
  /// A shell line as it is.
  CommandResult shell(const std::string& line) const;

 private:
  std::filesystem::path m_path;
};

/// What a shell line needs in front of mpirun's arguments.
std::string mpirun_command();

/// A file of the repository.
std::string source(const std::string& path);

}  // namespace mtsim::test
