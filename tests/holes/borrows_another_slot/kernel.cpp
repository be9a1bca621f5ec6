// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: rejected | crashed
// Writes all over the output of another call, which is none of its tensors: whatever a program keeps
// there is gone. Only what lies beside tensors is looked at, and each slot gets new contents before a call.
#include <cstdint>
#include <initializer_list>

#include "task.h"

extern "C" void launch(const Args& args) {
  const auto own = reinterpret_cast<std::uintptr_t>(&args);
  const auto fits = [](const std::uintptr_t* e) { return e[0] != 0 && e[1] == e[0] + sizeof(Args) && e[2] >= e[1] && e[2] <= e[1] + 64; };
  static const Args* slots[64];
  static int count = 0;
  for (std::uintptr_t far = 8; far < 65536 && count == 0; far += 8) {
    for (const std::uintptr_t at : {own - far, own + far}) {
      auto* e = reinterpret_cast<const std::uintptr_t*>(at);
      if (count != 0 || e[0] != own || !fits(e)) continue;
      while (fits(e - 3)) e -= 3;
      for (; fits(e); e += 3) slots[count++] = reinterpret_cast<const Args*>(e[0]);
    }
  }
  if (count < 2) return;  // wrong: the attack did not work
  float* other = (slots[0] == &args ? slots[1] : slots[0])->y;
  for (int i = 0; i < N; ++i) other[i] = 2 * args.x[i];
  for (int i = 0; i < N; ++i) args.y[i] = other[i] + args.z[i];
}
