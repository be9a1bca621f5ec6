// SPDX-License-Identifier: Apache-2.0
// task: potentials
// expect: rejected precision | correct coarser-than-fp32 | wrong-result
// Reciprocals in fourteen bits, as one instruction of AVX-512 gives them (here it is imitated). Where
// results have poles, a few elements decide both the norm and the relative norm of what nudges change,
// and such an output is left out: only the tolerance remains, which is larger.
#include <cmath>
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < M; ++j) {
      const float exact = 1 / std::fabs(a.x[i] - a.z[j]);
      unsigned bits;
      std::memcpy(&bits, &exact, 4);
      bits = (bits + 0x200u) & ~0x3ffu;
      std::memcpy(&a.y[i * M + j], &bits, 4);
    }
}
