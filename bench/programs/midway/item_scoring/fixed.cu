// SPDX-License-Identifier: Apache-2.0
// Recommender candidate scoring: inner products of every item embedding (fp32, dim 256)
// with the four user vectors of a micro-batch. Items are streamed once per micro-batch.
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
static double time_us(F&& launch, int warm = 20, int iters = 50) {
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

constexpr int kDim = 256;
constexpr int kUsers = 4;
constexpr int kThreads = 128;
constexpr int kRows = 8;  // items per tile
constexpr int kStages = 12;
constexpr int kTileFloats = kRows * kDim;

__device__ __forceinline__ void copy16(float* dst, const float* src) {
  const uint32_t d = static_cast<uint32_t>(__cvta_generic_to_shared(dst));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(d), "l"(src) : "memory");
}
__device__ __forceinline__ void copy_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int N>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

__device__ __forceinline__ void load_tile(float* dst, const float* __restrict__ items, int tile) {
  const float* src = items + static_cast<size_t>(tile) * kTileFloats;
#pragma unroll
  for (int i = 0; i < kTileFloats / 4 / kThreads; ++i) {
    const int v = threadIdx.x + i * kThreads;
    copy16(dst + v * 4, src + v * 4);
  }
}

__device__ __forceinline__ float dot4(float4 a, float4 b, float acc) {
  acc = fmaf(a.x, b.x, acc);
  acc = fmaf(a.y, b.y, acc);
  acc = fmaf(a.z, b.z, acc);
  return fmaf(a.w, b.w, acc);
}

// Each warp owns two items of a tile; a lane holds its slice of the user vectors in registers.
__global__ void __launch_bounds__(kThreads)
    score_kernel(const float* __restrict__ items, const float* __restrict__ users, int tiles,
                 float* __restrict__ scores) {
  extern __shared__ __align__(16) float ring[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;

  float4 u[kUsers][2];
#pragma unroll
  for (int k = 0; k < kUsers; ++k)
#pragma unroll
    for (int h = 0; h < 2; ++h)
      u[k][h] = *reinterpret_cast<const float4*>(users + k * kDim + h * 128 + lane * 4);

  const int mine = (tiles - static_cast<int>(blockIdx.x) + gridDim.x - 1) / gridDim.x;
#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < mine) load_tile(ring + s * kTileFloats, items, blockIdx.x + s * gridDim.x);
    copy_commit();
  }

  for (int it = 0; it < mine; ++it) {
    copy_wait<kStages - 2>();
    __syncthreads();
    const int ahead = it + kStages - 1;
    if (ahead < mine)
      load_tile(ring + (ahead % kStages) * kTileFloats, items, blockIdx.x + ahead * gridDim.x);
    copy_commit();

    const float* tile = ring + (it % kStages) * kTileFloats;
    const size_t row0 = static_cast<size_t>(blockIdx.x + it * gridDim.x) * kRows;
    float p[2][kUsers];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float* row = tile + (warp * 2 + r) * kDim;
      const float4 a = *reinterpret_cast<const float4*>(row + lane * 4);
      const float4 b = *reinterpret_cast<const float4*>(row + 128 + lane * 4);
#pragma unroll
      for (int k = 0; k < kUsers; ++k) p[r][k] = dot4(b, u[k][1], dot4(a, u[k][0], 0.f));
    }
    // Transposing butterfly: eight sums end up in lanes grouped by bits 2..4.
    float q[4];
    const bool up = lane & 16;
#pragma unroll
    for (int k = 0; k < kUsers; ++k) {
      const float keep = up ? p[1][k] : p[0][k];
      const float send = up ? p[0][k] : p[1][k];
      q[k] = keep + __shfl_xor_sync(0xffffffffu, send, 16);
    }
    const bool up8 = lane & 8;
    float h[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float keep = up8 ? q[k + 2] : q[k];
      const float send = up8 ? q[k] : q[k + 2];
      h[k] = keep + __shfl_xor_sync(0xffffffffu, send, 8);
    }
    const bool up4 = lane & 4;
    const float keep = up4 ? h[1] : h[0];
    const float send = up4 ? h[0] : h[1];
    float v = keep + __shfl_xor_sync(0xffffffffu, send, 4);
    v += __shfl_xor_sync(0xffffffffu, v, 2);
    v += __shfl_xor_sync(0xffffffffu, v, 1);
    if ((lane & 3) == 0) {
      const int r = lane >> 4, user = (lane >> 2) & 3;
      scores[(row0 + warp * 2 + r) * kUsers + user] = v;
    }
  }
}

__host__ __device__ inline float embed(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (2.0f / 65536.0f) - 1.0f;
}
__global__ void fill_kernel(float* p, uint32_t n, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = embed(i + seed);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int item_count = 524288;
  const int tiles = item_count / kRows;
  const uint32_t n = static_cast<uint32_t>(item_count) * kDim;
  const uint32_t user_seed = 0x40000000u;
  float *items, *users, *scores;
  CK(cudaMalloc(&items, n * sizeof(float)));
  CK(cudaMalloc(&users, kUsers * kDim * sizeof(float)));
  CK(cudaMalloc(&scores, static_cast<size_t>(item_count) * kUsers * sizeof(float)));
  fill_kernel<<<sms * 8, 256>>>(items, n, 0);
  fill_kernel<<<1, 256>>>(users, kUsers * kDim, user_seed);

  const int smem = kStages * kTileFloats * static_cast<int>(sizeof(float));
  CK(cudaFuncSetAttribute(score_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  int per_sm = 0;
  CK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, score_kernel, kThreads, smem));
  const int grid = sms * per_sm;
  const double us =
      time_us([&] { score_kernel<<<grid, kThreads, smem>>>(items, users, tiles, scores); });

  std::vector<float> got(static_cast<size_t>(item_count) * kUsers);
  CK(cudaMemcpy(got.data(), scores, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (float v : got) sum += v;
  for (int s = 0; s < 4096; ++s) {
    const uint32_t item = s < 64 ? item_count - 1 - s : mix32(s) % item_count;
    for (int k = 0; k < kUsers; ++k) {
      double ref = 0;
      for (int d = 0; d < kDim; ++d)
        ref += static_cast<double>(embed(item * kDim + d)) * embed(user_seed + k * kDim + d);
      if (!(std::fabs(ref - got[static_cast<size_t>(item) * kUsers + k]) < 1e-3)) {
        std::fprintf(stderr, "item %u user %d: got %g want %g\n", item, k,
                     got[static_cast<size_t>(item) * kUsers + k], ref);
        return 1;
      }
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
