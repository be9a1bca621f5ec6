// SPDX-License-Identifier: Apache-2.0
// Soft-decision Viterbi decoder, rate 1/2, constraint length 7 (generators 171, 133 octal):
// the add-compare-select pass. One warp decodes one frame, two trellis states a lane. The
// frame's soft symbols are staged in shared memory; survivor decisions (64 bits a step) go to
// global memory for the trace-back kernel.
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

constexpr int kWarps = 16;
constexpr int kThreads = kWarps * 32;
constexpr int kSteps = 6144;
constexpr int kStates = 64;

struct WarpShared {
  char2 symbol[kSteps];
  int metric[2][kStates];
};

__host__ __device__ constexpr int parity(int v) {
  v ^= v >> 4;
  v ^= v >> 2;
  v ^= v >> 1;
  return v & 1;
}
// Sign of the two coded bits for the branch (previous state, input bit).
__host__ __device__ inline int branch_metric(int prev, int bit, int s0, int s1) {
  const int reg = (bit << 6) | prev;
  const int c0 = parity(reg & 0x79), c1 = parity(reg & 0x5b);
  return (c0 ? -s0 : s0) + (c1 ? -s1 : s1);
}

__device__ __forceinline__ void load_frame(WarpShared& sm, const char2* __restrict__ frame,
                                           int lane) {
  const uint4* src = reinterpret_cast<const uint4*>(frame);
  uint4* dst = reinterpret_cast<uint4*>(sm.symbol);
#pragma unroll 4
  for (int i = lane; i < kSteps * 2 / 16; i += 32) dst[i] = __ldcs(src + i);
}

__global__ void __launch_bounds__(kThreads, 1)
    acs_kernel(const char2* __restrict__ symbols, uint2* __restrict__ decisions,
               int* __restrict__ final_metric, int frames) {
  extern __shared__ __align__(16) unsigned char raw[];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  WarpShared& sm = reinterpret_cast<WarpShared*>(raw)[warp];
  const int frame = blockIdx.x * kWarps + warp;
  load_frame(sm, symbols + static_cast<size_t>(frame) * kSteps, lane);
  sm.metric[0][lane] = lane == 0 ? 0 : -100000;
  sm.metric[0][lane + 32] = -100000;
  __syncwarp();

  // New state n takes input bit n >> 5 and comes from 2 * (n & 31) or 2 * (n & 31) + 1.
  const int p0 = 2 * lane;
  int sign[4][2];
#pragma unroll
  for (int b = 0; b < 4; ++b) {
    const int reg = ((b >> 1) << 6) | (p0 + (b & 1));
    sign[b][0] = parity(reg & 0x79) ? -1 : 1;
    sign[b][1] = parity(reg & 0x5b) ? -1 : 1;
  }
  uint2 kept = make_uint2(0, 0);
  uint2* out = decisions + static_cast<size_t>(frame) * kSteps;
  int cur = 0;
  for (int t = 0; t < kSteps; ++t, cur ^= 1) {
    const char2 s = sm.symbol[t];
    const int2 m = *reinterpret_cast<const int2*>(&sm.metric[cur][p0]);
    const int a0 = m.x + sign[0][0] * s.x + sign[0][1] * s.y;
    const int a1 = m.y + sign[1][0] * s.x + sign[1][1] * s.y;
    const int b0 = m.x + sign[2][0] * s.x + sign[2][1] * s.y;
    const int b1 = m.y + sign[3][0] * s.x + sign[3][1] * s.y;
    sm.metric[cur ^ 1][lane] = max(a0, a1);
    sm.metric[cur ^ 1][lane + 32] = max(b0, b1);
    const unsigned lo = __ballot_sync(0xffffffffu, a1 > a0);
    const unsigned hi = __ballot_sync(0xffffffffu, b1 > b0);
    if ((t & 31) == lane) kept = make_uint2(lo, hi);
    if ((t & 31) == 31) __stcs(out + (t & ~31) + lane, kept);
    __syncwarp();
  }
  int best = max(sm.metric[cur][lane], sm.metric[cur][lane + 32]);
  best = __reduce_max_sync(0xffffffffu, best);
  if (lane == 0) final_metric[frame] = best;
}

__global__ void symbols_kernel(char2* p, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const uint32_t r = mix32(i);
    p[i] = make_char2(static_cast<signed char>(static_cast<int>(r & 127) - 64),
                      static_cast<signed char>(static_cast<int>((r >> 8) & 127) - 64));
  }
}

int main() {
  int sms = 0;
  CK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  const int frames = sms * kWarps * 2;
  const int n = frames * kSteps;
  char2* symbols;
  uint2* decisions;
  int* metric;
  CK(cudaMalloc(&symbols, static_cast<size_t>(n) * sizeof(char2)));
  CK(cudaMalloc(&decisions, static_cast<size_t>(n) * sizeof(uint2)));
  CK(cudaMalloc(&metric, frames * sizeof(int)));
  symbols_kernel<<<sms * 8, 256>>>(symbols, n);
  const int smem = kWarps * static_cast<int>(sizeof(WarpShared));
  CK(cudaFuncSetAttribute(acs_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, smem));
  const double us = time_us([&] {
    acs_kernel<<<frames / kWarps, kThreads, smem>>>(symbols, decisions, metric, frames);
  });

  std::vector<int> got(frames);
  CK(cudaMemcpy(got.data(), metric, frames * sizeof(int), cudaMemcpyDeviceToHost));
  long long sum = 0;
  for (int v : got) sum += v;
  std::vector<uint2> dec(kSteps);
  for (int s = 0; s < 24; ++s) {
    const int f = s == 0 ? frames - 1 : static_cast<int>(mix32(s) % frames);
    CK(cudaMemcpy(dec.data(), decisions + static_cast<size_t>(f) * kSteps,
                  kSteps * sizeof(uint2), cudaMemcpyDeviceToHost));
    std::vector<int> m(kStates, -100000), next(kStates);
    m[0] = 0;
    for (int t = 0; t < kSteps; ++t) {
      const uint32_t r = mix32(f * kSteps + t);
      const int s0 = static_cast<int>(r & 127) - 64, s1 = static_cast<int>((r >> 8) & 127) - 64;
      uint32_t bits[2] = {0, 0};
      for (int st = 0; st < kStates; ++st) {
        const int p = 2 * (st & 31), bit = st >> 5;
        const int c0 = m[p] + branch_metric(p, bit, s0, s1);
        const int c1 = m[p + 1] + branch_metric(p + 1, bit, s0, s1);
        next[st] = std::max(c0, c1);
        if (c1 > c0) bits[bit] |= 1u << (st & 31);
      }
      m.swap(next);
      if (dec[t].x != bits[0] || dec[t].y != bits[1]) {
        std::fprintf(stderr, "frame %d step %d: decisions differ\n", f, t);
        return 1;
      }
    }
    if (got[f] != *std::max_element(m.begin(), m.end())) {
      std::fprintf(stderr, "frame %d: metric %d\n", f, got[f]);
      return 1;
    }
  }
  std::printf("checksum: %lld\n", sum);
  std::printf("us_per_iteration: %.3f\n", us);
  return 0;
}
