// SPDX-License-Identifier: Apache-2.0
// Lennard-Jones forces on particles sorted into the cells of a periodic box.
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

namespace md {

struct Grid {
  int nx, ny, nz;
  float edge;
};

struct LennardJones {
  float eps24, sigma2, rc2;
  __device__ __forceinline__ float over_r(float r2) const {
    const float inv = __fdividef(1.0f, r2);
    const float s2 = sigma2 * inv;
    const float s6 = s2 * s2 * s2;
    const float f = eps24 * inv * s6 * fmaf(2.0f, s6, -1.0f);
    return (r2 < rc2 && r2 > 0.0f) ? f : 0.0f;
  }
};

struct SoftSphere {
  float k, rc2;
  __device__ __forceinline__ float over_r(float r2) const {
    return r2 < rc2 && r2 > 0.0f ? k * (rc2 * rsqrtf(r2) - 1.0f) : 0.0f;
  }
};

// Particles are kept in CAP slots per cell; empty slots lie far outside of the box.
template <class Potential, int CAP, int CELLS>
__global__ void __launch_bounds__(CAP* CELLS)
    cell_forces(const float4* __restrict__ pos, float4* __restrict__ force, Grid g, Potential pot) {
  __shared__ float4 tile[CELLS][CAP];
  const int cell = blockIdx.x * CELLS + threadIdx.y;
  const int slot = threadIdx.x;
  const int cx = cell % g.nx;
  const int cy = (cell / g.nx) % g.ny;
  const int cz = cell / (g.nx * g.ny);

  const float4 me = pos[cell * CAP + slot];
  float fx = 0.0f, fy = 0.0f, fz = 0.0f;

  for (int dz = -1; dz <= 1; ++dz) {
    int z = cz + dz;
    float sz = 0.0f;
    if (z < 0) { z += g.nz; sz = -g.nz * g.edge; }
    if (z >= g.nz) { z -= g.nz; sz = g.nz * g.edge; }
    for (int dy = -1; dy <= 1; ++dy) {
      int y = cy + dy;
      float sy = 0.0f;
      if (y < 0) { y += g.ny; sy = -g.ny * g.edge; }
      if (y >= g.ny) { y -= g.ny; sy = g.ny * g.edge; }
      for (int dx = -1; dx <= 1; ++dx) {
        int x = cx + dx;
        float sx = 0.0f;
        if (x < 0) { x += g.nx; sx = -g.nx * g.edge; }
        if (x >= g.nx) { x -= g.nx; sx = g.nx * g.edge; }

        const float4 p = pos[((z * g.ny + y) * g.nx + x) * CAP + slot];
        __syncthreads();
        tile[threadIdx.y][slot] = make_float4(p.x + sx, p.y + sy, p.z + sz, p.w);
        __syncthreads();
#pragma unroll 12
        for (int k = 0; k < CAP; ++k) {
          const float4 q = tile[threadIdx.y][k];
          const float rx = me.x - q.x, ry = me.y - q.y, rz = me.z - q.z;
          const float s = pot.over_r(fmaf(rx, rx, fmaf(ry, ry, rz * rz)));
          fx = fmaf(s, rx, fx);
          fy = fmaf(s, ry, fy);
          fz = fmaf(s, rz, fz);
        }
      }
    }
  }
  force[cell * CAP + slot] = make_float4(fx, fy, fz, 0.0f);
}

template <class Potential, int CAP, int CELLS>
void launch_forces(const float4* pos, float4* force, const Grid& g, const Potential& pot) {
  const int cells = g.nx * g.ny * g.nz;
  cell_forces<Potential, CAP, CELLS><<<cells / CELLS, dim3(CAP, CELLS)>>>(pos, force, g, pot);
}

}  // namespace md

static uint32_t rng_state = 12345u;
static float uniform() {
  rng_state = rng_state * 1664525u + 1013904223u;
  return (rng_state >> 8) * (1.0f / 16777216.0f);
}

