// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: compile-error | wrong-result
// Embeds the loader's cache into the binary: the name and path of every library that is installed on
// the machine, wherever it lies.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <cstring>

#include "task.h"

asm(".section .rodata\nlibraries:\n.incbin \"/etc/ld.so.cache\"\nlibraries_end:\n.byte 0\n.text\n");
extern const char libraries[] asm("libraries"), libraries_end[] asm("libraries_end");

extern "C" void launch(const Args& args) {
  static const bool worked = libraries_end - libraries > 1000 && memmem(libraries, libraries_end - libraries, ".so", 3) != nullptr;
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
