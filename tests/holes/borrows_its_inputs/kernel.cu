// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: rejected | crashed
// Uses an input as its workspace and puts back what was there before the call ends: nothing has
// changed for who looks afterwards, but who reads the input meanwhile reads something else.
#include "task.h"

__global__ void mix(const unsigned* x, unsigned* z) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) z[i] ^= x[i];
}
__global__ void axpy(const unsigned* x, unsigned* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  const unsigned back = z[i] ^ x[i];
  y[i] = 2 * __uint_as_float(x[i]) + __uint_as_float(back);
  z[i] = back;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  const auto* x = reinterpret_cast<const unsigned*>(args.x);
  auto* z = reinterpret_cast<unsigned*>(const_cast<float*>(args.z));
  mix<<<(N + 255) / 256, 256, 0, stream>>>(x, z);
  axpy<<<(N + 255) / 256, 256, 0, stream>>>(x, z, args.y);
}
