// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "base/process/available_memory.h"
#include "cli/parse.h"
#include "embedded/commit.h"

int main(int argc, char** argv) {
  kernelpro::keep_freed_memory_small();
  const std::string version = std::string(KERNELPRO_VERSION) + kernelpro::embedded::commit;
  return kernelpro::run_kernelpro(argc, argv, version);
}
