// SPDX-License-Identifier: Apache-2.0
// Attention in plan form, for a landscape: every setting of its knobs is measured once. A warp
// takes ROWS queries of a head through all keys, KEYS at a time, with matrix instructions and
// a softmax that follows the largest value so far; its block's warps share the tiles of k and v in
// shared memory. The first value of each knob is the default. Register use is not bounded on
// purpose: what does not fit fails.
#include "task.h"

// Warps of a block.
// @knob WARPS 2 4 8 16 : block-size
// Queries of a warp.
// @knob ROWS 16 32 : tile-size registers grid-size
// Keys in shared memory at a time.
// @knob KEYS 16 32 64 128 : tile-size shared-memory synchronization
// Tiles of keys and values on their way or in use.
// @knob STAGES 1 2 4 : pipeline
// Elements between the rows of a tile: 8 keep shared memory free of conflicts.
// @knob PAD 0 8 : bank-layout
// 1: the queries stay in registers; 0: they are read from shared memory again.
// @knob KEEP_Q 0 1 : registers
// 1: fragments of k and v are read by ldmatrix; 0: element by element.
// @knob LDMATRIX 0 1 : vectorize

static_assert(DEPTH == 64, "the scale of the scores is written for 64 elements");
constexpr int kThreads = 32 * WARPS;
constexpr int kQueries = WARPS * ROWS;  // of a block
constexpr int kBands = ROWS / 16;       // rows of a matrix instruction
constexpr int kPitch = DEPTH + PAD;
constexpr int kTiles = (LENGTH + KEYS - 1) / KEYS;
constexpr int kBlocks = (LENGTH + kQueries - 1) / kQueries;  // of a head
constexpr int kSharedBytes = 2 * kPitch * (kQueries + 2 * STAGES * KEYS);
constexpr float kScale = 0.125f * 1.44269504f;  // exp(x / 8) = 2^(x * kScale)
constexpr float kLowest = -1e30f;

extern __shared__ __align__(16) __half tiles[];

__device__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

// 16 bytes; zeros when `inside` is false.
__device__ void copy_async(__half* to, const __half* from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(__cvta_generic_to_global(from)), "r"(inside ? 16 : 0)
               : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" : : : "memory"); }
// Until at most `left` of the committed groups are on their way.
template <int left>
__device__ void wait_for() {
  asm volatile("cp.async.wait_group %0;" : : "n"(left) : "memory");
}

// sum += a b, with a 16 x 16 by rows and b 16 x 8 by columns.
__device__ void multiply(float (&sum)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two 8 x 8 matrices: lanes 0 to 7 give the rows of the first, lanes 8 to 15 those of the second.
__device__ void load_matrices(unsigned (&b)[2], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(shared_address(row)));
}
__device__ void load_transposed(unsigned (&b)[2], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(b[0]), "=r"(b[1])
               : "r"(shared_address(row)));
}

// Tiles of keys, as the compiler cannot know them: it would write out every one of them.
__device__ int tiles_of_keys() {
  int count;
  asm volatile("mov.u32 %0, %1;" : "=r"(count) : "n"(kTiles));
  return count;
}

__device__ unsigned bits(__half2 pair) { return *reinterpret_cast<const unsigned*>(&pair); }
__device__ unsigned two(const __half* at) { return *reinterpret_cast<const unsigned*>(at); }

// `rows` rows from the first on, a thread after the other 16 bytes; those outside are zeros.
template <int rows>
__device__ void fetch(__half* to, const __half* from, int first) {
  constexpr int kChunks = DEPTH / 8;
  for (int i = threadIdx.x; i < rows * kChunks; i += kThreads) {
    const int row = i / kChunks, chunk = i % kChunks * 8;
    const bool inside = first + row < LENGTH;
    const int source = inside ? first + row : 0;
    copy_async(to + row * kPitch + chunk, from + source * DEPTH + chunk, inside);
  }
}

struct Lane {
  int group, pair;  // row of a fragment, pair of its columns
  __device__ Lane() : group(threadIdx.x % 32 / 4), pair(threadIdx.x % 4 * 2) {}
};

