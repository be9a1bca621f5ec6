// SPDX-License-Identifier: Apache-2.0
#include "task.h"

// Sixteen elements a thread: one 16-byte load of the mask, two of the values.
__global__ void __launch_bounds__(128)
    dropout(const uint4* __restrict__ x, const uint4* __restrict__ mask, uint4* __restrict__ y) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i >= N / 16) return;
  const uint4 m = mask[i];
  const uint4 low = x[2 * i], high = x[2 * i + 1];
  const unsigned words[4] = {m.x, m.y, m.z, m.w};
  const unsigned in[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
  unsigned out[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    const unsigned two = words[k / 2] >> (16 * (k % 2));
    const unsigned keep = ((two & 1u) ? 0xffffu : 0u) | ((two & 0x100u) ? 0xffff0000u : 0u);
    __half2 v;
    memcpy(&v, &in[k], 4);
    v = __hadd2(v, v);
    memcpy(&out[k], &v, 4);
    out[k] &= keep;
  }
  y[2 * i] = make_uint4(out[0], out[1], out[2], out[3]);
  y[2 * i + 1] = make_uint4(out[4], out[5], out[6], out[7]);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  dropout<<<(N / 16 + 127) / 128, 128, 0, stream>>>(reinterpret_cast<const uint4*>(args.x),
                                                    reinterpret_cast<const uint4*>(args.mask),
                                                    reinterpret_cast<uint4*>(args.y));
}
