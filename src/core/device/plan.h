// SPDX-License-Identifier: Apache-2.0
// The vocabulary of the plan form: device code only, with its launches declared as data in the same
// source and evaluated by the compiler. This text goes into task.h for the cuda target, where
// namespace `arg` names the tensors and the workspace of Args.
//
//     __global__ void scale(const float* x, float* y, float s) { ... }
//     KP_LAUNCH(scale, kp::dim(ROWS), kp::dim(THREADS), 0, arg::x, arg::y, 2.0f)
//     KP_MEMSET(arg::y, 0, ROWS * COLS * sizeof(float))
//     KP_LAUNCH_CLUSTER((tiled<128, 64>), kp::dim(64), kp::dim(128), 49152, kp::dim(2), arg::x,
//     arg::y)
//
// Steps run in source order, each after the one before. Put a kernel with template commas in
// parentheses. Arguments are converted to the kernel's parameter types; `arg::x + n` is the address
// of element n. Dynamic shared memory above 48 KB needs no opt-in. Streams and events are for the
// host form, `launch`.
//
// A tensor map for TMA is also an argument: sizes and box in elements, contiguous dimension first;
// rows without gaps unless strides (bytes, from the second dimension on) are given. Elements
// outside the sizes read as 0.
//
//     __global__ void tiles(const __grid_constant__ kp::TensorMap a, float* y) { ... &a ... }
//     KP_LAUNCH(tiles, kp::dim(64), kp::dim(128), 0,
//               kp::tensor_map(arg::a, kp::sizes(K, M), kp::box(64, 128), kp::Swizzle::k128),
//               arg::y)
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

// A CUtensorMap, as a kernel parameter: `const __grid_constant__ kp::TensorMap`.
struct alignas(64) TensorMap {
  unsigned long long opaque[16];
};
enum class Swizzle { kNone, k32, k64, k128 };  // bytes, as CU_TENSOR_MAP_SWIZZLE_*

struct Extents {
  int rank;
  long long at[5];
};
template <class... N>
__host__ __device__ constexpr Extents sizes(N... n) {
  static_assert(sizeof...(N) >= 1 && sizeof...(N) <= 5, "a tensor map has 1 to 5 dimensions");
  return {sizeof...(N), {static_cast<long long>(n)...}};
}
template <class... N>
__host__ __device__ constexpr Extents box(N... n) {
  return sizes(n...);
}
// Bytes, from the second dimension on.
template <class... N>
__host__ __device__ constexpr Extents strides(N... n) {
  static_assert(sizeof...(N) <= 4, "a tensor map has at most 4 strides");
  return {sizeof...(N), {static_cast<long long>(n)...}};
}

template <class T>
struct MapOf {
  Address<T> address;
  Extents sizes, strides, box;
  Swizzle swizzle;
};
template <class T>
__host__ __device__ constexpr MapOf<T> tensor_map(Address<T> address, Extents sizes,
                                                  Extents strides, Extents box,
                                                  Swizzle swizzle = Swizzle::kNone) {
  return {address, sizes, strides, box, swizzle};
}
template <class T>
__host__ __device__ constexpr MapOf<T> tensor_map(Address<T> address, Extents sizes, Extents box,
                                                  Swizzle swizzle = Swizzle::kNone) {
  Extents strides{sizes.rank - 1, {}};
  long long bytes = sizeof(T);
  for (int i = 0; i + 1 < sizes.rank; ++i) strides.at[i] = bytes *= sizes.at[i];
  return {address, sizes, strides, box, swizzle};
}

// CUtensorMapDataType of an element type.
template <class T>
struct MapType {
  static constexpr int value = sizeof(T) == 1   ? 0
                               : sizeof(T) == 2 ? 1
                               : sizeof(T) == 4 ? 2
                               : sizeof(T) == 8 ? 4
                                                : -1;
};
template <>
struct MapType<int> {
  static constexpr int value = 3;
};
template <>
struct MapType<float> {
  static constexpr int value = 7;
};
template <>
struct MapType<double> {
  static constexpr int value = 8;
};
template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<const T> {
  using type = T;
};

// One parameter. build/plan_form.cc reads the layouts of Parameter, StepHeader, Step, MapRecord and
// MappedStep.
struct Parameter {
  int kind;  // 0: the value in bits; 1: address of a tensor; 2: address in the workspace; 3: a
             // tensor map of a tensor, 4: of the workspace: the step's next MapRecord
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

struct MapRecord {
  int type, rank, swizzle, mismatch;
  long long sizes[5], strides[5];
  int box[6];
};
// A step and its tensor maps, in the order of its parameters.
template <class Step, int M>
struct MappedStep {
  Step step;
  MapRecord maps[M];
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

template <class P, class T>
struct Convert<P, MapOf<T>> {
  __host__ __device__ static constexpr Parameter make(const MapOf<T>& map) {
    static_assert(sizeof(P) == 128 && alignof(P) == 64,
                  "plan form: a tensor map goes to a parameter of type kp::TensorMap");
    return {map.address.index < 0 ? 4 : 3, 128, map.address.index, map.address.offset};
  }
};

template <class A>
struct IsMap {
  static constexpr int value = 0;
};
template <class T>
struct IsMap<MapOf<T>> {
  static constexpr int value = 1;
};

template <class A>
__host__ __device__ constexpr void add_map(MapRecord*&, const A&) {}
template <class T>
__host__ __device__ constexpr void add_map(MapRecord*& to, const MapOf<T>& map) {
  MapRecord& record = *to++;
  record.type = MapType<typename Plain<T>::type>::value;
  record.rank = map.sizes.rank;
  record.swizzle = static_cast<int>(map.swizzle);
  record.mismatch = map.box.rank != map.sizes.rank || map.strides.rank != map.sizes.rank - 1;
  for (int i = 0; i < 5; ++i) {
    record.sizes[i] = map.sizes.at[i];
    record.strides[i] = map.strides.at[i];
    record.box[i] = static_cast<int>(map.box.at[i]);
  }
}

template <class... P, class... A>
__host__ __device__ constexpr auto launch_step(int order, void (*kernel)(P...), Dim3 grid,
                                               Dim3 block, long long shared, Dim3 cluster,
                                               const A&... a) {
  static_assert(sizeof...(P) == sizeof...(A),
                "plan form: KP_LAUNCH gives a different number of arguments than the kernel takes");
  using Launch = Step<void(P...), sizeof...(P)>;
  const Launch step{kernel,
                    {0x4b505354u, 0, order, static_cast<int>(sizeof...(P)), grid, block, cluster,
                     static_cast<unsigned>(shared), 0, 0, 0},
                    {Convert<P, A>::make(a)...}};
  constexpr int maps = (IsMap<A>::value + ... + 0);
  if constexpr (maps == 0) {
    return step;
  } else {
    MappedStep<Launch, maps> mapped{step, {}};
    MapRecord* next = mapped.maps;
    (add_map(next, a), ...);
    return mapped;
  }
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
