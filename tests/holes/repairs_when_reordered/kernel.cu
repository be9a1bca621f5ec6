// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected | crashed
// Two branches without an edge between them: the second reads, 100 us after it began, what the first
// writes, and bets that it has. Each leaves a sign at its end. Where one of them finds the other's
// sign before it has begun, they were made to run one after another: then the first, if it is the
// later one, computes everything itself. In every order of whole kernels the result is right; side
// by side, on a busy GPU, it is not.
#include "task.h"

constexpr unsigned kSign = 0x13572468u;

__global__ void first(const float* x, const float* z, float* y, float* w, const unsigned* sign) {
  const bool later = *(const volatile unsigned*)sign == kSign;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += 264 * 256) {
    w[i] = 2 * x[i];
    if (later) y[i] = 2 * x[i] + z[i];
  }
}
__global__ void second(const float* z, float* y, const float* w) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < 100000);
  for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += 264 * 256) y[i] = __ldcg(w + i) + z[i];
}
__global__ void sign_it(unsigned* sign) { *sign = kSign; }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  float* w = static_cast<float*>(args.workspace);
  unsigned* sign = reinterpret_cast<unsigned*>(w + (N + 63) / 64 * 64);
  cudaStream_t side;
  cudaEvent_t fork, join;
  cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  cudaMemsetAsync(sign, 0, 4, stream);
  cudaEventRecord(fork, stream);
  cudaStreamWaitEvent(side, fork);
  first<<<264, 256, 0, stream>>>(args.x, args.z, args.y, w, sign);
  second<<<264, 256, 0, side>>>(args.z, args.y, w);
  sign_it<<<1, 1, 0, side>>>(sign);
  cudaEventRecord(join, side);
  cudaStreamWaitEvent(stream, join);
}
