// SPDX-License-Identifier: Apache-2.0
#include "base/process/hidden_files.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "base/files.h"

namespace kernelpro {

namespace {

constexpr std::uint64_t kOpening = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE;

void allow(int ruleset, const std::string& path) {
  // Through a link a hidden file would be allowed; what it leads to is allowed where it lies.
  const Fd place(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (!place.valid() || ::fstat(place.get(), &about) != 0 || S_ISLNK(about.st_mode)) return;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = kOpening;
  rule.parent_fd = place.get();
  static_cast<void>(
      ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0));
}

// Landlock rules only allow: allow everything in `folder` except the hidden files.
void allow_others(int ruleset, const std::string& folder, const std::vector<std::string>& hidden) {
  for (const std::string& name : list_dir(folder)) {
    const std::string path = folder + name;
    if (std::find(hidden.begin(), hidden.end(), path) != hidden.end()) continue;
    const bool above = std::any_of(hidden.begin(), hidden.end(), [&](const std::string& file) {
      return file.starts_with(path + "/");
    });
    above ? allow_others(ruleset, path + "/", hidden) : allow(ruleset, path);
  }
}

}  // namespace

bool hide_files(const std::vector<std::string>& files) {
  if (files.empty()) return true;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = kOpening;
  const Fd ruleset(static_cast<int>(
      ::syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0)));
  if (!ruleset.valid()) return false;
  allow_others(ruleset.get(), "/", files);
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::syscall(SYS_landlock_restrict_self, ruleset.get(), 0) == 0;
}

}  // namespace kernelpro
