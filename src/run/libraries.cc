// SPDX-License-Identifier: Apache-2.0
#include "run/libraries.h"

#include <algorithm>

#include "base/files.h"
#include "write/knowledge/knowledge_base.h"

namespace kernelpro {

Result<std::vector<std::string>> include_dirs(const std::vector<std::string>& named) {
  std::vector<std::string> dirs;
  const auto add = [&](std::string dir) {
    if (std::find(dirs.begin(), dirs.end(), dir) == dirs.end()) dirs.push_back(std::move(dir));
  };
  for (const std::string& dir : named) {
    if (!is_dir(dir)) {
      return fail(ErrorKind::kBadInput, "there is no folder " + dir,
                  "name the folder that the #include lines start from, as -I would have it");
    }
    add(absolute(dir));
  }
  for (const Library& library : KnowledgeBase(knowledge_folder()).list()) {
    if (!library.fault.empty() || !is_dir(library.root)) continue;
    const std::string include = join(library.root, "include");
    add(is_dir(include) ? include : library.root);
  }
  return dirs;
}

}  // namespace kernelpro
