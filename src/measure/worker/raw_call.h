// SPDX-License-Identifier: Apache-2.0
// System calls without the C library, whose code a candidate may change. Async-signal-safe.
#pragma once

#include <sys/syscall.h>

namespace kernelpro {

[[gnu::always_inline]] inline long raw_call(long number, long a, long b = 0, long c = 0,
                                            long d = 0) {
#if defined(__x86_64__)
  long result;
  asm volatile("mov %5, %%r10\n\tsyscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d)
               : "rcx", "r10", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  asm volatile(
      "mov x8, %1\n\tmov x1, %2\n\tmov x2, %3\n\tmov x3, %4\n\tmov x0, %0\n\tsvc #0\n\t"
      "mov %0, x0"
      : "+r"(a)
      : "r"(number), "r"(b), "r"(c), "r"(d)
      : "x0", "x1", "x2", "x3", "x8", "memory");
  return a;
#endif
}

[[noreturn, gnu::always_inline]] inline void end_with(int status) {
  for (;;) raw_call(SYS_exit_group, status);
}

}  // namespace kernelpro
