// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <cstdio>
#include <cstdlib>

namespace kernelpro {

void assertion_failed(const char* what, const char* file, int line) {
  std::fprintf(stderr,
               "kernelpro: internal error: %s does not hold at %s:%d\n  next: this is a bug in "
               "KernelPro: report it with the command that you ran\n",
               what, file, line);
  std::abort();
}

}  // namespace kernelpro
