// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Asks about its threads by their numbers, places them by attributes from the start, names them and
// measures their processor time.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "task.h"

static const Args* now = nullptr;
static bool fine = true;

static void* half(void*) {
  for (int i = N / 2; i < N; ++i) now->y[i] = 2 * now->x[i] + now->z[i];
  return nullptr;
}

extern "C" void launch(const Args& args) {
  now = &args;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  cpu_set_t set;
  fine = fine && sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0;
  pthread_attr_setaffinity_np(&attributes, sizeof set, &set);
  pthread_t thread;
  fine = fine && pthread_create(&thread, &attributes, half, nullptr) == 0;
  if (!fine) return;
  clockid_t clock;
  timespec used{};
  pthread_setname_np(thread, "half");
  pthread_setname_np(pthread_self(), "other half");
  if (pthread_getcpuclockid(pthread_self(), &clock) == 0) fine = clock_gettime(clock, &used) == 0;
  fine = fine && clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used) == 0;
  fine = fine && pthread_getaffinity_np(pthread_self(), sizeof set, &set) == 0;
  for (int i = 0; i < N / 2; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  pthread_join(thread, nullptr);
}
