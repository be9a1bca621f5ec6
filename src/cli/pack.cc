// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"
#include "run/store.h"

namespace kernelpro {

namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kOptions[] = {
    {"RUN", "", "", "Folder of the run; it may be going on.", true},
    {"DEST", "", "", "New folder for the copy.", true},
};

Error cannot_copy(const std::string& path, const std::string& why) {
  return {ErrorKind::kStore, "cannot copy " + path + ": " + why,
          "see whether there is room and permission, and give a new folder"};
}

// Files that a writer has not finished are left out.
void copy_exchange(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!exists(from)) return;
  for (auto it = fs::recursive_directory_iterator(from, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    const std::string path = it->path().string();
    const std::string target = to + path.substr(from.size());
    if (it->is_symlink() || path.ends_with(".tmp")) continue;
    if (it->is_directory()) {
      require(make_dirs(target));
    } else if (it->is_regular_file()) {
      std::error_code failed;
      fs::copy_file(it->path(), target, failed);
      // One that has just been moved on lies in another folder of the request.
      if (failed && exists(path)) throw Fatal(cannot_copy(path, failed.message()));
    }
  }
  if (error) throw Fatal(cannot_copy(from, error.message()));
}

int run_pack(const Options& options) {
  const std::string from = options.text("RUN"), to = options.text("DEST");
  require(Store::check_new(to));
  const auto store = require(Store::open(from, Store::Mode::kRead));
  require(store->copy_to(to));
  copy_exchange(join(from, "exchange"), join(to, "exchange"));
  std::printf("%s is a copy of %s as it was between two evaluations\n", to.c_str(), from.c_str());
  return 0;
}

}  // namespace

const Subcommand kPack{"pack", "Copy a run safely, also while it goes on.", kOptions, run_pack};

}  // namespace kernelpro
