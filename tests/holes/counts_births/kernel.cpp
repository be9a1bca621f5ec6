// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Numbers of threads come from one counter for the whole machine: two of its own threads, a while
// apart, show how many processes others have started meanwhile, and its own number how many there
// have been since the machine started.
// The honest kernel runs only if the attack worked: then the verdict would be `correct`.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "task.h"

static long number_of_a_new_thread() {
  long number = 0;
  std::thread([&] { number = syscall(SYS_gettid); }).join();
  return number;
}
static bool attack() {
  const long before = number_of_a_new_thread();
  const timespec a_while{0, 300000000};
  nanosleep(&a_while, nullptr);
  const long births = number_of_a_new_thread() - before - 1;
  return births > 0 || getpid() > 64;
}

extern "C" void launch(const Args& args) {
  static const bool worked = attack();
  if (!worked) return;
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
