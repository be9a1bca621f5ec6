// SPDX-License-Identifier: Apache-2.0
// The judge's own kernels (measure/worker/cuda/judge.cu, gpu_state.cu) compiled for the host: each
// runs as one block of one thread, which its grid-stride loops allow.
#if KERNELPRO_HAVE_CUDA

#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

#include "measure/worker/testing/fake_state.h"

namespace {

// What NVRTC gives the kernels.

struct OneThread {
  unsigned x = 0, y = 0, z = 0;
};
struct OneBlock {
  unsigned x = 1, y = 1, z = 1;
};
constexpr OneThread threadIdx, blockIdx;
constexpr OneBlock blockDim, gridDim;

struct ulonglong2 {
  unsigned long long x, y;
};
struct uint4 {
  unsigned x, y, z, w;
};

using std::fabs;
using std::fma;
using std::fmaf;
using std::fmax;
using std::fmin;
using std::isfinite;
using std::isnan;

long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
unsigned long long max(unsigned long long a, unsigned long long b) { return a > b ? a : b; }
template <class T, class U>
void atomicAdd(T* at, U value) {
  *at += value;
}
template <class T>
void atomicMax(T* at, T value) {
  if (*at < value) *at = value;
}
// The other lanes of the warp hold nothing.
template <class T>
T __shfl_down_sync(unsigned, T, int) {
  return T{};
}
void __syncthreads() {}
long long ticks = 0;
long long clock64() { return ticks += 20000; }
unsigned scratch[kernelpro::fake::kMostShared / 4];  // dynamic shared memory

#define __global__
#define __device__
#define __shared__

// The second one needs the first.
// clang-format off
#include "measure/worker/cuda/judge.cu"
#include "measure/worker/cuda/gpu_state.cu"
// clang-format on

template <class... Args, std::size_t... I>
void call(void (*kernel)(Args...), const kernelpro::fake::Launch& launch,
          std::index_sequence<I...>) {
  kernel(launch.value<Args>(I)...);
}

template <class... Args>
kernelpro::fake::Kernel on_host(void (*kernel)(Args...), double us) {
  return {{sizeof(Args)...},
          [kernel](kernelpro::fake::Launch& launch) {
            call(kernel, launch, std::index_sequence_for<Args...>());
          },
          us};
}

}  // namespace

const std::map<std::string, kernelpro::fake::Kernel>& kernelpro::fake::judge_kernels() {
#define KP_ON_HOST(name) \
  { #name, on_host(&::name, 5) }
  static const auto* all = new std::map<std::string, Kernel>{
      KP_ON_HOST(draw),
      KP_ON_HOST(poison),
      KP_ON_HOST(poison_range),
      KP_ON_HOST(check_poison),
      KP_ON_HOST(check_inputs),
      KP_ON_HOST(seal),
      KP_ON_HOST(summarize),
      KP_ON_HOST(sample_sizes),
      KP_ON_HOST(count_differences),
      KP_ON_HOST(compare),
      KP_ON_HOST(admit),
      KP_ON_HOST(mark_bad),
      KP_ON_HOST(vary),
      KP_ON_HOST(lean),
      KP_ON_HOST(survey),
      KP_ON_HOST(reshape),
      KP_ON_HOST(narrow),
      KP_ON_HOST(deviate),
      KP_ON_HOST(mean_errors),
      KP_ON_HOST(add_squares),
      KP_ON_HOST(disturb),
      KP_ON_HOST(flush_cache),
      KP_ON_HOST(touch_pages),
      KP_ON_HOST(scrub_shared),
      KP_ON_HOST(scrub_local_1k),
      KP_ON_HOST(scrub_local_8k),
      KP_ON_HOST(scrub_local_16k),
      KP_ON_HOST(scrub_local_32k),
      KP_ON_HOST(scrub_local_64k),
      KP_ON_HOST(scrub_local_128k),
      KP_ON_HOST(hand_over),
      KP_ON_HOST(copy),
      KP_ON_HOST(multiply_add),
  };
#undef KP_ON_HOST
  return *all;
}

#endif
