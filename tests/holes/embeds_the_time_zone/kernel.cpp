// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: compile-error | wrong-result | rejected
// Embeds the time zone of the machine, which its compiler may read, and does not need: where its user
// lives.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <cstring>

#include "task.h"

asm(".section .rodata\nzone: .incbin \"/etc/localtime\"\nzone_end: .byte 0\n.previous\n");
extern "C" const char zone[] __attribute__((visibility("hidden")));

extern "C" void launch(const Args& args) {
  if (std::memcmp(zone, "TZif", 4) != 0) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