// Queries: rows `at` to at + 15, columns 16 * step on.
__device__ void load_queries(unsigned (&a)[4], const __half* at, int step) {
  const Lane lane;
  const __half* from = at + lane.group * kPitch + 16 * step + lane.pair;
  a[0] = two(from);
  a[1] = two(from + 8 * kPitch);
  a[2] = two(from + 8);
  a[3] = two(from + 8 * kPitch + 8);
}

// Eight keys as columns, their elements 16 * step on as rows.
__device__ void load_keys(unsigned (&b)[2], const __half* at, int step) {
  if (LDMATRIX) {
    const int lane = threadIdx.x % 16;
    load_matrices(b, at + lane % 8 * kPitch + 16 * step + lane / 8 * 8);
    return;
  }
  const Lane lane;
  const __half* from = at + lane.group * kPitch + 16 * step + lane.pair;
  b[0] = two(from);
  b[1] = two(from + 8);
}

// Sixteen keys as rows, eight elements of their values as columns.
__device__ void load_values(unsigned (&b)[2], const __half* at) {
  if (LDMATRIX) {
    load_transposed(b, at + threadIdx.x % 16 * kPitch);
    return;
  }
  const Lane lane;
  const __half* from = at + lane.pair * kPitch + lane.group;
  b[0] = bits(__halves2half2(from[0], from[kPitch]));
  b[1] = bits(__halves2half2(from[8 * kPitch], from[9 * kPitch]));
}

// A band of 16 queries on its way through the keys.
struct Band {
  float sum[DEPTH / 8][4];  // of values; not divided yet
  float largest[2];         // score of the rows group and group + 8
  float total[2];           // of this thread's columns

  __device__ void begin() {
    for (int i = 0; i < DEPTH / 8; ++i) {
      for (int j = 0; j < 4; ++j) sum[i][j] = 0;
    }
    for (int h = 0; h < 2; ++h) {
      largest[h] = kLowest;
      total[h] = 0;
    }
  }

  // Scores become weights, relative to the largest so far.
  __device__ void weigh(float (&scores)[KEYS / 8][4], int first_key) {
    const Lane lane;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float most = largest[h];
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j) {
        for (int c = 2 * h; c < 2 * h + 2; ++c) {
          const int key = first_key + 8 * j + lane.pair + c % 2;
          if (LENGTH % KEYS != 0 && key >= LENGTH) scores[j][c] = kLowest;
          most = fmaxf(most, scores[j][c]);
        }
      }
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      const float by = exp2f((largest[h] - most) * kScale);
      largest[h] = most;
      total[h] *= by;
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j) {
        for (int c = 2 * h; c < 2 * h + 2; ++c) {
          scores[j][c] = exp2f((scores[j][c] - most) * kScale);
          total[h] += scores[j][c];
        }
      }
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n) {
        for (int c = 2 * h; c < 2 * h + 2; ++c) sum[n][c] *= by;
      }
    }
  }

  __device__ void store(__half* y, int first_row) const {
    const Lane lane;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float all = total[h] + __shfl_xor_sync(0xffffffffu, total[h], 1);
      all += __shfl_xor_sync(0xffffffffu, all, 2);
      const int row = first_row + lane.group + 8 * h;
      if (LENGTH % kQueries != 0 && row >= LENGTH) continue;
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n) {
        *reinterpret_cast<__half2*>(y + row * DEPTH + 8 * n + lane.pair) =
            __floats2half2_rn(sum[n][2 * h] / all, sum[n][2 * h + 1] / all);
      }
    }
  }
};

// Weights of 16 keys as the left operand: two fragments of scores side by side.
__device__ void pack(unsigned (&a)[4], const float (&left)[4], const float (&right)[4]) {
  a[0] = bits(__floats2half2_rn(left[0], left[1]));
  a[1] = bits(__floats2half2_rn(left[2], left[3]));
  a[2] = bits(__floats2half2_rn(right[0], right[1]));
  a[3] = bits(__floats2half2_rn(right[2], right[3]));
}

