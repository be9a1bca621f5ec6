// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// The system tells every program by which name it was started, in its auxiliary vector: a path in
// somebody's folders.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <sys/auxv.h>

#include <cstring>

#include "task.h"

static bool attack() {
  const auto* name = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  if (name == nullptr || name[0] != '/') return false;
  // Deeper than /usr/bin/program.
  return std::strstr(name, "kernelpro") != nullptr && std::strncmp(name, "/usr/", 5) != 0;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
