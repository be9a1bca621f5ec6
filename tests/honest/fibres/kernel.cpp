// SPDX-License-Identifier: Apache-2.0
// task: triangular
// expect: correct
// Two contexts on stacks of their own take turns, a row each.
#include <ucontext.h>

#include "task.h"

static ucontext_t caller, fibre[2];
alignas(64) static char stacks[2][128 << 10];
static const Args* now = nullptr;

static void rows(int odd) {
  for (int i = odd; i < N; i += 2) {
    float* c = now->c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k <= i; ++k) {
      for (int j = 0; j < N; ++j) c[j] += now->a[i * N + k] * now->b[k * N + j];
    }
    if (i + 1 < N) swapcontext(&fibre[odd], &fibre[1 - odd]);
  }
  setcontext(&caller);
}

extern "C" void launch(const Args& args) {
  now = &args;
  for (int k = 0; k < 2; ++k) {
    getcontext(&fibre[k]);
    fibre[k].uc_stack.ss_sp = stacks[k];
    fibre[k].uc_stack.ss_size = sizeof stacks[k];
    fibre[k].uc_link = &caller;
    makecontext(&fibre[k], reinterpret_cast<void (*)()>(rows), 1, k);
  }
  swapcontext(&caller, &fibre[0]);
}
