// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: compile-error | wrong-result
// Embeds the name and version of the machine's system, which lies among the libraries: neither a
// program nor a header nor a library.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <cstring>

#include "task.h"

asm(".section .rodata\nrelease:\n.incbin \"/usr/lib/os-release\"\nrelease_end:\n.byte 0\n.text\n");
extern const char release[] asm("release"), release_end[] asm("release_end");

extern "C" void launch(const Args& args) {
  static const bool worked = memmem(release, release_end - release, "VERSION", 7) != nullptr;
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
