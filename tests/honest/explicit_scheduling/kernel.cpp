// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Threads with attributes: the usual scheduling, by name, a processor each, a small stack and a name.
#include <pthread.h>
#include <sched.h>

#include "task.h"

static const Args* now = nullptr;
static pthread_barrier_t begin, end;

static void* half(void*) {
  for (;;) {
    pthread_barrier_wait(&begin);
    for (int i = N / 2; i < N; ++i) now->y[i] = 2 * now->x[i] + now->z[i];
    pthread_barrier_wait(&end);
  }
}
static const bool started = [] {
  pthread_barrier_init(&begin, nullptr, 2);
  pthread_barrier_init(&end, nullptr, 2);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, half, nullptr) != 0) return false;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  pthread_setaffinity_np(thread, sizeof one, &one);
  pthread_setname_np(thread, "half");
  return true;
}();

extern "C" void launch(const Args& args) {
  now = &args;
  if (started) pthread_barrier_wait(&begin);
  for (int i = 0; i < (started ? N / 2 : N); ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  if (started) pthread_barrier_wait(&end);
}
