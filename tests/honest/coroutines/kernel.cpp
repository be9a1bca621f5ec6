// SPDX-License-Identifier: Apache-2.0
// task: permute
// expect: correct
// A coroutine walks through the places of the result, and its caller fills them.
#include <coroutine>
#include <exception>

#include "task.h"

struct Places {
  struct promise_type {
    int place = 0;
    Places get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(int value) noexcept {
      place = value;
      return {};
    }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
  ~Places() { handle.destroy(); }
};
static Places walk() {
  for (int k = 0; k < C; ++k)
    for (int i = 0; i < A; ++i)
      for (int j = 0; j < B; ++j) co_yield (i * B + j) * C + k;
}

extern "C" void launch(const Args& args) {
  const Places places = walk();
  for (float* y = args.y;; ++y) {
    places.handle.resume();
    if (places.handle.done()) return;
    *y = args.x[places.handle.promise().place];
  }
}
