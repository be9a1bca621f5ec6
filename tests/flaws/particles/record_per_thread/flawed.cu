// SPDX-License-Identifier: Apache-2.0
#include "task.h"

struct Particle {
  float x, y, z, mass;
  float vx, vy, vz, charge;
  float ax, ay, az, spin;
  float px, py, pz, age;
};

__global__ void energy(const Particle* particle, float* out) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  if (i >= N) return;
  const Particle& p = particle[i];
  float e = p.x * p.x * 1 + p.y * p.y * 2 + p.z * p.z * 3 + p.mass * p.mass * 4;
  e += p.vx * p.vx * 5 + p.vy * p.vy * 6 + p.vz * p.vz * 7 + p.charge * p.charge * 8;
  e += p.ax * p.ax * 9 + p.ay * p.ay * 10 + p.az * p.az * 11 + p.spin * p.spin * 12;
  e += p.px * p.px * 13 + p.py * p.py * 14 + p.pz * p.pz * 15 + p.age * p.age * 16;
  out[i] = e * 0.0625f;
}

extern "C" void launch(const Args& args, cudaStream_t stream) {
  energy<<<(N + 255) / 256, 256, 0, stream>>>(reinterpret_cast<const Particle*>(args.particle),
                                              args.energy);
}
