// SPDX-License-Identifier: Apache-2.0
// Nearest code word by inner product: bf16 queries (dim 256) against a large code book.
// Query fragments stay in registers; code words stream through a bulk-copy ring that is
// shared by eight consumer warps with sixteen queries each. A second kernel merges splits.
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
#include <cuda_bf16.h>
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

using bf16 = __nv_bfloat16;

constexpr int kDim = 256;
constexpr int kSteps = kDim / 16;
constexpr int kConsumers = 8;
constexpr int kThreads = (kConsumers + 1) * 32;
constexpr int kQueriesPerBlock = kConsumers * 16;
constexpr int kCodes = 32;  // code words in a stage
constexpr int kStages = 8;
constexpr int kPitch = kDim + 8;
constexpr int kChains = 4;

struct Shared {
  bf16 codes[kStages][kCodes * kPitch];
  uint64_t full[kStages];
  uint64_t empty[kStages];
};

__device__ __forceinline__ void ldsm4(uint32_t (&r)[4], uint32_t addr) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(addr)
               : "memory");
}
__device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

struct Best {
  float score;
  int code;
};
__device__ __forceinline__ void take(Best& b, float s, int code) {
  if (s > b.score) {
    b.score = s;
    b.code = code;
  }
}
__device__ __forceinline__ void take_lane(Best& b, int d) {
  const float s = __shfl_xor_sync(0xffffffffu, b.score, d);
  const int c = __shfl_xor_sync(0xffffffffu, b.code, d);
  if (s > b.score || (s == b.score && c < b.code)) b = {s, c};
}

__global__ void __launch_bounds__(kThreads, 1)
    nearest_kernel(const bf16* __restrict__ queries, const bf16* __restrict__ codes,
                   int tiles_per_split, Best* __restrict__ split_best) {
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
  const int first = blockIdx.x * tiles_per_split;

  if (warp == kConsumers) {
    int slot = 0;
    uint32_t phase = 1;
    for (int t = 0; t < tiles_per_split; ++t) {
      bar_wait(&sm.empty[slot], phase);
      if (lane == 0) bar_expect(&sm.full[slot], kCodes * kDim * sizeof(bf16));
      __syncwarp();
      const size_t row = static_cast<size_t>(first + t) * kCodes + lane;
      bulk_copy(&sm.codes[slot][lane * kPitch], codes + row * kDim, kDim * sizeof(bf16),
                &sm.full[slot]);
      if (++slot == kStages) {
        slot = 0;
        phase ^= 1;
      }
    }
    return;
  }

  const int q0 = blockIdx.y * kQueriesPerBlock + warp * 16 + (lane >> 2);
  uint32_t a[kSteps][4];
#pragma unroll
  for (int k = 0; k < kSteps; ++k) {
    const bf16* p = queries + static_cast<size_t>(q0) * kDim + k * 16 + (lane & 3) * 2;
    a[k][0] = *reinterpret_cast<const uint32_t*>(p);
    a[k][1] = *reinterpret_cast<const uint32_t*>(p + 8 * kDim);
    a[k][2] = *reinterpret_cast<const uint32_t*>(p + 8);
    a[k][3] = *reinterpret_cast<const uint32_t*>(p + 8 * kDim + 8);
  }
  Best lo = {-INFINITY, 0}, hi = {-INFINITY, 0};
  int slot = 0;
  uint32_t phase = 0;
  for (int t = 0; t < tiles_per_split; ++t) {
    bar_wait(&sm.full[slot], phase);
    const uint32_t base =
        smem_addr(&sm.codes[slot][(lane & 7) * kPitch]) + (lane >> 3) * 16;
#pragma unroll 1
    for (int n = 0; n < kCodes / 8; ++n) {
      float acc[kChains][4] = {};
#pragma unroll
      for (int k = 0; k < kSteps; k += 2) {
        uint32_t b[4];
        ldsm4(b, base + (n * 8 * kPitch + k * 16) * 2);
        mma(acc[k % kChains], a[k], b[0], b[1]);
        mma(acc[(k + 1) % kChains], a[k + 1], b[2], b[3]);
      }
      float s[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        s[j] = acc[0][j];
#pragma unroll
        for (int c = 1; c < kChains; ++c) s[j] += acc[c][j];
      }
      const int code = (first + t) * kCodes + n * 8 + (lane & 3) * 2;
      take(lo, s[0], code);
      take(lo, s[1], code + 1);
      take(hi, s[2], code);
      take(hi, s[3], code + 1);
    }
    __syncwarp();
    if (lane == 0) bar_arrive(&sm.empty[slot]);
    if (++slot == kStages) {
      slot = 0;
      phase ^= 1;
    }
  }
  take_lane(lo, 1);
  take_lane(lo, 2);
  take_lane(hi, 1);
  take_lane(hi, 2);
  if ((lane & 3) == 0) {
    split_best[static_cast<size_t>(q0) * gridDim.x + blockIdx.x] = lo;
    split_best[static_cast<size_t>(q0 + 8) * gridDim.x + blockIdx.x] = hi;
  }
}

