// SPDX-License-Identifier: Apache-2.0
// Pricing summary of an order table: per status group the sums of quantity, price, discounted price and charge.
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

namespace db {

struct Columns {
  const uchar4* group;
  const float4* quantity;
  const float4* price;
  const float4* discount;
  int quads;   // rows / 4
};

constexpr int kMeasures = 4;
constexpr int kThreads = 256;

template <int kGroups>
struct GroupTable {
  static constexpr int kSlots = kGroups * kMeasures;
  float* cell;
  __device__ static constexpr int storage() { return kSlots * kThreads; }
  __device__ void add(int group, int measure, float v) { cell[(group * kMeasures + measure) * kThreads + threadIdx.x] += v; }
  __device__ float total(int slot) const {
    float sum = 0.f;
    for (int t = 0; t < kThreads; ++t) sum += cell[slot * kThreads + ((t + slot) & (kThreads - 1))];
    return sum;
  }
};

template <int kGroups, bool kTaxed>
__global__ void __launch_bounds__(kThreads)
summarize(Columns in, float tax, double* __restrict__ out) {
  using Table = GroupTable<kGroups>;
  __shared__ float storage[Table::storage()];
  for (int i = threadIdx.x; i < Table::storage(); i += kThreads) storage[i] = 0.f;
  __syncthreads();

  Table table{storage};
  auto row = [&](int g, float qty, float price, float disc) {
    const float net = price * (1.f - disc);
    table.add(g, 0, qty);
    table.add(g, 1, price);
    table.add(g, 2, net);
    table.add(g, 3, kTaxed ? net * (1.f + tax) : net);
  };

  const int stride = gridDim.x * kThreads;
  for (int i = blockIdx.x * kThreads + threadIdx.x; i < in.quads; i += stride) {
    const uchar4 g = in.group[i];
    const float4 q = in.quantity[i], p = in.price[i], d = in.discount[i];
    row(g.x, q.x, p.x, d.x);
    row(g.y, q.y, p.y, d.y);
    row(g.z, q.z, p.z, d.z);
    row(g.w, q.w, p.w, d.w);
  }
  __syncthreads();

  for (int slot = threadIdx.x; slot < Table::kSlots; slot += kThreads)
    atomicAdd(&out[slot], double(table.total(slot)));
}

}  // namespace db

static uint32_t hash32(uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

int main() {
  constexpr int kRows = 16 << 20, kGroups = 6, kIters = 300;
  std::vector<uint8_t> g(kRows);
  std::vector<float> q(kRows), p(kRows), d(kRows);
  for (int i = 0; i < kRows; ++i) {
    const uint32_t h = hash32(i + 1);
    g[i] = uint8_t((h & 0xffff) * kGroups >> 16);
    q[i] = float(1 + (h >> 16) % 50);
    p[i] = 1.f + float(hash32(h) >> 12) * 1e-3f;
    d[i] = float((h >> 8) % 11) * 0.01f;
  }
  uint8_t* dg;
  float *dq, *dp, *dd;
  double* dout;
  CHECK(cudaMalloc(&dg, kRows));
  CHECK(cudaMalloc(&dq, kRows * 4ull));
  CHECK(cudaMalloc(&dp, kRows * 4ull));
  CHECK(cudaMalloc(&dd, kRows * 4ull));
  CHECK(cudaMalloc(&dout, kGroups * db::kMeasures * sizeof(double)));
  CHECK(cudaMemcpy(dg, g.data(), kRows, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dq, q.data(), kRows * 4ull, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dp, p.data(), kRows * 4ull, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(dd, d.data(), kRows * 4ull, cudaMemcpyHostToDevice));

  int sms = 0, perSm = 0;
  CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&perSm, db::summarize<kGroups, true>,
                                                      db::kThreads, 0));
  const db::Columns in{reinterpret_cast<uchar4*>(dg), reinterpret_cast<float4*>(dq),
                       reinterpret_cast<float4*>(dp), reinterpret_cast<float4*>(dd), kRows / 4};
  const float tax = 0.08f;
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  auto step = [&] {
    CHECK(cudaMemsetAsync(dout, 0, kGroups * db::kMeasures * sizeof(double), s));
    db::summarize<kGroups, true><<<sms * perSm, db::kThreads, 0, s>>>(in, tax, dout);
  };
  for (int i = 0; i < 5; ++i) step();
  cudaEvent_t a, b;
  CHECK(cudaEventCreate(&a));
  CHECK(cudaEventCreate(&b));
  CHECK(cudaEventRecord(a, s));
  for (int i = 0; i < kIters; ++i) step();
  CHECK(cudaEventRecord(b, s));
  CHECK(cudaEventSynchronize(b));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, a, b));

  double got[kGroups * db::kMeasures], want[kGroups * db::kMeasures] = {};
  CHECK(cudaMemcpy(got, dout, sizeof got, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kRows; ++i) {
    double* w = want + g[i] * db::kMeasures;
    const double net = double(p[i]) * (1.0 - d[i]);
    w[0] += q[i];
    w[1] += p[i];
    w[2] += net;
    w[3] += net * (1.0 + tax);
  }
  for (int i = 0; i < kGroups * db::kMeasures; ++i)
    if (std::fabs(got[i] - want[i]) > 1e-3 * std::fabs(want[i])) {
      std::fprintf(stderr, "wrong in slot %d: %.9g, expected %.9g\n", i, got[i], want[i]);
      return 1;
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
