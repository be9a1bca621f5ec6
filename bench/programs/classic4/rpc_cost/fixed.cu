// SPDX-License-Identifier: Apache-2.0
// Multi-view triangulation cost of candidate ground points under rational polynomial camera models.
#include <cuda_runtime.h>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#define CK(call)                                                                     \
  do {                                                                               \
    cudaError_t e_ = (call);                                                         \
    if (e_ != cudaSuccess) {                                                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
      return 1;                                                                      \
    }                                                                                \
  } while (0)

namespace rpc {

constexpr int kTerms = 20;
constexpr int kMaxCameras = 16;

struct Camera {
  float line_num[kTerms], line_den[kTerms], samp_num[kTerms], samp_den[kTerms];
  float line_obs, samp_obs, weight, pad;
};

__constant__ Camera c_camera[kMaxCameras];

struct Arithmetic {
  static __device__ __forceinline__ float mad(float a, float b, float c) {
    return fmaf(a, b, c);
  }
};

// The nineteen monomials of the cubic, in the order of the RPC00B standard.
struct Monomials {
  float m[kTerms - 1];
  __device__ __forceinline__ Monomials(float p, float l, float h) {
    const float ll = l * l, pp = p * p, hh = h * h;
    m[0] = l; m[1] = p; m[2] = h;
    m[3] = l * p; m[4] = l * h; m[5] = p * h;
    m[6] = ll; m[7] = pp; m[8] = hh;
    m[9] = m[3] * h; m[10] = ll * l; m[11] = l * pp; m[12] = l * hh;
    m[13] = ll * p; m[14] = pp * p; m[15] = p * hh;
    m[16] = ll * h; m[17] = pp * h; m[18] = hh * h;
  }
};

template <class Math, int POINTS>
__device__ __forceinline__ void cubic(const float* c, const Monomials (&g)[POINTS], float (&v)[POINTS]) {
#pragma unroll
  for (int i = 0; i < POINTS; ++i) v[i] = c[0];
#pragma unroll
  for (int k = 1; k < kTerms; ++k)
#pragma unroll
    for (int i = 0; i < POINTS; ++i) v[i] = Math::mad(c[k], g[i].m[k - 1], v[i]);
}

template <class Math>
__global__ void __launch_bounds__(128)
    triangulation_cost(const float2* __restrict__ lat, const float2* __restrict__ lon, const float2* __restrict__ height,
                       float2* __restrict__ cost, int cameras, int pairs) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= pairs) return;
  const float2 p = lat[i], l = lon[i], h = height[i];
  const Monomials g[2] = {Monomials(p.x, l.x, h.x), Monomials(p.y, l.y, h.y)};
  float sum[2] = {0.0f, 0.0f};
#pragma unroll 1
  for (int k = 0; k < cameras; ++k) {
    const Camera& cam = c_camera[k];
    float ln[2], ld[2], sn[2], sd[2];
    cubic<Math>(cam.line_num, g, ln);
    cubic<Math>(cam.line_den, g, ld);
    cubic<Math>(cam.samp_num, g, sn);
    cubic<Math>(cam.samp_den, g, sd);
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const float dl = __fdividef(ln[j], ld[j]) - cam.line_obs;
      const float ds = __fdividef(sn[j], sd[j]) - cam.samp_obs;
      sum[j] = Math::mad(cam.weight, Math::mad(dl, dl, ds * ds), sum[j]);
    }
  }
  cost[i] = make_float2(sum[0], sum[1]);
}

}  // namespace rpc

static uint32_t rng_state = 777u;
static float uniform() {
  rng_state = rng_state * 1664525u + 1013904223u;
  return (rng_state >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

static double reference_cubic(const float* c, double p, double l, double h) {
  return c[0] + c[1] * l + c[2] * p + c[3] * h + c[4] * l * p + c[5] * l * h + c[6] * p * h + c[7] * l * l + c[8] * p * p +
         c[9] * h * h + c[10] * p * l * h + c[11] * l * l * l + c[12] * l * p * p + c[13] * l * h * h + c[14] * l * l * p +
         c[15] * p * p * p + c[16] * p * h * h + c[17] * l * l * h + c[18] * p * p * h + c[19] * h * h * h;
}

int main() {
  const int cameras = 12, points = 1 << 22;
  std::vector<rpc::Camera> cam(cameras);
  for (auto& c : cam) {
    for (int k = 0; k < rpc::kTerms; ++k) {
      const float size = k < 4 ? 0.5f : 0.02f;
      c.line_num[k] = size * uniform();
      c.samp_num[k] = size * uniform();
      c.line_den[k] = k == 0 ? 1.0f : 0.01f * uniform();
      c.samp_den[k] = k == 0 ? 1.0f : 0.01f * uniform();
    }
    c.line_obs = 0.3f * uniform();
    c.samp_obs = 0.3f * uniform();
    c.weight = 1.5f + uniform();
    c.pad = 0.0f;
  }
  std::vector<float> lat(points), lon(points), height(points), cost(points);
  for (int i = 0; i < points; ++i) { lat[i] = uniform(); lon[i] = uniform(); height[i] = uniform(); }
  const size_t bytes = points * sizeof(float);
  float *d_lat, *d_lon, *d_height, *d_cost;
  CK(cudaMalloc(&d_lat, bytes));
  CK(cudaMalloc(&d_lon, bytes));
  CK(cudaMalloc(&d_height, bytes));
  CK(cudaMalloc(&d_cost, bytes));
  CK(cudaMemcpy(d_lat, lat.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_lon, lon.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpy(d_height, height.data(), bytes, cudaMemcpyHostToDevice));
  CK(cudaMemcpyToSymbol(rpc::c_camera, cam.data(), cameras * sizeof(rpc::Camera)));

  const int pairs = points / 2, block = 128;
  auto step = [&] {
    rpc::triangulation_cost<rpc::Arithmetic><<<(pairs + block - 1) / block, block>>>(
        reinterpret_cast<float2*>(d_lat), reinterpret_cast<float2*>(d_lon), reinterpret_cast<float2*>(d_height),
        reinterpret_cast<float2*>(d_cost), cameras, pairs);
  };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 100;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));
  CK(cudaMemcpy(cost.data(), d_cost, bytes, cudaMemcpyDeviceToHost));

  for (int i = 0; i < points; i += 401) {
    double want = 0.0;
    for (const auto& c : cam) {
      const double p = lat[i], l = lon[i], h = height[i];
      const double dl = reference_cubic(c.line_num, p, l, h) / reference_cubic(c.line_den, p, l, h) - c.line_obs;
      const double ds = reference_cubic(c.samp_num, p, l, h) / reference_cubic(c.samp_den, p, l, h) - c.samp_obs;
      want += c.weight * (dl * dl + ds * ds);
    }
    if (!(std::fabs(cost[i] - want) <= 1e-4 * (1.0 + want))) {
      std::fprintf(stderr, "wrong cost at point %d: %g, not %g\n", i, cost[i], want);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
