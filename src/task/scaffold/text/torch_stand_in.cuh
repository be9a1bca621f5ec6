// SPDX-License-Identifier: Apache-2.0
// Stands in for the parts of PyTorch that launchers of extensions use, so that they can be compiled
// and captured without it: tensors are views of Args, new ones are the outputs in their order and
// after that pieces of the workspace. Nothing computes here.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace torch {

enum ScalarType { kFloat, kHalf, kBFloat16, kInt, kLong, kBool };
using Dtype = ScalarType;
constexpr ScalarType kFloat32 = kFloat, kFloat16 = kHalf, kInt32 = kInt, kInt64 = kLong;
enum DeviceType { kCUDA, kCPU };
struct Device {
  DeviceType type_ = kCUDA;
  Device(DeviceType type = kCUDA, int = 0) : type_(type) {}
  bool is_cuda() const { return true; }
  int index() const { return 0; }
};
struct IntArrayRef : std::vector<std::int64_t> {
  using std::vector<std::int64_t>::vector;
  IntArrayRef() = default;
  IntArrayRef(const std::vector<std::int64_t>& other) : std::vector<std::int64_t>(other) {}
  std::vector<std::int64_t> vec() const { return *this; }
};
struct TensorOptions {
  ScalarType type = kFloat;
  TensorOptions dtype(ScalarType t) const { return {t}; }
  template <class... T>
  TensorOptions device(T...) const { return *this; }
  TensorOptions requires_grad(bool) const { return *this; }
  template <class T>
  TensorOptions layout(T) const { return *this; }
};
inline TensorOptions dtype(ScalarType t) { return {t}; }
template <class... T>
TensorOptions device(T...) { return {}; }

inline int bytes_of(ScalarType t) {
  return t == kLong ? 8 : t == kFloat || t == kInt ? 4 : t == kBool ? 1 : 2;
}

class Tensor {
 public:
  Tensor() = default;
  Tensor(void* data, ScalarType type, IntArrayRef sizes)
      : data_(data), type_(type), sizes_(std::move(sizes)) {}
  template <class T = void>
  T* data_ptr() const { return static_cast<T*>(data_); }
  template <class T>
  T* mutable_data_ptr() const { return static_cast<T*>(data_); }
  template <class T>
  const T* const_data_ptr() const { return static_cast<const T*>(data_); }
  template <class T>
  T* data() const { return static_cast<T*>(data_); }
  std::int64_t numel() const {
    std::int64_t n = 1;
    for (const std::int64_t size : sizes_) n *= size;
    return n;
  }
  std::int64_t dim() const { return static_cast<std::int64_t>(sizes_.size()); }
  std::int64_t ndimension() const { return dim(); }
  std::int64_t size(std::int64_t i) const {
    return sizes_.at(static_cast<std::size_t>(i < 0 ? i + dim() : i));
  }
  IntArrayRef sizes() const { return sizes_; }
  std::int64_t stride(std::int64_t i) const {
    std::int64_t n = 1;
    for (std::int64_t k = (i < 0 ? i + dim() : i) + 1; k < dim(); ++k) n *= size(k);
    return n;
  }
  std::int64_t nbytes() const { return numel() * bytes_of(type_); }
  std::int64_t element_size() const { return bytes_of(type_); }
  ScalarType scalar_type() const { return type_; }
  ScalarType dtype() const { return type_; }
  ScalarType type() const { return type_; }
  TensorOptions options() const { return {type_}; }
  Device device() const { return {}; }
  int get_device() const { return 0; }
  bool is_cuda() const { return true; }
  bool is_contiguous() const { return true; }
  bool defined() const { return data_ != nullptr; }
  Tensor contiguous() const { return *this; }
  Tensor detach() const { return *this; }
  Tensor view(IntArrayRef sizes) const {
    std::int64_t known = 1, unknown = -1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] < 0) unknown = static_cast<std::int64_t>(i);
      else known *= sizes[i];
    }
    if (unknown >= 0) sizes[static_cast<std::size_t>(unknown)] = numel() / known;
    return {data_, type_, std::move(sizes)};
  }
  Tensor reshape(IntArrayRef sizes) const { return view(std::move(sizes)); }
  Tensor flatten() const { return view({-1}); }
  Tensor zero_() const;

 private:
  void* data_ = nullptr;
  ScalarType type_ = kFloat;
  IntArrayRef sizes_;
};

