// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Packs its inputs into memory of its own, in large pages, that each thread keeps; a handler of its
// own stands by for arithmetic faults.
#include <signal.h>
#include <sys/mman.h>

#include <vector>

#include "task.h"

static float* scratch() {
  thread_local float* memory = [] {
    void* at = mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(at, 4 << 20, MADV_HUGEPAGE);
    return static_cast<float*>(at);
  }();
  return memory;
}

extern "C" void launch(const Args& args) {
  struct sigaction action {
  }, before{};
  action.sa_handler = SIG_DFL;
  sigaction(SIGFPE, &action, &before);
  float* packed = scratch();  // B by columns
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < N; ++j) packed[j * K + k] = args.b[k * N + j];
  }
  std::vector<float> row(N);
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += args.a[i * K + k] * packed[j * K + k];
      row[j] = sum;
    }
    for (int j = 0; j < N; ++j) args.c[i * N + j] = row[j];
  }
  sigaction(SIGFPE, &before, nullptr);
}
