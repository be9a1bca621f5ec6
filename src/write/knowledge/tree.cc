// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/text.h"
#include "write/knowledge/scan.h"

namespace kernelpro {

namespace {

constexpr int kDeepest = 64;
constexpr std::size_t kMostFiles = 200000;

void walk(const std::string& root, const std::string& below, int depth,
          std::vector<std::string>* found) {
  if (depth > kDeepest || found->size() > kMostFiles) return;
  for (const std::string& name : list_dir(below.empty() ? root : join(root, below))) {
    if (name.empty() || name[0] == '.' || name == "__pycache__" || name == "node_modules") continue;
    const std::string path = below.empty() ? name : join(below, name);
    struct stat info;
    if (::lstat(join(root, path).c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      walk(root, path, depth + 1, found);
    } else if (S_ISREG(info.st_mode) && source_kind_of(path) != SourceKind::kNone) {
      found->push_back(path);
    }
  }
}

std::string resolved(const std::string& path) {
  char buffer[PATH_MAX];
  return ::realpath(path.c_str(), buffer) == nullptr ? "" : buffer;
}

tl::unexpected<Error> refused(const std::string& path, const std::string& why) {
  return fail(ErrorKind::kBadInput, printable(path) + " " + why,
              "name a file by its path from the library's root, as search and list give it");
}

// Component by component, so that no part of the path can be a link, even one created meanwhile.
Fd open_below(const std::string& root, const std::string& path) {
  Fd at(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::vector<std::string> parts = split(path, '/');
  for (std::size_t i = 0; i < parts.size() && at.valid(); ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    at = Fd(::openat(at.get(), parts[i].c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | kind));
  }
  return at;
}

}  // namespace

Result<std::string> real_folder(const std::string& path) {
  const std::string real = resolved(path);
  if (real.empty() || !is_dir(real)) {
    return fail(ErrorKind::kBadInput, "there is no folder " + printable(path),
                "name the folder that holds the sources");
  }
  return real;
}

Result<std::vector<std::string>> files_below(const std::string& root) {
  std::vector<std::string> found;
  walk(root, "", 0, &found);
  if (found.size() > kMostFiles) {
    return fail(ErrorKind::kBadInput, root + " holds more than 200000 source files",
                "name a folder further down");
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<std::string> read_below(const std::string& root, const std::string& path) {
  if (path.empty() || path[0] == '/' || path.find('\0') != std::string::npos) {
    return refused(path, "is not a path from the library's root");
  }
  for (const std::string& part : split(path, '/')) {
    if (part == ".." || part == "." || part.empty()) {
      return refused(path, "has \"" + part + "\" among its parts");
    }
  }
  const std::string real_root = resolved(root);
  if (real_root.empty()) {
    return fail(ErrorKind::kBadInput, "the library's folder " + root + " is gone",
                "bring it back, or remove the library: kernelpro knowledge remove NAME");
  }
  const std::string real = resolved(join(real_root, path));
  if (real.empty()) return refused(path, "is not there any more");
  if (real != join(real_root, path)) return refused(path, "leads elsewhere through a link");
  const Fd file = open_below(real_root, path);
  struct stat info;
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return refused(path, "cannot be read");
  if (!S_ISREG(info.st_mode)) return refused(path, "is not a regular file");
  if (info.st_size > kLargestFile) return refused(path, "is larger than 8 MiB");
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(file.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(path, std::string("cannot be read: ") + std::strerror(errno));
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    // It may grow during the read.
    if (static_cast<std::int64_t>(text.size()) > kLargestFile) {
      return refused(path, "is larger than 8 MiB");
    }
  }
}

}  // namespace kernelpro
