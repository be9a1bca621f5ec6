// SPDX-License-Identifier: Apache-2.0
// How the launches below are written: KP_LAUNCH(kernel, grid, block, dynamic shared memory,
// arguments...), KP_LAUNCH_CLUSTER (with cluster dimensions) and KP_MEMSET (address, byte, bytes),
// run in this order. `arg::x + n` is the address of element n; kp::tensor_map(address, sizes,
// [strides,] box, swizzle) makes a tensor map for TMA.
namespace kp {
namespace {

struct Dim3 {
  unsigned x, y, z;
};
__host__ __device__ constexpr Dim3 dim(long long x, long long y = 1, long long z = 1) {
  return {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)};
}

template <class T>
struct Address {
  int index;  // of the pointer in Args; -1: the workspace
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

template <class T>
void* pointer(const Args& args, const Address<T>& a) {
  constexpr int kPointers = static_cast<int>(sizeof(Args) / sizeof(void*));
  void* const* all = reinterpret_cast<void* const*>(&args);
  return static_cast<char*>(all[a.index < 0 ? kPointers - 1 : a.index]) + a.offset;
}

struct alignas(64) TensorMap {  // a CUtensorMap
  unsigned long long opaque[16];
};
enum class Swizzle { kNone, k32, k64, k128 };

struct Extents {
  int rank;
  long long at[5];
};
template <class... N>
constexpr Extents sizes(N... n) {
  return {sizeof...(N), {static_cast<long long>(n)...}};
}
template <class... N>
constexpr Extents box(N... n) {
  return sizes(n...);
}
template <class... N>
constexpr Extents strides(N... n) {
  return {sizeof...(N), {static_cast<long long>(n)...}};
}

template <class T>
struct MapOf {
  Address<T> address;
  Extents sizes, strides, box;
  Swizzle swizzle;
};
template <class T>
constexpr MapOf<T> tensor_map(Address<T> address, Extents sizes, Extents strides, Extents box,
                              Swizzle swizzle = Swizzle::kNone) {
  return {address, sizes, strides, box, swizzle};
}
template <class T>
constexpr MapOf<T> tensor_map(Address<T> address, Extents sizes, Extents box,
                              Swizzle swizzle = Swizzle::kNone) {
  Extents strides{sizes.rank - 1, {}};
  long long bytes = sizeof(T);
  for (int i = 0; i + 1 < sizes.rank; ++i) strides.at[i] = bytes *= sizes.at[i];
  return {address, sizes, strides, box, swizzle};
}

// cuTensorMapEncodeTiled, without the driver's header; all zeros where it fails.
using Encode = int (*)(void*, int, unsigned, void*, const unsigned long long*,
                       const unsigned long long*, const unsigned*, const unsigned*, int, int, int,
                       int);
Encode encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 13000
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                   &found);
#else
  cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &function, cudaEnableDefault, &found);
#endif
  return reinterpret_cast<Encode>(function);
}
template <class T>
TensorMap encoded(void* address, const MapOf<T>& map) {
  static const Encode encode = encoder();
  unsigned long long sizes[5], strides[5];
  unsigned box[5], steps[5] = {1, 1, 1, 1, 1};
  for (int i = 0; i < 5; ++i) {
    sizes[i] = static_cast<unsigned long long>(map.sizes.at[i]);
    strides[i] = static_cast<unsigned long long>(map.strides.at[i]);
    box[i] = static_cast<unsigned>(map.box.at[i]);
  }
  constexpr int kOpaque[] = {-1, 0, 1, -1, 2, -1, -1, -1, 4};  // types that say the width alone
  TensorMap made{};
  if (encode != nullptr) {
    encode(&made, kOpaque[sizeof(T)], static_cast<unsigned>(map.sizes.rank), address, sizes,
           strides, box, steps, 0, static_cast<int>(map.swizzle), 3, 0);
  }
  return made;
}

template <class P, class A>
struct Argument {
  static P value(const Args&, const A& a) { return static_cast<P>(a); }
};
template <class P, class T>
struct Argument<P*, Address<T>> {
  static P* value(const Args& args, const Address<T>& a) { return (P*)pointer(args, a); }
};

template <class P, class T>
struct Argument<P, MapOf<T>> {
  static P value(const Args& args, const MapOf<T>& map) {
    return encoded(pointer(args, map.address), map);
  }
};

template <class... P, class... A>
cudaError_t launch_step(const Args& args, cudaStream_t stream, void (*kernel)(P...), Dim3 grid,
                        Dim3 block, long long shared, Dim3 cluster, const A&... a) {
  static_assert(sizeof...(P) == sizeof...(A), "KP_LAUNCH: not as many arguments as the kernel has");
  if (shared > 0) {
    const cudaError_t set = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
    if (set != cudaSuccess) return set;
  }
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid.x, grid.y, grid.z);
  config.blockDim = dim3(block.x, block.y, block.z);
  config.dynamicSmemBytes = static_cast<std::size_t>(shared);
  config.stream = stream;
  if (cluster.x > 0) {
    if (cluster.x * cluster.y * cluster.z > 8) {
      const cudaError_t set =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
      if (set != cudaSuccess) return set;
    }
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster.x;
    attribute.val.clusterDim.y = cluster.y;
    attribute.val.clusterDim.z = cluster.z;
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, Argument<P, A>::value(args, a)...);
}

template <class T>
cudaError_t memset_step(const Args& args, cudaStream_t stream, const Address<T>& to, int value,
                        long long bytes) {
  return cudaMemsetAsync(pointer(args, to), value, static_cast<std::size_t>(bytes), stream);
}

// Filled before anything runs, in the order of the text.
using Step = cudaError_t (*)(const Args&, cudaStream_t);
struct Steps {
  Step all[1024];
  int count;
};
Steps steps;
bool add(Step step) {
  if (steps.count < 1024) steps.all[steps.count] = step;
  return ++steps.count <= 1024;
}

}  // namespace
}  // namespace kp

#define KP_JOIN2(a, b) a##b
#define KP_JOIN(a, b) KP_JOIN2(a, b)
#define KP_STEP(id, call)                                                                 \
  static cudaError_t KP_JOIN(kp_step_, id)(const Args& kp_args, cudaStream_t kp_stream) { \
    return call;                                                                          \
  }                                                                                       \
  static const bool KP_JOIN(kp_added_, id) = kp::add(KP_JOIN(kp_step_, id));
#define KP_LAUNCH_CLUSTER(kernel, grid, block, shared, cluster, ...)                          \
  KP_STEP(__LINE__, kp::launch_step(kp_args, kp_stream, kernel, grid, block, shared, cluster, \
                                    ##__VA_ARGS__))
#define KP_LAUNCH(kernel, grid, block, shared, ...) \
  KP_LAUNCH_CLUSTER(kernel, grid, block, shared, (kp::Dim3{0, 0, 0}), ##__VA_ARGS__)
#define KP_MEMSET(to, value, bytes) \
  KP_STEP(__LINE__, kp::memset_step(kp_args, kp_stream, to, value, bytes))
