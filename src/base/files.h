// SPDX-License-Identifier: Apache-2.0
// Files and folders. All functions block, keep no state and are safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// Reads the whole file. Fails with kBadInput when it is missing, not a regular file, or larger than
// `max_bytes`.
Result<std::string> read_file(const std::string& path, std::int64_t max_bytes = 256LL << 20);

// Writes a temporary file in the same folder and renames it into place, so that a reader never sees
// half a file. Fails with kStore.
Result<void> write_file(const std::string& path, std::string_view bytes);

Result<void> make_dirs(const std::string& path);
bool exists(const std::string& path);
bool is_dir(const std::string& path);
// Names (not paths) in a folder, sorted; empty when the folder cannot be read.
std::vector<std::string> list_dir(const std::string& path);
std::string join(std::string_view dir, std::string_view name);
std::string dirname(const std::string& path);
std::string basename(const std::string& path);
std::string absolute(const std::string& path);

// Folder of the running executable; kernelpro finds kernelpro-worker there.
std::string executable_dir();
// First hit of `name` on PATH, or "".
std::string find_program(const std::string& name);
// $KERNELPRO_CACHE, else $XDG_CACHE_HOME/kernelpro, else ~/.cache/kernelpro, else a folder in
// TMPDIR.
std::string cache_dir();
// A file of the user's settings: $XDG_CONFIG_HOME/kernelpro/NAME, else ~/.config/kernelpro/NAME;
// "" where there is neither. It need not exist.
std::string config_file(const std::string& name);

// A temporary folder in TMPDIR, removed by the destructor.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release();
  void reset(int fd = -1);

 private:
  int fd_ = -1;
};

// The same file at descriptor 10 or above, close-on-exec: clear of the low ones that a child is
// given. Unchanged where the limit on open files leaves no room.
Fd above_standard(Fd fd);

}  // namespace kernelpro
