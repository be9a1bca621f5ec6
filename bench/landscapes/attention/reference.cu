// SPDX-License-Identifier: Apache-2.0
// The definition, with sums in double precision: one block for each query.
#include "task.h"

constexpr int kThreads = 256;

// The sum, or the largest, of one value per thread; every thread gets it.
__device__ double across(double value, bool largest) {
  __shared__ double shared[kThreads];
  __syncthreads();  // the call before may still be reading
  shared[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const double a = shared[threadIdx.x], b = shared[threadIdx.x + half];
      shared[threadIdx.x] = largest ? fmax(a, b) : a + b;
    }
  }
  __syncthreads();
  return shared[0];
}

__global__ void attend(const __half* q, const __half* k, const __half* v, double* y) {
  __shared__ double p[LENGTH];
  __shared__ double parts[kThreads];
  const int query = blockIdx.x, head = query / LENGTH;
  q += 1ll * query * DEPTH;
  k += 1ll * head * LENGTH * DEPTH;
  v += 1ll * head * LENGTH * DEPTH;
  double largest = -1e300;
  for (int j = threadIdx.x; j < LENGTH; j += kThreads) {
    double sum = 0;
    for (int d = 0; d < DEPTH; ++d)
      sum += double(__half2float(q[d])) * __half2float(k[j * DEPTH + d]);
    p[j] = sum / sqrt(double(DEPTH));
    largest = fmax(largest, p[j]);
  }
  largest = across(largest, true);
  double sum = 0;
  for (int j = threadIdx.x; j < LENGTH; j += kThreads) sum += p[j] = exp(p[j] - largest);
  sum = across(sum, false);
  // Groups of DEPTH threads take every kGroups-th key.
  constexpr int kGroups = kThreads / DEPTH;
  const int d = threadIdx.x % DEPTH;
  double part = 0;
  for (int j = threadIdx.x / DEPTH; j < LENGTH; j += kGroups)
    part += p[j] * __half2float(v[j * DEPTH + d]);
  parts[threadIdx.x] = part;
  __syncthreads();
  if (threadIdx.x >= DEPTH) return;
  for (int group = 1; group < kGroups; ++group) part += parts[group * DEPTH + d];
  y[1ll * query * DEPTH + d] = part / sum;
}

extern "C" void reference(const ReferenceArgs& args, cudaStream_t stream) {
  static_assert(kThreads % DEPTH == 0, "");
  attend<<<HEADS * LENGTH, kThreads, 0, stream>>>(args.q, args.k, args.v, args.y);
}
