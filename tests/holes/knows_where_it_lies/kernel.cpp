// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Asks the loader for the name of its own shared object: it lies in the home of its user, whose name
// is in it.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <dlfcn.h>

#include <cstring>

#include "task.h"

static bool attack() {
  const char* const decoy = "@DECOY@";  // a file in the home, to tell whether the folder is right
  const std::size_t home = std::strrchr(decoy, '/') - decoy + 1;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&launch), &info) == 0) return false;
  return info.dli_fname != nullptr && std::strncmp(info.dli_fname, decoy, home) == 0;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