// What `launch` sets before it calls the extension's function.
struct StandIn {
  cudaStream_t stream = nullptr;
  std::vector<std::pair<void*, std::int64_t>> outputs;  // address, bytes
  std::size_t next = 0;
  char* workspace = nullptr;
  std::int64_t left = 0;
};
inline StandIn& stand_in() {
  static StandIn state;
  return state;
}

inline Tensor empty(IntArrayRef sizes, TensorOptions options = {}) {
  StandIn& s = stand_in();
  Tensor tensor(nullptr, options.type, sizes);
  const std::int64_t bytes = tensor.nbytes();
  if (s.next < s.outputs.size() && s.outputs[s.next].second == bytes) {
    return {s.outputs[s.next++].first, options.type, sizes};
  }
  const std::int64_t room = (bytes + 255) / 256 * 256;
  if (room > s.left) {
    std::fprintf(stderr, "a tensor of %lld bytes is neither the next output nor does it fit the "
                 "workspace; set the sizes of the outputs, or workspace\n", (long long)bytes);
    std::exit(3);
  }
  void* at = s.workspace;
  s.workspace += room;
  s.left -= room;
  return {at, options.type, sizes};
}
inline Tensor Tensor::zero_() const {
  cudaMemsetAsync(data_, 0, static_cast<std::size_t>(nbytes()), stand_in().stream);
  return *this;
}
inline Tensor zeros(IntArrayRef sizes, TensorOptions options = {}) {
  return empty(std::move(sizes), options).zero_();
}
inline Tensor empty_like(const Tensor& t, TensorOptions = {}) { return empty(t.sizes(), t.options()); }
inline Tensor zeros_like(const Tensor& t, TensorOptions = {}) { return zeros(t.sizes(), t.options()); }

// The result, where the function gave back something else than the output itself.
inline void deliver(const Tensor& result, void* output, std::int64_t bytes) {
  if (result.data_ptr() == output) return;
  cudaMemcpyAsync(output, result.data_ptr(), static_cast<std::size_t>(bytes),
                  cudaMemcpyDeviceToDevice, stand_in().stream);
}

}  // namespace torch

namespace at {
using torch::Tensor;
using torch::empty;
using torch::empty_like;
using torch::zeros;
using torch::zeros_like;
using torch::IntArrayRef;
using torch::ScalarType;
using torch::kFloat;
using torch::kHalf;
using torch::kBFloat16;
using torch::kInt;
using torch::kLong;
using Half = __half;
using BFloat16 = __nv_bfloat16;
namespace cuda {
struct Stream {
  operator cudaStream_t() const { return torch::stand_in().stream; }
  cudaStream_t stream() const { return torch::stand_in().stream; }
};
inline Stream getCurrentCUDAStream(int = 0) { return {}; }
struct CUDAGuard {
  template <class T>
  explicit CUDAGuard(T) {}
};
struct OptionalCUDAGuard {
  template <class... T>
  explicit OptionalCUDAGuard(T...) {}
};
}  // namespace cuda
inline const Tensor& device_of(const Tensor& t) { return t; }
}  // namespace at
namespace c10 {
using at::BFloat16;
using at::Half;
template <class T>
using optional = std::optional<T>;
namespace cuda = at::cuda;
}  // namespace c10
namespace torch {
using at::device_of;
}

#define TORCH_CHECK(condition, ...)                               \
  do {                                                            \
    if (!(condition)) {                                           \
      std::fprintf(stderr, "TORCH_CHECK failed: %s\n", #condition); \
      std::exit(3);                                               \
    }                                                             \
  } while (0)
#define AT_ASSERTM TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define C10_CUDA_CHECK(call) (void)(call)
#define AT_CUDA_CHECK(call) (void)(call)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() (void)0
#define AT_DISPATCH_FLOATING_TYPES(type, name, ...) \
  [&] {                                             \
    using scalar_t = KP_SCALAR;                     \
    __VA_ARGS__();                                  \
  }()
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF AT_DISPATCH_FLOATING_TYPES
#define AT_DISPATCH_ALL_TYPES AT_DISPATCH_FLOATING_TYPES
#define AT_DISPATCH_FLOATING_TYPES_AND(extra, type, name, ...) \
  AT_DISPATCH_FLOATING_TYPES(type, name, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(extra, more, type, name, ...) \
  AT_DISPATCH_FLOATING_TYPES(type, name, __VA_ARGS__)
