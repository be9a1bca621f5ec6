// SPDX-License-Identifier: Apache-2.0
// Pressure solve of a 2D flow code: a fixed number of conjugate-gradient sweeps on the 5-point Poisson operator.
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

namespace flow {

constexpr int kThreads = 256;

struct Grid {
  int nx, ny;
  __host__ __device__ int size() const { return nx * ny; }
};

__device__ inline void add_to_scalar(float v, double* target) {
  __shared__ float part[kThreads / 32];
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_xor_sync(~0u, v, o);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < kThreads / 32) {
    v = part[threadIdx.x];
#pragma unroll
    for (int o = kThreads / 64; o > 0; o >>= 1) v += __shfl_xor_sync((1u << (kThreads / 32)) - 1, v, o);
    if (threadIdx.x == 0) atomicAdd(target, double(v));
  }
}

// r = p = b, x = 0, rr = r.r
__global__ void __launch_bounds__(kThreads)
start(Grid g, const float* __restrict__ b, float4* __restrict__ x, float4* __restrict__ r,
      float4* __restrict__ p, double* rr) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float4 v = reinterpret_cast<const float4*>(b)[i];
  x[i] = make_float4(0, 0, 0, 0);
  r[i] = v;
  p[i] = v;
  add_to_scalar(v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w, rr);
}

// q = A p, pq = p.q; four cells a thread
template <bool kPeriodicX>
__global__ void __launch_bounds__(kThreads)
apply_laplacian(Grid g, const float* __restrict__ p, float4* __restrict__ q, double* pq) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const int row = i * 4 / g.nx, col = i * 4 - row * g.nx;
  const float4* p4 = reinterpret_cast<const float4*>(p);
  const float4 zero = make_float4(0, 0, 0, 0);
  const float4 c = p4[i];
  const float4 n = row > 0 ? p4[i - g.nx / 4] : zero;
  const float4 s = row + 1 < g.ny ? p4[i + g.nx / 4] : zero;
  const float w = col > 0 ? p[i * 4 - 1] : (kPeriodicX ? p[row * g.nx + g.nx - 1] : 0.f);
  const float e = col + 4 < g.nx ? p[i * 4 + 4] : (kPeriodicX ? p[row * g.nx] : 0.f);
  float4 o;
  o.x = 4.01f * c.x - n.x - s.x - w - c.y;
  o.y = 4.01f * c.y - n.y - s.y - c.x - c.z;
  o.z = 4.01f * c.z - n.z - s.z - c.y - c.w;
  o.w = 4.01f * c.w - n.w - s.w - c.z - e;
  q[i] = o;
  add_to_scalar(o.x * c.x + o.y * c.y + o.z * c.z + o.w * c.w, pq);
}

// x += alpha p, r -= alpha q, rr_new = r.r
__global__ void __launch_bounds__(kThreads)
update_solution(const double* rr, const double* pq, const float4* __restrict__ p, const float4* __restrict__ q,
                float4* __restrict__ x, float4* __restrict__ r, double* rr_new) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float alpha = float(*rr) / float(*pq);
  const float4 pi = p[i], qi = q[i];
  float4 xi = x[i], ri = r[i];
  xi.x += alpha * pi.x; xi.y += alpha * pi.y; xi.z += alpha * pi.z; xi.w += alpha * pi.w;
  ri.x -= alpha * qi.x; ri.y -= alpha * qi.y; ri.z -= alpha * qi.z; ri.w -= alpha * qi.w;
  x[i] = xi;
  r[i] = ri;
  add_to_scalar(ri.x * ri.x + ri.y * ri.y + ri.z * ri.z + ri.w * ri.w, rr_new);
}

// p = r + beta p
__global__ void __launch_bounds__(kThreads)
update_direction(const double* rr_new, const double* rr, const float4* __restrict__ r, float4* __restrict__ p) {
  const int i = blockIdx.x * kThreads + threadIdx.x;
  const float beta = float(*rr_new) / float(*rr);
  const float4 ri = r[i];
  float4 pi = p[i];
  pi.x = ri.x + beta * pi.x; pi.y = ri.y + beta * pi.y;
  pi.z = ri.z + beta * pi.z; pi.w = ri.w + beta * pi.w;
  p[i] = pi;
}

