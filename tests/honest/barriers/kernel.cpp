// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Threads in step by std::barrier, in each call new ones.
#include <barrier>
#include <thread>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr int kThreads = 3;
  static std::vector<float> turned(N * K);
  std::barrier step(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int k = t; k < K; k += kThreads) {
        for (int j = 0; j < N; ++j) turned[static_cast<std::size_t>(j * K + k)] = args.b[k * N + j];
      }
      step.arrive_and_wait();
      for (int i = t; i < M; i += kThreads) {
        for (int j = 0; j < N; ++j) {
          float sum = 0;
          for (int k = 0; k < K; ++k) {
            sum += args.a[i * K + k] * turned[static_cast<std::size_t>(j * K + k)];
          }
          args.c[i * N + j] = sum;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
