// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "measure/cuda/link.h"

namespace kernelpro {

Result<std::shared_ptr<PrivateFolder>> PrivateFolder::make(const std::string& place) {
  KP_TRY(make_dirs(place));
  // Under a name that nobody can have guessed, so that nothing lies in it yet.
  std::string path = join(place, "process-XXXXXX");
  if (::mkdtemp(path.data()) == nullptr) {
    return fail(ErrorKind::kEnvironment,
                "no folder can be made in " + place + ": " + std::strerror(errno),
                "free some space there, or set KERNELPRO_CACHE to another folder");
  }
  return std::shared_ptr<PrivateFolder>(new PrivateFolder(std::move(path)));
}

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Result<std::string> PrivateFolder::copy_of(const std::string& file) {
  if (file == file_) return copy_;
  if (!file_.empty()) {
    return fail(ErrorKind::kInternal, "this process has run another candidate", "report this");
  }
  KP_ASSIGN(const std::string bytes, read_file(file));
  const std::string folder = join(path_, "candidate");
  KP_TRY(make_dirs(folder));
  copy_ = join(folder, std::filesystem::path(file).filename().string());
  KP_TRY(write_file(copy_, bytes));
  file_ = file;
  return copy_;
}

}  // namespace kernelpro
