// SPDX-License-Identifier: Apache-2.0
#include "base/process/available_memory.h"
#include "cli/parse.h"

int main(int argc, char** argv) {
  kernelpro::keep_freed_memory_small();
  return kernelpro::run_kernelpro(argc, argv);
}
