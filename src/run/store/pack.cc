// SPDX-License-Identifier: Apache-2.0
#include "run/store/pack.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "run/store/store.h"

namespace kernelpro {

namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> cannot_copy(const std::string& path, const std::error_code& why) {
  return fail(ErrorKind::kStore, "cannot copy " + path + ": " + why.message(),
              "see whether there is room and permission, and give a new folder");
}

Result<void> copy_exchange(const std::string& from, const std::string& to) {
  if (!exists(from)) return {};
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(from, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string path = it->path().string();
    const std::string target = to + path.substr(from.size());
    if (it->is_symlink() || path.ends_with(".tmp")) continue;
    if (it->is_directory()) {
      KP_TRY(make_dirs(target));
      continue;
    }
    std::error_code failed;
    if (it->is_regular_file()) fs::copy_file(it->path(), target, failed);
    // A file that has just been moved is in another folder of the request.
    if (failed && exists(path)) return cannot_copy(path, failed);
  }
  if (error) return cannot_copy(from, error);
  return {};
}

Result<void> check_copy(const std::string& to) {
  KP_ASSIGN(const auto store, Store::open(to, Store::Mode::kRead));
  return store->check_whole();
}

}  // namespace

Result<void> pack_run(const std::string& from, const std::string& to) {
  KP_TRY(Store::check_new(to));
  KP_ASSIGN(const auto store, Store::open(from, Store::Mode::kRead));
  KP_TRY(store->check_whole());
  KP_TRY(store->copy_to(to));
  if (const auto good = check_copy(to); !good) {
    ::unlink(store_path(to).c_str());
    return good;
  }
  return copy_exchange(exchange_folder(from), exchange_folder(to));
}

}  // namespace kernelpro