__global__ void merge_kernel(const Best* __restrict__ split_best, int splits, int queries,
                             Best* __restrict__ best) {
  const int q = blockIdx.x * blockDim.x + threadIdx.x;
  if (q >= queries) return;
  Best b = split_best[static_cast<size_t>(q) * splits];
  for (int s = 1; s < splits; ++s) {
    const Best o = split_best[static_cast<size_t>(q) * splits + s];
    take(b, o.score, o.code);
  }
  best[q] = b;
}

__host__ __device__ inline float value(uint32_t i) {
  return static_cast<float>(static_cast<int>(mix32(i) & 255) - 128) * (1.0f / 128.0f);
}
__global__ void fill_kernel(bf16* p, uint32_t n, uint32_t seed) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    p[i] = __float2bfloat16(value(i + seed));
}

int main() {
  const int qblocks = 12, splits = 11, tiles_per_split = 256;
  const int queries = qblocks * kQueriesPerBlock;
  const int codes = splits * tiles_per_split * kCodes;
  const uint32_t seed_q = 0x60000000u;
  bf16 *q, *c;
  Best *split_best, *best;
  CK(cudaMalloc(&q, sizeof(bf16) * queries * kDim));
  CK(cudaMalloc(&c, sizeof(bf16) * codes * kDim));
  CK(cudaMalloc(&split_best, sizeof(Best) * queries * splits));
  CK(cudaMalloc(&best, sizeof(Best) * queries));
  fill_kernel<<<1024, 256>>>(q, queries * kDim, seed_q);
  fill_kernel<<<1024, 256>>>(c, codes * kDim, 0);
  CK(cudaFuncSetAttribute(nearest_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                          static_cast<int>(sizeof(Shared))));
  const double us = time_us([&] {
    nearest_kernel<<<dim3(splits, qblocks), kThreads, sizeof(Shared)>>>(q, c, tiles_per_split,
                                                                        split_best);
    merge_kernel<<<(queries + 127) / 128, 128>>>(split_best, splits, queries, best);
  });

  std::vector<Best> got(queries);
  CK(cudaMemcpy(got.data(), best, sizeof(Best) * queries, cudaMemcpyDeviceToHost));
  double sum = 0;
  for (const Best& b : got) sum += b.score;
  std::vector<float> book(static_cast<size_t>(codes) * kDim);
  for (size_t i = 0; i < book.size(); ++i) book[i] = value(static_cast<uint32_t>(i));
  for (int s = 0; s < 12; ++s) {
    const int qi = static_cast<int>(mix32(s + 5) % queries);
    float qv[kDim];
    for (int d = 0; d < kDim; ++d) qv[d] = value(seed_q + qi * kDim + d);
    float ref = -1e30f, mine = 0.f;
    for (int k = 0; k < codes; ++k) {
      float dot = 0.f;
      for (int d = 0; d < kDim; ++d) dot += qv[d] * book[static_cast<size_t>(k) * kDim + d];
      ref = std::max(ref, dot);
      if (k == got[qi].code) mine = dot;
    }
    if (!(std::fabs(got[qi].score - ref) < 0.02f && std::fabs(mine - ref) < 0.02f)) {
      std::fprintf(stderr, "query %d: got %g (code %d: %g) want %g\n", qi, got[qi].score,
                   got[qi].code, mine, ref);
      return 1;
    }
  }
  std::printf("checksum: %.6e\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
