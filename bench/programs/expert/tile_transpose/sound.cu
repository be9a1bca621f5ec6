// SPDX-License-Identifier: Apache-2.0
// Transposition of a batch of matrices of 32-bit values: 64x64 tiles through shared memory,
// 16-byte accesses to global memory on both sides.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t err_ = (call);                                                       \
    if (err_ != cudaSuccess) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                        \
                   cudaGetErrorString(err_));                                        \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (0)

template <class F>
static double time_us(F&& launch, int warm = 10, int iters = 50) {
  for (int i = 0; i < warm; ++i) launch();
  CK(cudaGetLastError());
  CK(cudaDeviceSynchronize());
  cudaEvent_t a, b;
  CK(cudaEventCreate(&a));
  CK(cudaEventCreate(&b));
  CK(cudaEventRecord(a));
  for (int i = 0; i < iters; ++i) launch();
  CK(cudaEventRecord(b));
  CK(cudaEventSynchronize(b));
  float ms = 0.f;
  CK(cudaEventElapsedTime(&ms, a, b));
  CK(cudaEventDestroy(a));
  CK(cudaEventDestroy(b));
  return 1000.0 * ms / iters;
}

__host__ __device__ inline uint32_t mix32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352dU;
  x ^= x >> 15;
  x *= 0x846ca68bU;
  x ^= x >> 16;
  return x;
}

constexpr int kTile = 64;
constexpr int kThreads = 256;

// Word (r, c) of the tile; 16-byte groups of a row are permuted by the row.
__device__ __forceinline__ int at(int r, int c) {
  return r * kTile + ((((c >> 2) ^ (r >> 2)) & 15) << 2) + (c & 3);
}

__global__ void __launch_bounds__(kThreads)
    transpose_kernel(const uint32_t* __restrict__ in, uint32_t* __restrict__ out, int rows,
                     int columns) {
  __shared__ __align__(16) uint32_t tile[kTile * kTile];
  const size_t image = static_cast<size_t>(blockIdx.z) * rows * columns;
  const int r0 = blockIdx.y * kTile, c0 = blockIdx.x * kTile;
  const int part = threadIdx.x & 15, line = threadIdx.x >> 4;
  const uint32_t* src = in + image + static_cast<size_t>(r0) * columns + c0;
  uint4 v[kTile / 16];
#pragma unroll
  for (int i = 0; i < kTile / 16; ++i)
    v[i] = __ldcs(reinterpret_cast<const uint4*>(
        src + static_cast<size_t>(line + i * 16) * columns + part * 4));
#pragma unroll
  for (int i = 0; i < kTile / 16; ++i)
    *reinterpret_cast<uint4*>(tile + at(line + i * 16, part * 4)) = v[i];
  __syncthreads();
  const int half = threadIdx.x & 7, sub = threadIdx.x >> 3 & 3, rest = threadIdx.x >> 5;
  uint32_t* dst = out + image + static_cast<size_t>(c0) * rows + r0;
#pragma unroll
  for (int i = 0; i < kTile / 16; ++i) {
    const int c = i * 16 + (rest >> 1) * 4 + sub, r = ((rest & 1) * 8 + half) * 4;
    __stcs(reinterpret_cast<uint4*>(dst + static_cast<size_t>(c) * rows + r),
           make_uint4(tile[at(r, c)], tile[at(r + 1, c)], tile[at(r + 2, c)], tile[at(r + 3, c)]));
  }
}

__global__ void fill_kernel(uint32_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = mix32(i);
}

int main() {
  const int images = 16, rows = 1536, columns = 4096;
  const uint32_t n = static_cast<uint32_t>(images) * rows * columns;
  uint32_t *in, *out;
  CK(cudaMalloc(&in, static_cast<size_t>(n) * 4));
  CK(cudaMalloc(&out, static_cast<size_t>(n) * 4));
  fill_kernel<<<2048, 256>>>(in, n);
  const dim3 grid(columns / kTile, rows / kTile, images);
  const double us =
      time_us([&] { transpose_kernel<<<grid, kThreads>>>(in, out, rows, columns); });

  std::vector<uint32_t> got(n);
  CK(cudaMemcpy(got.data(), out, static_cast<size_t>(n) * 4, cudaMemcpyDeviceToHost));
  uint64_t sum = 0;
  for (uint32_t v : got) sum += v;
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t c = i % columns, r = i / columns % rows, b = i / columns / rows;
    const uint32_t g = got[(static_cast<size_t>(b) * columns + c) * rows + r];
    if (g != mix32(i)) {
      std::fprintf(stderr, "image %u row %u column %u is wrong\n", b, r, c);
      return 1;
    }
  }
  std::printf("checksum: %llu\n", static_cast<unsigned long long>(sum));
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
