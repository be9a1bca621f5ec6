// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < N; ++i) {
    args.inverse[i] = 1.0 / args.x[i];
    args.tiny[i] = args.x[i] * 1e-40f;
  }
}
