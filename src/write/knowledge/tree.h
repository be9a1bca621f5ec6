// SPDX-License-Identifier: Apache-2.0
// Access to the files below a root, and no others: links are never followed. Functions block; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// The largest file to be indexed or read.
constexpr std::int64_t kLargestFile = 8 << 20;

// Paths relative to the root, sorted, of files of an indexed kind. Hidden names and links are
// skipped.
Result<std::vector<std::string>> files_below(const std::string& root);

// kBadInput when the path is absolute, has "..", leads out of the root (checked with links
// resolved), goes through a link, or is not a regular file.
Result<std::string> read_below(const std::string& root, const std::string& path);

// The folder with links resolved; kBadInput when it does not exist.
Result<std::string> real_folder(const std::string& path);

}  // namespace kernelpro
