// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the plan form: device code alone, its launches declared as data in the same
// source and evaluated by the compiler. This text goes into task.h for the cuda target; there,
// namespace `arg` names the tensors and the workspace of Args.
//
//     __global__ void scale(const float* x, float* y, float s) { ... }
//     KP_LAUNCH(scale, kp::dim(ROWS), kp::dim(THREADS), 0, arg::x, arg::y, 2.0f)
//     KP_MEMSET(arg::y, 0, ROWS * COLS * sizeof(float))
//     KP_LAUNCH_CLUSTER((tiled<128, 64>), kp::dim(64), kp::dim(128), 49152, kp::dim(2), arg::x,
//     arg::y)
//
// Steps run in the order of the source, each after the one before. A kernel with template commas
// is written in parentheses. Arguments are converted to the kernel's parameter types; `arg::x + n`
// is the address of element n. Dynamic shared memory above 48 KB needs nothing else. Whatever a
// launch needs from the host (streams, events, tensor maps) is for the host form, `launch`.
#ifdef __CUDACC_RTC__  // has no <math.h>
#ifndef INFINITY
#define INFINITY __builtin_bit_cast(float, 0x7f800000u)
#endif
#ifndef NAN
#define NAN __builtin_bit_cast(float, 0x7fffffffu)
#endif
#endif

namespace kp {

struct Dim3 {
  unsigned x, y, z;
};
__host__ __device__ constexpr Dim3 dim(long long x, long long y = 1, long long z = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
}

// Address of tensor `index` of Args (or of the workspace, -1) plus `offset` bytes.
template <class T>
struct Address {
  int index;
  long long offset;
  __host__ __device__ constexpr Address operator+(long long elements) const {
    return {index, offset + elements * static_cast<long long>(sizeof(T))};
  }
};
template <>
struct Address<void> {
  int index;
  long long offset;
  __host__ __device__ constexpr Address operator+(long long bytes) const {
    return {index, offset + bytes};
  }
};

// One parameter. The layouts of Parameter, StepHeader and Step are read by compile/plan_form.cc.
struct Parameter {
  int kind;  // 0: the value in bits; 1: address of a tensor; 2: address in the workspace
  int size;  // bytes
  long long index_or_bits;
  long long offset;
};

struct StepHeader {
  unsigned magic;  // 0x4b505354
  int kind;        // 0: kernel; 1: memset
  int order;       // in the source
  int parameter_count;
  Dim3 grid, block, cluster;
  unsigned dynamic_shared;
  unsigned value;  // memset: the byte
  int reserved;
  long long bytes;  // memset
};

template <class Kernel, int N>
struct Step {
  Kernel* kernel;  // the compiler leaves a relocation here that names the function
  StepHeader header;
  Parameter parameters[N == 0 ? 1 : N];
};

template <class P, class A>
struct Convert {
  __host__ __device__ static constexpr Parameter make(const A& a) {
    static_assert(sizeof(P) == 1 || sizeof(P) == 2 || sizeof(P) == 4 || sizeof(P) == 8,
                  "plan form: a kernel parameter must have 1, 2, 4 or 8 bytes; use the host form");
    const P value = static_cast<P>(a);
    if constexpr (sizeof(P) == 1) return {0, 1, __builtin_bit_cast(unsigned char, value), 0};
    if constexpr (sizeof(P) == 2) return {0, 2, __builtin_bit_cast(unsigned short, value), 0};
    if constexpr (sizeof(P) == 4) return {0, 4, __builtin_bit_cast(unsigned, value), 0};
    if constexpr (sizeof(P) == 8) return {0, 8, __builtin_bit_cast(long long, value), 0};
  }
};
template <class P, class T>
struct Convert<P*, Address<T>> {
  __host__ __device__ static constexpr Parameter make(const Address<T>& a) {
    return {a.index < 0 ? 2 : 1, 8, a.index, a.offset};
  }
};

template <class... P, class... A>
__host__ __device__ constexpr Step<void(P...), sizeof...(P)> launch_step(
    int order, void (*kernel)(P...), Dim3 grid, Dim3 block, long long shared, Dim3 cluster,
    const A&... a) {
  static_assert(sizeof...(P) == sizeof...(A),
                "plan form: KP_LAUNCH gives a different number of arguments than the kernel takes");
  return {kernel,
          {0x4b505354u, 0, order, static_cast<int>(sizeof...(P)), grid, block, cluster,
           static_cast<unsigned>(shared), 0, 0, 0},
          {Convert<P, A>::make(a)...}};
}

template <class T>
__host__ __device__ constexpr Step<void(), 1> memset_step(int order, Address<T> to, int value,
                                                          long long bytes) {
  return {nullptr,
          {0x4b505354u,
           1,
           order,
           1,
           {1, 1, 1},
           {1, 1, 1},
           {0, 0, 0},
           0,
           static_cast<unsigned>(value),
           0,
           bytes},
          {{to.index < 0 ? 2 : 1, 8, to.index, to.offset}}};
}

}  // namespace kp

#define KP_JOIN2(a, b) a##b
#define KP_JOIN(a, b) KP_JOIN2(a, b)
#define KP_STEP(id, step) extern "C" __device__ auto KP_JOIN(kp_step_, id) = step;
#define KP_LAUNCH_AT(id, kernel, grid, block, shared, cluster, ...) \
  KP_STEP(id, kp::launch_step(id, kernel, grid, block, shared, cluster, ##__VA_ARGS__))
#define KP_LAUNCH(kernel, grid, block, shared, ...) \
  KP_LAUNCH_AT(__LINE__, kernel, grid, block, shared, (kp::Dim3{0, 0, 0}), ##__VA_ARGS__)
#define KP_LAUNCH_CLUSTER(kernel, grid, block, shared, cluster, ...) \
  KP_LAUNCH_AT(__LINE__, kernel, grid, block, shared, cluster, ##__VA_ARGS__)
#define KP_MEMSET_AT(id, to, value, bytes) KP_STEP(id, kp::memset_step(id, to, value, bytes))
#define KP_MEMSET(to, value, bytes) KP_MEMSET_AT(__LINE__, to, value, bytes)
