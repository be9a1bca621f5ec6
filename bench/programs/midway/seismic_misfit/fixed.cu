// SPDX-License-Identifier: Apache-2.0
// Weighted least-squares misfit between observed and synthetic seismic traces.
// Every trace sample contributes (w * (obs - syn))^2 and the zero-lag cross products;
// the result feeds the line search of a waveform inversion.
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

namespace cfg {
constexpr int kConsumerWarps = 8;
constexpr int kThreads = (kConsumerWarps + 1) * 32;
constexpr int kTile = 1024;  // samples per trace buffer in a stage
constexpr int kStages = 12;
}  // namespace cfg

struct Stage {
  float obs[cfg::kTile];
  float syn[cfg::kTile];
};
struct Shared {
  Stage stage[cfg::kStages];
  uint64_t full[cfg::kStages];
  uint64_t empty[cfg::kStages];
  float partial[cfg::kConsumerWarps][3];
};

struct Sums {
  float misfit, cross, energy;
};

__device__ __forceinline__ void accumulate(Sums& s, float o, float y, float w) {
  const float r = w * (o - y);
  s.misfit = fmaf(r, r, s.misfit);
  s.cross = fmaf(o, y, s.cross);
  s.energy = fmaf(y, y, s.energy);
}

__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
  return v;
}

__global__ void __launch_bounds__(cfg::kThreads, 1)
    misfit_kernel(const float* __restrict__ obs, const float* __restrict__ syn, int tiles,
                  float taper, float* __restrict__ block_sums) {
  extern __shared__ __align__(128) unsigned char raw[];
  Shared& sm = *reinterpret_cast<Shared*>(raw);
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (threadIdx.x == 0) {
    for (int s = 0; s < cfg::kStages; ++s) {
      bar_init(&sm.full[s], 1);
      bar_init(&sm.empty[s], cfg::kConsumerWarps);
    }
    publish_barriers();
  }
  __syncthreads();

  if (warp == cfg::kConsumerWarps) {
    if (lane == 0) {
      int slot = 0;
      uint32_t phase = 1;
      for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        bar_wait(&sm.empty[slot], phase);
        bar_expect(&sm.full[slot], sizeof(Stage));
        const size_t off = static_cast<size_t>(t) * cfg::kTile;
        bulk_copy(sm.stage[slot].obs, obs + off, cfg::kTile * 4, &sm.full[slot]);
        bulk_copy(sm.stage[slot].syn, syn + off, cfg::kTile * 4, &sm.full[slot]);
        if (++slot == cfg::kStages) {
          slot = 0;
          phase ^= 1;
        }
      }
    }
  } else {
    Sums sums = {0.f, 0.f, 0.f};
    int slot = 0;
    uint32_t phase = 0;
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
      const float w = 1.0f - taper * static_cast<float>(t & 7);
      bar_wait(&sm.full[slot], phase);
      const float4 o = reinterpret_cast<const float4*>(sm.stage[slot].obs)[threadIdx.x];
      const float4 y = reinterpret_cast<const float4*>(sm.stage[slot].syn)[threadIdx.x];
      __syncwarp();
      if (lane == 0) bar_arrive(&sm.empty[slot]);
      accumulate(sums, o.x, y.x, w);
      accumulate(sums, o.y, y.y, w);
      accumulate(sums, o.z, y.z, w);
      accumulate(sums, o.w, y.w, w);
      if (++slot == cfg::kStages) {
        slot = 0;
        phase ^= 1;
      }
    }
    const float a = warp_sum(sums.misfit), b = warp_sum(sums.cross), c = warp_sum(sums.energy);
    if (lane == 0) {
      sm.partial[warp][0] = a;
      sm.partial[warp][1] = b;
      sm.partial[warp][2] = c;
    }
  }
  __syncthreads();
  if (threadIdx.x < 3) {
    float total = 0.f;
    for (int w = 0; w < cfg::kConsumerWarps; ++w) total += sm.partial[w][threadIdx.x];
    block_sums[blockIdx.x * 3 + threadIdx.x] = total;
  }
}

__global__ void finish_kernel(const float* __restrict__ block_sums, int blocks,
                              float* __restrict__ out) {
  const int which = threadIdx.x / 32, lane = threadIdx.x % 32;
  float v = 0.f;
  for (int i = lane; i < blocks; i += 32) v += block_sums[i * 3 + which];
  v = warp_sum(v);
  if (lane == 0) out[which] = v;
}

__host__ __device__ inline float sample_obs(uint32_t i) {
  return static_cast<float>(mix32(i) & 0xffff) * (2.0f / 65536.0f) - 1.0f;
}
__host__ __device__ inline float sample_syn(uint32_t i) {
  return 0.75f * sample_obs(i) + 0.125f * sample_obs(i ^ 0x5a5a5a5aU);
}

__global__ void fill_kernel(float* obs, float* syn, uint32_t n) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    obs[i] = sample_obs(i);
    syn[i] = sample_syn(i);
  }
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int tiles = 1 << 16;
  const uint32_t n = static_cast<uint32_t>(tiles) * cfg::kTile;
  const float taper = 0.0625f;
  float *obs, *syn, *sums, *out;
  CK(cudaMalloc(&obs, n * sizeof(float)));
  CK(cudaMalloc(&syn, n * sizeof(float)));
  CK(cudaMalloc(&sums, sms * 3 * sizeof(float)));
  CK(cudaMalloc(&out, 3 * sizeof(float)));
  fill_kernel<<<sms * 8, 256>>>(obs, syn, n);
  CK(cudaFuncSetAttribute(misfit_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          static_cast<int>(sizeof(Shared))));
  const double us = time_us([&] {
    misfit_kernel<<<sms, cfg::kThreads, sizeof(Shared)>>>(obs, syn, tiles, taper, sums);
    finish_kernel<<<1, 96>>>(sums, sms, out);
  });
  float got[3];
  CK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));

  double ref[3] = {0, 0, 0};
  for (uint32_t i = 0; i < n; ++i) {
    const float o = sample_obs(i), y = sample_syn(i);
    const float w = 1.0f - taper * static_cast<float>((i / cfg::kTile) & 7);
    const float r = w * (o - y);
    ref[0] += static_cast<double>(r) * r;
    ref[1] += static_cast<double>(o) * y;
    ref[2] += static_cast<double>(y) * y;
  }
  for (int k = 0; k < 3; ++k) {
    if (!(std::fabs(got[k] - ref[k]) <= 1e-3 * std::fabs(ref[k]))) {
      std::fprintf(stderr, "sum %d: got %g want %g\n", k, got[k], ref[k]);
      return 1;
    }
  }
  std::printf("checksum: %.6e %.6e %.6e\n", got[0], got[1], got[2]);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
