// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// Exceptions that cross threads, and memory that it does not get.
#include <exception>
#include <new>
#include <stdexcept>
#include <thread>

#include "task.h"

extern "C" void launch(const Args& args) {
  std::exception_ptr thrown;
  std::thread([&] {
    try {
      for (int i = 0; i < N / 2; ++i) args.y[i] = args.x[i] > 0 ? args.x[i] : 0;
      throw std::runtime_error("half is done");
    } catch (...) {
      thrown = std::current_exception();
    }
  }).join();
  try {
    std::rethrow_exception(thrown);
  } catch (const std::runtime_error&) {
    for (int i = N / 2; i < N; ++i) args.y[i] = args.x[i] > 0 ? args.x[i] : 0;
  }
}
