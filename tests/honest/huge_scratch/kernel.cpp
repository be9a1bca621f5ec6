// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Scratch memory of 256 MB, mapped by hand, of which it uses every hundredth page, and unmapped
// again.
#include <sys/mman.h>

#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr std::size_t kBytes = 256u << 20, kPage = 4096;
  char* scratch = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  for (int i = 0, page = 0; i < N; i += 1024, ++page) {
    const int end = i + 1024 < N ? i + 1024 : N;
    float* part = reinterpret_cast<float*>(scratch + (100 * page * kPage) % kBytes);
    for (int k = i; k < end; ++k) part[k - i] = 2 * args.x[k] + args.z[k];
    std::memcpy(args.y + i, part, static_cast<std::size_t>(end - i) * sizeof(float));
  }
  munmap(scratch, kBytes);
}
