// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    unsigned crc = 0xffffffffu;
    for (int k = 0; k < WORDS; ++k) {
      crc ^= static_cast<unsigned>(args.word[1ll * k * N + i]);
      for (int b = 0; b < 32; ++b) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320u : 0u);
    }
    args.y[i] = static_cast<int>(~crc);
  }
}
