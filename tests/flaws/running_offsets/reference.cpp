// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  int sum = 0;
  for (long long i = 0; i < N; ++i) {
    args.y[i] = sum;
    sum += args.count[i];
  }
}
