// SPDX-License-Identifier: Apache-2.0
#include "run/store/pack.h"

#include <cstdio>

#include "cli/commands.h"

namespace kernelpro {

namespace {

constexpr OptionSpec kPackOptions[] = {
    {"RUN", "", "", "Run folder (the run may still be active), or a run as text.", true},
    {"DEST", "", "", "New folder for the copy.", true},
};

int run_pack(const Options& options) {
  const std::string from = options.text("RUN"), to = options.text("DEST");
  require(pack_run(from, to));
  std::printf("%s is a copy of %s as it was between two evaluations\n", to.c_str(), from.c_str());
  return 0;
}

}  // namespace

extern const Subcommand kPack{"pack", "Copy a run safely, even while it is active.", kPackOptions,
                              run_pack};

}  // namespace kernelpro