class Solver {
 public:
  Solver(Grid g, int sweeps) : g_(g), sweeps_(sweeps) {
    for (float** v : {&x_, &r_, &p_, &q_}) CHECK(cudaMalloc(v, g.size() * sizeof(float)));
    CHECK(cudaMalloc(&rr_, (2 * sweeps + 1) * sizeof(double)));
    pq_ = rr_ + sweeps + 1;
    CHECK(cudaStreamCreate(&stream_));
  }

  void solve(const float* b) {
    const int blocks = g_.size() / 4 / kThreads;
    float4 *x = v4(x_), *r = v4(r_), *p = v4(p_), *q = v4(q_);
    CHECK(cudaMemsetAsync(rr_, 0, (2 * sweeps_ + 1) * sizeof(double), stream_));
    start<<<blocks, kThreads, 0, stream_>>>(g_, b, x, r, p, rr_);
    for (int k = 0; k < sweeps_; ++k) {
      apply_laplacian<false><<<blocks, kThreads, 0, stream_>>>(g_, p_, q, pq_ + k);
      update_solution<<<blocks, kThreads, 0, stream_>>>(rr_ + k, pq_ + k, p, q, x, r, rr_ + k + 1);
      update_direction<<<blocks, kThreads, 0, stream_>>>(rr_ + k + 1, rr_ + k, r, p);
    }
  }

  const float* solution() const { return x_; }
  cudaStream_t stream() const { return stream_; }

 private:
  static float4* v4(float* p) { return reinterpret_cast<float4*>(p); }
  Grid g_;
  int sweeps_;
  float *x_, *r_, *p_, *q_;
  double *rr_, *pq_;
  cudaStream_t stream_;
};

}  // namespace flow

int main() {
  const flow::Grid g{1024, 1024};
  constexpr int kSweeps = 20, kIters = 100;
  std::vector<float> b(g.size());
  uint32_t st = 4242u;
  for (auto& v : b) {
    st = st * 1664525u + 1013904223u;
    v = float(st >> 8) * (2.f / 16777216.f) - 1.f;
  }
  float* db;
  CHECK(cudaMalloc(&db, g.size() * 4));
  CHECK(cudaMemcpy(db, b.data(), g.size() * 4, cudaMemcpyHostToDevice));
  flow::Solver solver(g, kSweeps);
  for (int i = 0; i < 4; ++i) solver.solve(db);
  cudaEvent_t e0, e1;
  CHECK(cudaEventCreate(&e0));
  CHECK(cudaEventCreate(&e1));
  CHECK(cudaEventRecord(e0, solver.stream()));
  for (int i = 0; i < kIters; ++i) solver.solve(db);
  CHECK(cudaEventRecord(e1, solver.stream()));
  CHECK(cudaEventSynchronize(e1));
  CHECK(cudaGetLastError());
  float ms = 0;
  CHECK(cudaEventElapsedTime(&ms, e0, e1));

  std::vector<float> got(g.size());
  CHECK(cudaMemcpy(got.data(), solver.solution(), g.size() * 4, cudaMemcpyDeviceToHost));
  std::vector<double> x(g.size(), 0.0), r(b.begin(), b.end()), p(r), q(g.size());
  double rr = 0;
  for (double v : r) rr += v * v;
  for (int k = 0; k < kSweeps; ++k) {
    double pq = 0, rn = 0;
    for (int y = 0; y < g.ny; ++y)
      for (int c = 0; c < g.nx; ++c) {
        const int i = y * g.nx + c;
        double o = 4.01 * p[i];
        if (y > 0) o -= p[i - g.nx];
        if (y + 1 < g.ny) o -= p[i + g.nx];
        if (c > 0) o -= p[i - 1];
        if (c + 1 < g.nx) o -= p[i + 1];
        q[i] = o;
        pq += o * p[i];
      }
    const double alpha = rr / pq;
    for (int i = 0; i < g.size(); ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
      rn += r[i] * r[i];
    }
    for (int i = 0; i < g.size(); ++i) p[i] = r[i] + rn / rr * p[i];
    rr = rn;
  }
  for (int i = 0; i < g.size(); i += 101)
    if (std::fabs(got[i] - x[i]) > 2e-3 * (1.0 + std::fabs(x[i]))) {
      std::fprintf(stderr, "wrong in cell %d: %g, expected %g\n", i, got[i], x[i]);
      return 1;
    }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.f / kIters);
  return 0;
}
