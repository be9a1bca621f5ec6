// SPDX-License-Identifier: Apache-2.0
// The kernels that put the GPU into a known state between calls, and those that measure its
// ceilings. They follow judge.cu in one module and use its helpers.

// Reads a buffer larger than L2 and writes nothing (reading leaves no dirty lines). The sum depends
// on every word, so that the loads are not optimized away.
extern "C" __global__ void flush_cache(const uint4* data, u64 count, unsigned* sink) {
  unsigned sum = 0;
  for (u64 i = first_index(); i < count; i += stride()) {
    const uint4 v = data[i];
    sum += v.x ^ v.y ^ v.z ^ v.w;
  }
  if (sum == 0x12345678u) *sink = sum;
}

// Each block reads one word of every page, so that each multiprocessor has the address
// translations.
extern "C" __global__ void touch_pages(const unsigned char* data, u64 pages, u64 page_bytes,
                                       unsigned* sink) {
  unsigned sum = 0;
  for (u64 i = threadIdx.x; i < pages; i += blockDim.x) {
    sum += *reinterpret_cast<const volatile unsigned*>(data + i * page_bytes);
  }
  if (sum == 0x12345678u) *sink = sum;
}

// Fills dynamic shared memory with noise between checks, so that nothing survives in it.
extern "C" __global__ void scrub_shared(u64 key, unsigned words, unsigned* sink) {
  extern __shared__ unsigned scratch[];
  for (unsigned i = threadIdx.x; i < words; i += blockDim.x) scratch[i] = poison_word(key, i);
  __syncthreads();
  if (scratch[threadIdx.x] == 0x12345678u) *sink = 1;
}

// Overwrites local memory, which the next kernel could otherwise read. One block for each place on
// the GPU, each running until all have started.
template <int kWords>
__device__ inline void scrub_local(u64 key, unsigned* sink) {
  volatile unsigned frame[kWords];
  for (int i = 0; i < kWords; ++i) frame[i] = poison_word(key, i);
  const long long start = clock64();
  while (clock64() - start < 20000) {
  }
  if (frame[(key >> 7) % kWords] == 0x12345678u && frame[key % kWords] == 0x12345678u) *sink = 1;
}
#define KP_SCRUB_LOCAL(name, words) \
  extern "C" __global__ void name(u64 key, unsigned* sink) { scrub_local<words>(key, sink); }
KP_SCRUB_LOCAL(scrub_local_1k, 256)
KP_SCRUB_LOCAL(scrub_local_8k, 2048)
KP_SCRUB_LOCAL(scrub_local_16k, 4096)
KP_SCRUB_LOCAL(scrub_local_32k, 8192)
KP_SCRUB_LOCAL(scrub_local_64k, 16384)
KP_SCRUB_LOCAL(scrub_local_128k, 32768)

// Data of one buffer into another, both 16-byte aligned.
extern "C" __global__ void hand_over(const unsigned char* from, unsigned char* to, u64 bytes) {
  const u64 count = bytes / 16;
  for (u64 i = first_index(); i < count; i += stride()) {
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
  }
  if (first_index() != 0) return;
  for (u64 at = count * 16; at < bytes; ++at) to[at] = from[at];
}

extern "C" __global__ void copy(const uint4* from, uint4* to, u64 count) {
  for (u64 i = first_index(); i < count; i += stride()) to[i] = from[i];
}

// 16 independent chains of fused multiply-adds per thread: 32 operations a round.
extern "C" __global__ void multiply_add(float* out, int rounds, float a, float b) {
  float x[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) x[i] = threadIdx.x + i;
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < 16; ++i) x[i] = fmaf(x[i], a, b);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 16; ++i) sum += x[i];
  out[first_index()] = sum;
}
