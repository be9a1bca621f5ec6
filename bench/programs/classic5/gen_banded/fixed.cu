// SPDX-License-Identifier: Apache-2.0
// Banded Smith-Waterman scores of short DNA reads against candidate reference windows, one pair per thread.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>

#define CUDA_OK(call) \
  do { cudaError_t rc = (call); if (rc != cudaSuccess) { \
    std::fprintf(stderr, "CUDA error %s at line %d\n", cudaGetErrorString(rc), __LINE__); std::exit(2); } } while (0)

namespace align {

struct Scoring {
  int match, mismatch, gap;
  int band;
};

struct Batch {
  const uint32_t* reads;    // [read word][pair], 16 bases a word
  const uint32_t* windows;  // [window word][pair], 16 bases a word
  int pairs;
};

// Row i of the band covers reference bases i .. i + band - 1.
template <int kReadWords, int kMaxBand, typename Score>
__global__ void __launch_bounds__(128) banded_sw(Batch batch, Scoring p, Score* __restrict__ best_out) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair >= batch.pairs) return;
  int h[kMaxBand + 1];
#pragma unroll
  for (int j = 0; j <= kMaxBand; ++j) h[j] = 0;
  uint64_t window = batch.windows[pair] | (uint64_t(batch.windows[batch.pairs + pair]) << 32);
  int best = 0;
#pragma unroll 1
  for (int w = 0; w < kReadWords; ++w) {
    uint32_t read = batch.reads[size_t(w) * batch.pairs + pair];
    uint32_t incoming = batch.windows[size_t(w + 2) * batch.pairs + pair];
#pragma unroll 1
    for (int i = 0; i < 16; ++i) {
      const uint64_t differ = window ^ ((read & 3u) * 0x5555555555555555ull);
      int left = 0;
#pragma unroll
      for (int j = 0; j < kMaxBand; ++j) {
        const int s = ((differ >> (2 * j)) & 3u) == 0 ? p.match : p.mismatch;
        const int gapped = max(h[j + 1], left) + p.gap;
        left = max(max(h[j] + s, gapped), 0);
        h[j] = left;
        best = max(best, left);
      }
      read >>= 2;
      window = (window >> 2) | (uint64_t(incoming & 3u) << 62);
      incoming >>= 2;
    }
  }
  best_out[pair] = Score(best);
}

}  // namespace align

int main() {
  constexpr int kReadWords = 8, kBand = 32;
  const int pairs = 1 << 18;
  const int win_words = kReadWords + 2;
  std::vector<uint32_t> reads(size_t(kReadWords) * pairs), wins(size_t(win_words) * pairs);
  uint32_t s = 12345;
  auto rnd = [&s] { s = s * 1664525u + 1013904223u; return s >> 8; };
  for (int q = 0; q < pairs; ++q) {
    uint8_t ref[160];
    for (auto& b : ref) b = rnd() & 3;
    int at = rnd() % 24;
    for (int w = 0; w < kReadWords; ++w) {
      uint32_t word = 0;
      for (int i = 0; i < 16; ++i) {
        uint32_t u = rnd() % 100;
        if (u < 2) at = std::min(at + 1, 31);
        uint32_t base = ref[std::min(at + w * 16 + i, 159)];
        if (u >= 95) base = (base + 1 + u % 3) & 3;
        word |= base << (2 * i);
      }
      reads[size_t(w) * pairs + q] = word;
    }
    for (int w = 0; w < win_words; ++w) {
      uint32_t word = 0;
      for (int i = 0; i < 16; ++i) word |= uint32_t(ref[w * 16 + i]) << (2 * i);
      wins[size_t(w) * pairs + q] = word;
    }
  }
  uint32_t *dr, *dw;
  int16_t* dbest;
  CUDA_OK(cudaMalloc(&dr, reads.size() * 4));
  CUDA_OK(cudaMalloc(&dw, wins.size() * 4));
  CUDA_OK(cudaMalloc(&dbest, pairs * sizeof(int16_t)));
  CUDA_OK(cudaMemcpy(dr, reads.data(), reads.size() * 4, cudaMemcpyHostToDevice));
  CUDA_OK(cudaMemcpy(dw, wins.data(), wins.size() * 4, cudaMemcpyHostToDevice));
  const align::Batch batch{dr, dw, pairs};
  const align::Scoring p{2, -3, -4, kBand};
  auto step = [&] { align::banded_sw<kReadWords, kBand, int16_t><<<(pairs + 127) / 128, 128>>>(batch, p, dbest); };
  for (int i = 0; i < 3; ++i) step();
  CUDA_OK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CUDA_OK(cudaEventCreate(&t0));
  CUDA_OK(cudaEventCreate(&t1));
  const int iters = 50;
  CUDA_OK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CUDA_OK(cudaEventRecord(t1));
  CUDA_OK(cudaEventSynchronize(t1));
  CUDA_OK(cudaGetLastError());
  float ms = 0;
  CUDA_OK(cudaEventElapsedTime(&ms, t0, t1));
  std::vector<int16_t> got(pairs);
  CUDA_OK(cudaMemcpy(got.data(), dbest, pairs * sizeof(int16_t), cudaMemcpyDeviceToHost));
  for (int q = 0; q < pairs; q += 211) {
    int h[kBand + 1] = {}, best = 0;
    for (int i = 0; i < kReadWords * 16; ++i) {
      const uint32_t base = (reads[size_t(i / 16) * pairs + q] >> (2 * (i % 16))) & 3;
      int left = 0;
      for (int j = 0; j < kBand; ++j) {
        const int c = i + j;
        const uint32_t rb = (wins[size_t(c / 16) * pairs + q] >> (2 * (c % 16))) & 3;
        left = std::max({h[j] + (rb == base ? p.match : p.mismatch), std::max(h[j + 1], left) + p.gap, 0});
        h[j] = left;
        best = std::max(best, left);
      }
    }
    if (best != got[q]) {
      std::printf("pair %d: %d, expected %d\n", q, got[q], best);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
