// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Template kernels in an unnamed namespace, with a structure as parameter.
#include "task.h"

namespace {
struct Scale {
  float by;
  int count;
};
template <class T, int vec>
__global__ void axpy(const T* x, const T* z, T* y, Scale scale) {
  const int first = (blockIdx.x * 256 + threadIdx.x) * vec;
  for (int i = first; i < min(first + vec, scale.count); ++i) y[i] = scale.by * x[i] + z[i];
}
}  // namespace

extern "C" void launch(const Args& args, cudaStream_t stream) {
  axpy<float, 4><<<(N + 1023) / 1024, 256, 0, stream>>>(args.x, args.z, args.y, Scale{2, N});
}
