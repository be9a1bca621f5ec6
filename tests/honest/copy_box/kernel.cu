// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Copies boxes of three dimensions, one of which does not begin at the front.
#include "task.h"

constexpr std::size_t kWidth = 4096, kHeight = 16, kSlice = kWidth * kHeight;  // bytes, rows
constexpr std::size_t kSlices = N * sizeof(float) / kSlice, kFirst = 100;
static_assert(kSlices > kFirst);

__global__ void axpy(const float* w, const float* z, float* y) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i < N) y[i] = 2 * w[i] + z[i];
}

static void copy_slices(const float* from, float* to, std::size_t first, std::size_t count,
                        cudaStream_t stream) {
  cudaMemcpy3DParms box{};
  box.srcPtr = make_cudaPitchedPtr(const_cast<float*>(from), kWidth, kWidth, kHeight);
  box.dstPtr = make_cudaPitchedPtr(to, kWidth, kWidth, kHeight);
  box.srcPos = box.dstPos = make_cudaPos(0, 0, first);
  box.extent = make_cudaExtent(kWidth, kHeight, count);
  box.kind = cudaMemcpyDeviceToDevice;
  cudaMemcpy3DAsync(&box, stream);
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  auto* w = static_cast<float*>(args.workspace);
  copy_slices(args.x, w, 0, kFirst, stream);
  copy_slices(args.x, w, kFirst, kSlices - kFirst, stream);
  const std::size_t done = kSlices * kSlice / sizeof(float);
  cudaMemcpyAsync(w + done, args.x + done, N * sizeof(float) - kSlices * kSlice,
                  cudaMemcpyDeviceToDevice, stream);
  axpy<<<(N + 255) / 256, 256, 0, stream>>>(w, args.z, args.y);
}