__global__ void attend(const __half* q, const __half* k, const __half* v, __half* y) {
  __half* queries = tiles;
  __half* keys = queries + kQueries * kPitch;      // STAGES tiles
  __half* values = keys + STAGES * KEYS * kPitch;  // STAGES tiles
  const int first = blockIdx.x * kQueries, warp = threadIdx.x / 32;
  const long long head = 1ll * blockIdx.y * LENGTH * DEPTH;
  const __half* mine = queries + warp * ROWS * kPitch;
  const int count = tiles_of_keys();
  const auto fetch_tile = [&](int tile) {
    const int stage = tile % STAGES;
    if (tile < count) {
      fetch<KEYS>(keys + stage * KEYS * kPitch, k + head, tile * KEYS);
      fetch<KEYS>(values + stage * KEYS * kPitch, v + head, tile * KEYS);
    }
    commit();
  };

  fetch<kQueries>(queries, q + head, first);
  commit();
  wait_for<0>();
  __syncthreads();
  for (int tile = 0; tile < STAGES - 1; ++tile) fetch_tile(tile);
  unsigned kept[KEEP_Q ? kBands : 1][DEPTH / 16][4];
  if (KEEP_Q) {
#pragma unroll
    for (int band = 0; band < kBands; ++band) {
#pragma unroll
      for (int step = 0; step < DEPTH / 16; ++step) {
        load_queries(kept[KEEP_Q ? band : 0][step], mine + 16 * band * kPitch, step);
      }
    }
  }
  Band bands[kBands];
  for (int band = 0; band < kBands; ++band) bands[band].begin();

#pragma unroll 1
  for (int tile = 0; tile < count; ++tile) {
    if (STAGES == 1) {
      __syncthreads();
      fetch_tile(tile);
      wait_for<0>();
      __syncthreads();
    } else {
      wait_for<STAGES == 1 ? 0 : STAGES - 2>();
      __syncthreads();
      fetch_tile(tile + STAGES - 1);
    }
    const __half* tile_keys = keys + tile % STAGES * KEYS * kPitch;
    const __half* tile_values = values + tile % STAGES * KEYS * kPitch;
    float scores[kBands][KEYS / 8][4] = {};
#pragma unroll
    for (int step = 0; step < DEPTH / 16; ++step) {
      unsigned a[kBands][4];
#pragma unroll
      for (int band = 0; band < kBands; ++band) {
        if (KEEP_Q) {
          for (int i = 0; i < 4; ++i) a[band][i] = kept[KEEP_Q ? band : 0][step][i];
        } else {
          load_queries(a[band], mine + 16 * band * kPitch, step);
        }
      }
#pragma unroll
      for (int j = 0; j < KEYS / 8; ++j) {
        unsigned b[2];
        load_keys(b, tile_keys + 8 * j * kPitch, step);
        for (int band = 0; band < kBands; ++band) multiply(scores[band][j], a[band], b);
      }
    }
#pragma unroll
    for (int band = 0; band < kBands; ++band) bands[band].weigh(scores[band], tile * KEYS);
#pragma unroll
    for (int j = 0; j < KEYS / 16; ++j) {
      unsigned a[kBands][4];
      for (int band = 0; band < kBands; ++band) {
        pack(a[band], scores[band][2 * j], scores[band][2 * j + 1]);
      }
#pragma unroll
      for (int n = 0; n < DEPTH / 8; ++n) {
        unsigned b[2];
        load_values(b, tile_values + 16 * j * kPitch + 8 * n);
        for (int band = 0; band < kBands; ++band) multiply(bands[band].sum[n], a[band], b);
      }
    }
  }
  for (int band = 0; band < kBands; ++band) {
    bands[band].store(y + head, first + warp * ROWS + 16 * band);
  }
}

KP_LAUNCH(attend, kp::dim(kBlocks, HEADS), kp::dim(kThreads), kSharedBytes, arg::q, arg::k, arg::v,
          arg::y)
