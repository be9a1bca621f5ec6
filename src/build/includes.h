// SPDX-License-Identifier: Apache-2.0
// Header libraries, in addition to the toolkit's, that candidates may include: CUTLASS and CuTe,
// the user's own. Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// Files that a source includes outside comments, in order.
std::vector<std::string> included_names(std::string_view source);

class IncludeDirs {
 public:
  // Absolute folders, searched in this order.
  explicit IncludeDirs(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // The names that the source includes from these folders.
  std::vector<std::string> used_by(std::string_view source) const;
  const std::vector<std::string>& folders() const { return folders_; }
  // Changes with any file below the folders (path, size, time); "" without folders. Computed once
  // per object.
  std::string fingerprint() const;
  // "-I" options.
  std::vector<std::string> options() const;

 private:
  std::vector<std::string> folders_;
  mutable std::mutex mutex_;
  mutable std::optional<std::string> fingerprint_;
};

// A source with its library headers first, set off by `#pragma nv_hdrstop`, so that NVRTC can reuse
// their precompiled header whatever task.h contains.
struct Hoisted {
  std::string text;     // includes kLibraryHeader first
  std::string library;  // text of kLibraryHeader
  // Shift of line numbers in `text` after the leading comments and includes, relative to the
  // source: 0 if those leave room for two lines. (A #line would keep NVRTC from precompiling.)
  int shift = 0;
};
inline constexpr const char* kLibraryHeader = "kernelpro_library.h";
Hoisted hoisted(const std::vector<std::string>& names, const std::string& source);
// Maps the log's line numbers of `file` back to the source's.
std::string shifted_back(const std::string& log, const std::string& file, int shift);

}  // namespace kernelpro
