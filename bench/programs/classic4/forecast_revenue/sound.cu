// SPDX-License-Identifier: Apache-2.0
// Forecast query of a column store: revenue and count of the rows that pass a date, discount and quantity filter.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(x)                                                                        \
  do {                                                                                  \
    cudaError_t e_ = (x);                                                               \
    if (e_ != cudaSuccess) {                                                            \
      std::fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e_));   \
      std::exit(2);                                                                     \
    }                                                                                   \
  } while (0)

namespace query {

constexpr int kThreads = 512;

struct Result {
  unsigned long long revenue;   // cents * percent
  unsigned long long rows;
};

struct Columns {
  const int4* date;
  const int4* price;      // cents
  const int4* discount;   // percent
  const int4* quantity;
};

struct RangeFilter {
  int from, to, discount_low, discount_high, quantity_below;
  __host__ __device__ bool operator()(int date, int discount, int quantity) const {
    return date >= from && date < to && discount >= discount_low && discount <= discount_high &&
           quantity < quantity_below;
  }
};

// Every block takes one chunk of kThreads * kUnroll quads; all loads of a thread are issued before the first use.
template <class Filter, int kUnroll>
__global__ void __launch_bounds__(kThreads)
filter_aggregate(Columns in, Filter filter, Result* __restrict__ result) {
  const int base = blockIdx.x * (kThreads * kUnroll) + threadIdx.x;
  int4 d[kUnroll], p[kUnroll], c[kUnroll], q[kUnroll];
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    const int i = base + u * kThreads;
    d[u] = __ldcs(in.date + i);
    p[u] = __ldcs(in.price + i);
    c[u] = __ldcs(in.discount + i);
    q[u] = __ldcs(in.quantity + i);
  }
  unsigned long long revenue = 0;
  unsigned rows = 0;
  auto add = [&](int date, int price, int discount, int quantity) {
    const bool pass = filter(date, discount, quantity);
    revenue += pass ? unsigned(price) * unsigned(discount) : 0u;
    rows += pass;
  };
#pragma unroll
  for (int u = 0; u < kUnroll; ++u) {
    add(d[u].x, p[u].x, c[u].x, q[u].x);
    add(d[u].y, p[u].y, c[u].y, q[u].y);
    add(d[u].z, p[u].z, c[u].z, q[u].z);
    add(d[u].w, p[u].w, c[u].w, q[u].w);
  }
  rows = __reduce_add_sync(~0u, rows);
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) revenue += __shfl_xor_sync(~0u, revenue, o);

  __shared__ unsigned long long part[kThreads / 32][2];
  if ((threadIdx.x & 31) == 0) {
    part[threadIdx.x >> 5][0] = revenue;
    part[threadIdx.x >> 5][1] = rows;
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    unsigned long long sum = 0;
#pragma unroll
    for (int w = 0; w < kThreads / 32; ++w) sum += part[w][threadIdx.x];
    atomicAdd(threadIdx.x == 0 ? &result->revenue : &result->rows, sum);
  }
}

}  // namespace query

static uint32_t mix(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

int main() {
  constexpr int kUnroll = 2, kIters = 180;
  constexpr int kChunkRows = query::kThreads * kUnroll * 4;
  constexpr int kRows = 34603008;   // a multiple of the chunk
  static_assert(kRows % kChunkRows == 0, "whole chunks");
  std::vector<int> date(kRows), price(kRows), disc(kRows), qty(kRows);
  for (int i = 0; i < kRows; ++i) {
    const uint32_t h = mix(uint32_t(i) + 1u), g = mix(h);
    date[i] = int(h % 2557u);
    price[i] = int(g % 10000000u) + 90000;
    disc[i] = int((h >> 13) % 11u);
    qty[i] = int((g >> 9) % 50u) + 1;
  }
  int *dd, *dp, *dc, *dq;
  query::Result* dres;
  for (int** v : {&dd, &dp, &dc, &dq}) CHECK(cudaMalloc(v, kRows * 4ull));
  CHECK(cudaMalloc(&dres, sizeof(query::Result)));
  CHECK(cudaMemcpy(dd, date.data(), kRows * 4ull, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dp, price.data(), kRows * 4ull, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dc, disc.data(), kRows * 4ull, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dq, qty.data(), kRows * 4ull, cudaMemcpyHostToDevice));
  const query::Columns in{reinterpret_cast<int4*>(dd), reinterpret_cast<int4*>(dp),
                          reinterpret_cast<int4*>(dc), reinterpret_cast<int4*>(dq)};
  const query::RangeFilter filter{365, 2192, 2, 8, 40};
  auto step = [&] {
    query::filter_aggregate<query::RangeFilter, kUnroll>
        <<<kRows / kChunkRows, query::kThreads>>>(in, filter, dres);
  };
  for (int i = 0; i < 5; ++i) step();
  cudaEvent_t e0, e1;
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  CHECK(cudaMemset(dres, 0, sizeof(query::Result)));
  CHECK(cudaEventRecord(e0));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(e1));
  CHECK(cudaEventSynchronize(e1));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, e0, e1));

  query::Result got, want{0, 0};
  CHECK(cudaMemcpy(&got, dres, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kRows; ++i)
    if (filter(date[i], disc[i], qty[i])) {
      want.revenue += uint64_t(price[i]) * disc[i];
      want.rows += 1;
    }
  if (got.revenue != want.revenue * kIters || got.rows != want.rows * kIters) {
    std::fprintf(stderr, "wrong: %llu rows, expected %llu\n", got.rows / kIters, want.rows);
    return 1;
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
