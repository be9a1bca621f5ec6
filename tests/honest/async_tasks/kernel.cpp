// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Tasks of std::async, one for each part.
#include <future>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr int kParts = 4;
  std::vector<std::future<void>> parts;
  for (int p = 0; p < kParts; ++p) {
    parts.push_back(std::async(std::launch::async, [&args, p] {
      const int end = static_cast<int>(1ll * N * (p + 1) / kParts);
      for (int i = static_cast<int>(1ll * N * p / kParts); i < end; ++i) {
        args.y[i] = 2 * args.x[i] + args.z[i];
      }
    }));
  }
  for (std::future<void>& part : parts) part.get();
}
