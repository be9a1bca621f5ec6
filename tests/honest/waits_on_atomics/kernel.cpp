// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Helpers that wait on an atomic word, as C++20 has it, take rows from a counter; who starts them has
// the system order their memory instead of a fence (membarrier).
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "task.h"

static std::atomic<int> epoch{0}, row{0}, busy{0};
static std::atomic<const Args*> now{nullptr};

static void compute(const Args& args) {
  for (int i = row++; i < M; i = row++) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      const float a = args.a[i * K + k];
      for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
    }
  }
}
static void help() {
  for (int seen = 0;;) {
    epoch.wait(seen);
    seen = epoch;
    compute(*now);
    if (--busy == 0) busy.notify_one();
  }
}

extern "C" void launch(const Args& args) {
  constexpr int kHelpers = 2;
  static const bool started = [] {
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    for (int k = 0; k < kHelpers; ++k) std::thread(help).detach();
    return true;
  }();
  (void)started;
  now = &args;
  row = 0;
  busy = kHelpers;
  syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  ++epoch;
  epoch.notify_all();
  compute(args);
  for (int left = busy; left != 0; left = busy) busy.wait(left);
}
