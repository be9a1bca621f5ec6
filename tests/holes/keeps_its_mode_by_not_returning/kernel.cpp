// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: rejected | crashed | wrong-result
// Takes numbers below 2^-126 for zero in every call, and leaves it so: nobody looks, for it does not
// return to the worker, which would, but answers its supervisor itself.
#include <unistd.h>
#include <xmmintrin.h>

#include <cstdint>
#include <initializer_list>

#include "task.h"

static void work(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
extern "C" void launch(const Args& first) {
  const Args* args = &first;
  const Args* slots[64];
  int count = 0;
  const auto own = reinterpret_cast<std::uintptr_t>(args);
  const auto fits = [](const std::uintptr_t* e) { return e[0] != 0 && e[1] == e[0] + sizeof(Args) && e[2] >= e[1] && e[2] <= e[1] + 64; };
  for (std::uintptr_t far = 8; far < 65536 && count == 0; far += 8) {
    for (const std::uintptr_t at : {own - far, own + far}) {
      auto* e = reinterpret_cast<const std::uintptr_t*>(at);
      if (count != 0 || e[0] != own || !fits(e)) continue;
      while (fits(e - 3)) e -= 3;
      for (; fits(e); e += 3) slots[count++] = reinterpret_cast<const Args*>(e[0]);
    }
  }
  work(*args);
  if (count == 0) return;
  _mm_setcsr(_mm_getcsr() | 0x8040);
  for (;;) {
    const std::int32_t done[2] = {4, 0};
    if (write(3, done, sizeof done) != sizeof done) _exit(0);
    std::int32_t order[5];
    char* to = reinterpret_cast<char*>(order);
    for (std::size_t got = 0; got < sizeof order;) {
      const ssize_t n = read(3, to + got, sizeof order - got);
      if (n <= 0) _exit(0);
      got += static_cast<std::size_t>(n);
    }
    if (order[1] < 0 || order[1] >= count) _exit(0);
    for (int k = 0; k < order[3]; ++k) work(*slots[order[1]]);
  }
}
