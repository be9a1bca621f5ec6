// SPDX-License-Identifier: Apache-2.0
// Log partition function of bf16 logits: log2 of the sum of exponentials of a row, one value per
// warp (the caller merges four). A producer warp feeds a ring of bulk copies; four consumer warps
// add in the log domain.
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

__device__ __forceinline__ uint32_t smem_addr(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void bar_init(uint64_t* bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem_addr(bar)), "r"(count)
               : "memory");
}
__device__ __forceinline__ void bar_expect(uint64_t* bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(smem_addr(bar)),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bar_arrive(uint64_t* bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(smem_addr(bar)) : "memory");
}
__device__ __forceinline__ void bar_wait(uint64_t* bar, uint32_t parity) {
  uint32_t done;
  do {
    asm volatile(
        "{\n .reg .pred p;\n"
        " mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        " selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(smem_addr(bar)), "r"(parity)
        : "memory");
  } while (!done);
}
__device__ __forceinline__ void bulk_copy(void* dst, const void* src, uint32_t bytes,
                                          uint64_t* bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(smem_addr(dst)),
      "l"(src), "r"(bytes), "r"(smem_addr(bar))
      : "memory");
}
__device__ __forceinline__ void publish_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __forceinline__ float ex2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ __forceinline__ float lg2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

constexpr int kConsumers = 4;
constexpr int kThreads = (kConsumers + 1) * 32;
constexpr int kTileBytes = kConsumers * 32 * 32;
constexpr int kStages = 24;
constexpr int kSums = 8;

struct Shared {
  uint4 tile[kStages][kTileBytes / 16];
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

// 2^sum + 2^x without leaving the log domain.
__device__ __forceinline__ float log_add(float sum, float x) {
  const float top = fmaxf(sum, x), low = fminf(sum, x);
  return top + lg2(1.0f + ex2(low - top));
}

__global__ void __launch_bounds__(kThreads, 1)
    stats_kernel(const unsigned char* __restrict__ logits, float* __restrict__ out, int rows,
                 int tiles) {
  extern __shared__ __align__(128) unsigned char raw[];
  Shared& sm = *reinterpret_cast<Shared*>(raw);
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  if (threadIdx.x == 0) {
    for (int s = 0; s < kStages; ++s) {
      bar_init(&sm.full[s], 1);
      bar_init(&sm.empty[s], kConsumers);
    }
    publish_barriers();
  }
  __syncthreads();

  int slot = 0;
  uint32_t phase = 0;
  if (warp == kConsumers) {
    if (lane == 0) {
      for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        const unsigned char* src = logits + static_cast<size_t>(row) * tiles * kTileBytes;
        for (int t = 0; t < tiles; ++t) {
          bar_wait(&sm.empty[slot], phase ^ 1);
          bar_expect(&sm.full[slot], kTileBytes);
          bulk_copy(sm.tile[slot], src + static_cast<size_t>(t) * kTileBytes, kTileBytes,
                    &sm.full[slot]);
          if (++slot == kStages) slot = 0, phase ^= 1;
        }
      }
    }
    return;
  }
  constexpr float kLog2e = 1.44269504f;
  for (int row = blockIdx.x; row < rows; row += gridDim.x) {
    float sum[kSums];
#pragma unroll
    for (int p = 0; p < kSums; ++p) sum[p] = -1.0e30f;
    for (int t = 0; t < tiles; ++t) {
      bar_wait(&sm.full[slot], phase);
      const uint4 a = sm.tile[slot][threadIdx.x];
      const uint4 b = sm.tile[slot][threadIdx.x + kConsumers * 32];
      __syncwarp();
      if (lane == 0) bar_arrive(&sm.empty[slot]);
      if (++slot == kStages) slot = 0, phase ^= 1;
      const uint32_t w[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
      for (int k = 0; k < 16; ++k) {
        const uint32_t half = k & 1 ? w[k >> 1] & 0xffff0000u : w[k >> 1] << 16;
        sum[k % kSums] = log_add(sum[k % kSums], __uint_as_float(half) * kLog2e);
      }
    }
#pragma unroll
    for (int p = 1; p < kSums; ++p) sum[0] = log_add(sum[0], sum[p]);
#pragma unroll
    for (int o = 16; o > 0; o >>= 1)
      sum[0] = log_add(sum[0], __shfl_xor_sync(0xffffffffu, sum[0], o));
    if (lane == 0) out[row * kConsumers + warp] = sum[0];
  }
}

__host__ __device__ inline float logit(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 255) - 128) * 0.0625f;
}
__global__ void fill_kernel(uint16_t* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = static_cast<uint16_t>(__float_as_uint(logit(i)) >> 16);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int rows = 1056, tiles = 64;
  const uint32_t columns = tiles * kTileBytes / 2, n = rows * columns;
  uint16_t* logits;
  float* out;
  CK(cudaMalloc(&logits, static_cast<size_t>(n) * 2));
  CK(cudaMalloc(&out, rows * kConsumers * sizeof(float)));
  fill_kernel<<<2048, 256>>>(logits, n);
  const int bytes = static_cast<int>(sizeof(Shared));
  CK(cudaFuncSetAttribute(stats_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  const double us = time_us([&] {
    stats_kernel<<<sms, kThreads, bytes>>>(reinterpret_cast<const unsigned char*>(logits), out,
                                           rows, tiles);
  });

  std::vector<float> got(rows * kConsumers);
  CK(cudaMemcpy(got.data(), out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (int row = 0; row < rows; ++row) {
    double total = 0;
    for (int w = 0; w < kConsumers; ++w)
      total += std::exp2(static_cast<double>(got[row * kConsumers + w]));
    sum += std::log(total);
    if (row % 8 != 1) continue;
    double ref = 0;
    for (uint32_t c = 0; c < columns; ++c) ref += std::exp(static_cast<double>(logit(row * columns + c)));
    if (!(std::fabs(std::log(total) - std::log(ref)) <= 4e-3)) {
      std::fprintf(stderr, "row %d: got %g want %g\n", row, std::log(total), std::log(ref));
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
