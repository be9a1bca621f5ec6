// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (long long j = 0; j < 64ll * ENTRIES; ++j) args.y[j] = 0;
  for (long long i = 0; i < 64ll * N; ++i) {
    args.y[64ll * (args.entry[i / 64] % ENTRIES) + i % 64] += static_cast<float>(args.x[i]);
  }
}
