// SPDX-License-Identifier: Apache-2.0
// Mastering stage of an audio pipeline: gain ramp and soft clipper over interleaved float
// samples. One persistent block per SM: a producer warp feeds a bulk-copy ring, eight consumer
// warps process 4 KB tiles and store the result.
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

constexpr int kConsumers = 8;
constexpr int kThreads = (kConsumers + 1) * 32;
constexpr int kTile = kConsumers * 32 * 4;
constexpr int kStages = 32;

struct Shared {
  float tile[kStages][kTile];
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

__host__ __device__ inline float soft_clip(float x) {
  const float c = fminf(fmaxf(x, -1.5f), 1.5f);
  return c - (4.0f / 27.0f) * c * c * c;
}

struct Ring {
  int slot = 0;
  uint32_t phase = 0;
  __device__ __forceinline__ void next() {
    if (++slot == kStages) {
      slot = 0;
      phase ^= 1;
    }
  }
};

__global__ void __launch_bounds__(kThreads, 1)
    master_kernel(const float* __restrict__ in, float* __restrict__ out, int tiles, float gain,
                  float slope) {
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

  Ring ring;
  if (warp == kConsumers) {
    if (lane == 0) {
      for (int t = blockIdx.x; t < tiles; t += gridDim.x, ring.next()) {
        bar_wait(&sm.empty[ring.slot], ring.phase ^ 1);
        bar_expect(&sm.full[ring.slot], kTile * sizeof(float));
        bulk_copy(sm.tile[ring.slot], in + static_cast<size_t>(t) * kTile,
                  kTile * sizeof(float), &sm.full[ring.slot]);
      }
    }
    return;
  }
  for (int t = blockIdx.x; t < tiles; t += gridDim.x, ring.next()) {
    const float g = fmaf(slope, static_cast<float>(t), gain);
    bar_wait(&sm.full[ring.slot], ring.phase);
    float4 v = reinterpret_cast<const float4*>(sm.tile[ring.slot])[threadIdx.x];
    v.x = soft_clip(v.x * g);
    v.y = soft_clip(v.y * g);
    v.z = soft_clip(v.z * g);
    v.w = soft_clip(v.w * g);
    __stcs(reinterpret_cast<float4*>(out + static_cast<size_t>(t) * kTile) + threadIdx.x, v);
    __syncwarp();
    if (lane == 0) bar_arrive(&sm.empty[ring.slot]);
  }
}

__host__ __device__ inline float audio(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (2.0f / 65536.0f) - 1.0f;
}
__global__ void fill_kernel(float* p, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = audio(i);
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int tiles = 70000;
  const uint32_t n = static_cast<uint32_t>(tiles) * kTile;
  const float gain = 0.5f, slope = 1.0f / 65536.0f;
  float *in, *out;
  CK(cudaMalloc(&in, n * sizeof(float)));
  CK(cudaMalloc(&out, n * sizeof(float)));
  fill_kernel<<<sms * 8, 256>>>(in, n);
  CK(cudaFuncSetAttribute(master_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          static_cast<int>(sizeof(Shared))));
  const double us = time_us(
      [&] { master_kernel<<<sms, kThreads, sizeof(Shared)>>>(in, out, tiles, gain, slope); });

  std::vector<float> got(n);
  CK(cudaMemcpy(got.data(), out, n * sizeof(float), cudaMemcpyDeviceToHost));
  double sum = 0;
  for (uint32_t i = 0; i < n; ++i) {
    sum += std::fabs(got[i]);
    const float g = slope * static_cast<float>(i / kTile) + gain;
    const float ref = soft_clip(audio(i) * g);
    if (!(std::fabs(got[i] - ref) <= 1e-5f)) {
      std::fprintf(stderr, "sample %u: got %g want %g\n", i, got[i], ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
