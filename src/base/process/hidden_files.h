// SPDX-License-Identifier: Apache-2.0
// Hides files from a process and its descendants, even as root.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// From now on none of `files` (full paths) can be opened. Everything else can, except what is
// created later beside them or beside one of their folders. Uses Landlock; applies to this thread
// and those it starts. Returns false, changing nothing, on a kernel without Landlock.
bool hide_files(const std::vector<std::string>& files);

}  // namespace kernelpro
