// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Writes its loop as machine code when it is loaded, as libraries with run-time compilers do; where
// that is not x86-64 with AVX, or not allowed, it has another.
#include <sys/mman.h>

#include <cstring>

#include "task.h"

using Loop = void (*)(const float* x, const float* z, float* y, long bytes);

static void plain(const float* x, const float* z, float* y, long bytes) {
  for (long i = 0; i < bytes / 4; ++i) y[i] = 2 * x[i] + z[i];
}
static const Loop loop = []() -> Loop {
  // xor rax, rax; again: vmovups ymm0, [rdi+rax]; vaddps ymm0, ymm0, ymm0; vaddps ymm0, ymm0, [rsi+rax];
  // vmovups [rdx+rax], ymm0; add rax, 32; cmp rax, rcx; jl again; vzeroupper; ret
  static const unsigned char code[] = {0x48, 0x31, 0xc0, 0xc5, 0xfc, 0x10, 0x04, 0x07, 0xc5, 0xfc, 0x58, 0xc0, 0xc5, 0xfc, 0x58, 0x04, 0x06,
                                       0xc5, 0xfc, 0x11, 0x04, 0x02, 0x48, 0x83, 0xc0, 0x20, 0x48, 0x39, 0xc8, 0x7c, 0xe4, 0xc5, 0xf8, 0x77, 0xc3};
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED || !__builtin_cpu_supports("avx")) return plain;
  std::memcpy(page, code, sizeof code);
  if (mprotect(page, 4096, PROT_READ | PROT_EXEC) != 0) return plain;
  return reinterpret_cast<Loop>(page);
}();

extern "C" void launch(const Args& args) {
  constexpr int kWhole = N / 8 * 8;
  loop(args.x, args.z, args.y, 4l * kWhole);
  plain(args.x + kWhole, args.z + kWhole, args.y + kWhole, 4l * (N - kWhole));
}
