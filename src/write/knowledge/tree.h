// SPDX-License-Identifier: Apache-2.0
// Files below a root, and no others: links are never followed. Functions block; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace kernelpro {

// The largest file that is indexed or read.
constexpr std::int64_t kLargestFile = 8 << 20;

// Paths from the root, sorted, of files whose kind is indexed. Hidden names and links are left out.
Result<std::vector<std::string>> files_below(const std::string& root);

// kBadInput when the path is absolute, has "..", leads out of the root (links are resolved to see
// that), goes through a link, or is no regular file.
Result<std::string> read_below(const std::string& root, const std::string& path);

// The folder with links resolved; kBadInput when there is none.
Result<std::string> real_folder(const std::string& path);

}  // namespace kernelpro
