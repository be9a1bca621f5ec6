// SPDX-License-Identifier: Apache-2.0
// Header libraries that candidates may include besides the toolkit's: CUTLASS and CuTe, the user's
// own. Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kernelpro {

// The files that a source names in `#include` lines outside of comments, in order.
std::vector<std::string> included_names(std::string_view source);

class IncludeDirs {
 public:
  // Absolute folders, looked through in this order.
  explicit IncludeDirs(std::vector<std::string> folders) : folders_(std::move(folders)) {}

  // The names that the source includes from these folders.
  std::vector<std::string> used_by(std::string_view source) const;
  const std::vector<std::string>& folders() const { return folders_; }
  // Changes with every file below the folders (paths, sizes, times); "" without folders. Looked at
  // once for each object.
  std::string fingerprint() const;
  // "-I" options.
  std::vector<std::string> options() const;

 private:
  std::vector<std::string> folders_;
  mutable std::mutex mutex_;
  mutable std::optional<std::string> fingerprint_;
};

// A source whose library headers come first, kept apart by `#pragma nv_hdrstop`, so that NVRTC can
// keep them precompiled whatever task.h says.
struct Hoisted {
  std::string text;     // includes kLibraryHeader first
  std::string library;  // text of kLibraryHeader
  // By how much the lines of `text` after the first comments and includes exceed those of the
  // source: 0 where these leave room for two lines. (A #line would keep NVRTC from precompiling.)
  int shift = 0;
};
inline constexpr const char* kLibraryHeader = "kernelpro_library.h";
Hoisted hoisted(const std::vector<std::string>& names, const std::string& source);
// The log with the line numbers of `file` as the source has them.
std::string shifted_back(const std::string& log, const std::string& file, int shift);

}  // namespace kernelpro
