// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: crashed | rejected | timed-out
// Returns at once, but leaves hundreds of threads in line for a lock of the system's, each about to
// change the protection of gigabytes: none of them can stop before it has had its turn. Each stop
// takes some seconds, less than the ten after which it would be ended, and no limit on a call counts
// them. There are dozens in a turn, so an evaluation takes hours. (In the slot of warm-ups it is
// quick, so that turns hold many calls.)
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "task.h"

constexpr std::size_t kBytes = std::size_t{3} << 30;
static char* region = nullptr;
static std::atomic<int> epoch{0}, waiting{0}, entered{0};
static int threads = 0;

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}
static void wait_for_change(std::atomic<int>& word, int seen) {
  syscall(SYS_futex, &word, 128, seen, nullptr, nullptr, 0);
}
static void* stand_in_line(void*) {
  for (int seen = 0;;) {
    ++waiting;
    while (epoch == seen) wait_for_change(epoch, seen);
    seen = epoch;
    ++entered;
    mprotect(region, kBytes, entered % 2 == 0 ? PROT_READ : PROT_NONE);
  }
}
static void prepare() {
  region = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (region == MAP_FAILED) return;
  madvise(region, kBytes, 15 /* MADV_NOHUGEPAGE */);
  madvise(region, kBytes, 22 /* MADV_POPULATE_READ: the page of zeros, over and over */);
  const double start = now();
  for (int k = 0; k < 4; ++k) mprotect(region, kBytes, k % 2 == 0 ? PROT_NONE : PROT_READ);
  const double each = (now() - start) / 4;
  const int wanted = int(2 / each);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  for (int k = 0; k < (wanted < 3000 ? wanted : 3000); ++k) {
    pthread_t thread;
    if (pthread_create(&thread, &small, stand_in_line, nullptr) != 0) break;
    ++threads;
  }
}

extern "C" void launch(const Args& args) {
  static const bool ready = (prepare(), true);
  (void)ready;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  if (reinterpret_cast<std::uintptr_t>(args.y) % 4096 == 0 || waiting < threads) return;
  waiting = 0;
  entered = 0;
  ++epoch;
  syscall(SYS_futex, &epoch, 129, 1 << 30, nullptr, nullptr, 0);
  while (entered < threads) syscall(SYS_sched_yield);
}
