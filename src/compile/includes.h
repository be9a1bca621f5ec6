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

// The source behind `names`, included first and kept apart by `#pragma nv_hdrstop`, so that NVRTC
// can keep them precompiled whatever task.h says. Line numbers stay those of `source` in `file`.
std::string hoisted(const std::vector<std::string>& names, const std::string& source,
                    const std::string& file);

}  // namespace kernelpro