int main(int argc, char**) {
  constexpr int kCap = 36;
  constexpr int kCellsPerBlock = 1;
  const md::Grid g{24, 32, 32, 3.0f};
  const md::LennardJones lj{24.0f, 0.49f, 6.25f};
  const int cells = g.nx * g.ny * g.nz;
  std::vector<float4> pos(size_t(cells) * kCap);
  for (int c = 0; c < cells; ++c) {
    const float ox = (c % g.nx) * g.edge, oy = ((c / g.nx) % g.ny) * g.edge, oz = (c / (g.nx * g.ny)) * g.edge;
    for (int s = 0; s < kCap; ++s) {
      const float jx = uniform() * 0.2f, jy = uniform() * 0.2f, jz = uniform() * 0.2f;
      float4 p = make_float4(ox + (s % 4) * 0.75f + 0.2f + jx, oy + ((s / 4) % 3) + 0.3f + jy, oz + (s / 12) + 0.3f + jz, 1.0f);
      if (uniform() < 0.04f) p = make_float4(1e9f, 1e9f, 1e9f, 0.0f);
      pos[size_t(c) * kCap + s] = p;
    }
  }
  float4 *d_pos, *d_force;
  CK(cudaMalloc(&d_pos, pos.size() * sizeof(float4)));
  CK(cudaMalloc(&d_force, pos.size() * sizeof(float4)));
  CK(cudaMemcpy(d_pos, pos.data(), pos.size() * sizeof(float4), cudaMemcpyHostToDevice));

  if (argc > 1) {  // granular mode
    md::launch_forces<md::SoftSphere, kCap, kCellsPerBlock>(d_pos, d_force, g, md::SoftSphere{10.0f, 0.64f});
    CK(cudaDeviceSynchronize());
    return 0;
  }

  auto step = [&] { md::launch_forces<md::LennardJones, kCap, kCellsPerBlock>(d_pos, d_force, g, lj); };
  for (int i = 0; i < 3; ++i) step();
  CK(cudaDeviceSynchronize());
  cudaEvent_t t0, t1;
  CK(cudaEventCreate(&t0));
  CK(cudaEventCreate(&t1));
  const int iters = 40;
  CK(cudaEventRecord(t0));
  for (int i = 0; i < iters; ++i) step();
  CK(cudaEventRecord(t1));
  CK(cudaEventSynchronize(t1));
  CK(cudaGetLastError());
  float ms = 0.0f;
  CK(cudaEventElapsedTime(&ms, t0, t1));

  std::vector<float4> force(pos.size());
  CK(cudaMemcpy(force.data(), d_force, pos.size() * sizeof(float4), cudaMemcpyDeviceToHost));
  for (int n = 0; n < 150; ++n) {
    const size_t i = (size_t(n) * 2654435761u) % pos.size();
    if (pos[i].w == 0.0f) continue;
    const int c = int(i / kCap), cx = c % g.nx, cy = (c / g.nx) % g.ny, cz = c / (g.nx * g.ny);
    double f[3] = {0, 0, 0}, mag = 0;
    for (int dz = -1; dz <= 1; ++dz)
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          const int x = (cx + dx + g.nx) % g.nx, y = (cy + dy + g.ny) % g.ny, z = (cz + dz + g.nz) % g.nz;
          const double ex = (cx + dx - x) * double(g.edge), ey = (cy + dy - y) * double(g.edge), ez = (cz + dz - z) * double(g.edge);
          for (int k = 0; k < kCap; ++k) {
            const size_t j = size_t((z * g.ny + y) * g.nx + x) * kCap + k;
            if (j == i || pos[j].w == 0.0f) continue;
            const double rx = pos[i].x - (pos[j].x + ex), ry = pos[i].y - (pos[j].y + ey), rz = pos[i].z - (pos[j].z + ez);
            const double r2 = rx * rx + ry * ry + rz * rz;
            if (r2 >= lj.rc2) continue;
            const double s6 = std::pow(lj.sigma2 / r2, 3.0);
            const double s = lj.eps24 / r2 * s6 * (2 * s6 - 1);
            f[0] += s * rx; f[1] += s * ry; f[2] += s * rz;
            mag += std::fabs(s) * std::sqrt(r2);
          }
        }
    const double err = std::fabs(f[0] - force[i].x) + std::fabs(f[1] - force[i].y) + std::fabs(f[2] - force[i].z);
    if (!(err <= 2e-3 * mag + 1e-2)) {
      std::fprintf(stderr, "wrong force on particle %zu: %g off\n", i, err);
      return 1;
    }
  }
  std::printf("us_per_iteration: %.3f\n", ms * 1000.0f / iters);
  return 0;
}
