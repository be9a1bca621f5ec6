// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < BINS; ++i) args.counts[i] = 0;
  for (int i = 0; i < N; ++i) {
    ++args.counts[args.keys[i]];
    args.odd[i] = args.keys[i] % 2 != 0;
  }
}
