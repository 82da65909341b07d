// SPDX-License-Identifier: Apache-2.0
// Which files a run reads and writes, so that no output destroys an input or another output, whichever comes first and
// however indirectly it is named (.include, extends, links). Whoever reads or writes a file says so here.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace mtsim::isa {

/// An output that would destroy something; the message says what and by whom.
class FileClash : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A file is known by its inode and by its canonical path; devices and pipes never clash.
bool same_file(const std::string& a, const std::string& b);

/// The files of one run, from its construction on; without one nothing is refused. A process that is forked has those
/// of its parent.
///
///   FileUse files;                       // in main
///   FileUse::writes("k.s", "--json");    // before any work
///   FileUse::reads("k.s");               // throws: "--json k.s: would overwrite 'k.s', which this run reads; ..."
class FileUse {
 public:
  enum class Purpose : std::uint8_t {
    replace,  // a new file, which may be no input
    update,   // an input that is written back
  };

  FileUse();
  ~FileUse();
  FileUse(const FileUse&) = delete;
  FileUse& operator=(const FileUse&) = delete;

  /// Throws FileClash when `path` is an output, but not one that updates it.
  static void reads(const std::string& path);
  /// Throws FileClash when `path` is an input or another writer's output. `writer`: who in messages, "--json"; the same
  /// one may say so several times.
  static void writes(const std::string& path, const std::string& writer, Purpose purpose = Purpose::replace);

 private:
  struct File {
    std::string path;  // as given
    std::string canonical;
    std::string writer;  // of an output
    Purpose purpose = Purpose::replace;
  };
  std::vector<File> m_inputs, m_outputs;
};

}  // namespace mtsim::isa
