// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// The thread that is called does nothing: another one, with 64 MB of stack that it uses by alloca,
// works for it; they wait for each other by std::atomic.
#include <alloca.h>
#include <pthread.h>

#include <atomic>
#include <cmath>

#include "task.h"

static std::atomic<const Args*> wanted{nullptr};
static void work(const Args& args) {
  double* e = static_cast<double*>(alloca(sizeof(double) * ROWS * COLS));
  for (int row = 0; row < ROWS; ++row, e += COLS) {
    const float* x = args.x + 1ll * row * COLS;
    float largest = x[0];
    double sum = 0;
    for (int i = 0; i < COLS; ++i) largest = std::fmax(largest, x[i]);
    for (int i = 0; i < COLS; ++i) sum += e[i] = std::exp2((double(x[i]) - largest) * 1.4426950408889634);
    for (int i = 0; i < COLS; ++i) args.y[1ll * row * COLS + i] = float(e[i] / sum);
  }
}
static void* serve(void*) {
  for (;;) {
    wanted.wait(nullptr);
    work(*wanted.load());
    wanted = nullptr;
    wanted.notify_all();
  }
}
extern "C" void launch(const Args& args) {
  static const bool begun = [] {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 20);
    pthread_t thread;
    return pthread_create(&thread, &attributes, serve, nullptr) == 0;
  }();
  if (!begun) return work(args);
  wanted = &args;
  wanted.notify_all();
  for (const Args* now = &args; now != nullptr; now = wanted.load()) wanted.wait(now);
}
