// SPDX-License-Identifier: Apache-2.0
// A folder that appears whole or not at all. Private to models/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace mtsim::models {

class NewFolder {
 public:
  /// Throws ModelError when `path` exists and `replace` is false, or it is no folder of files whose names `may_replace`
  /// accepts.
  NewFolder(std::string path, bool replace, bool (*may_replace)(const std::string& name));
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Files are written here.
  const std::string& temporary() const { return m_temporary; }
  /// Puts it in its place; what was there goes. Throws ModelError.
  void commit();

 private:
  std::string m_path;
  std::string m_temporary;  // beside it
  bool m_replace;
};

/// One file, written from front to back. Throws ModelError when the disk is full or the like.
class StreamedFile {
 public:
  explicit StreamedFile(std::string path);
  ~StreamedFile();
  StreamedFile(const StreamedFile&) = delete;
  StreamedFile& operator=(const StreamedFile&) = delete;

  void write(std::string_view bytes);
  /// To the disk.
  void close();

 private:
  [[noreturn]] void refuse(int error) const;

  std::string m_path;
  int m_descriptor = -1;
};

}  // namespace mtsim::models
