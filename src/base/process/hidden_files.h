// SPDX-License-Identifier: Apache-2.0
// Files that a process gives up for itself and for all that it starts, and for root too.
#pragma once

#include <string>
#include <vector>

namespace kernelpro {

// None of `files` (full paths) can be opened from now on; all others can, but for what is made
// beside them or beside one of their folders later. By Landlock, for this thread and those that it
// starts: false where the kernel has none, and nothing is changed.
bool hide_files(const std::vector<std::string>& files);

}  // namespace kernelpro
