// SPDX-License-Identifier: Apache-2.0
#include "cublas.h"

#include <dlfcn.h>

#include <random>
#include <string>
#include <vector>

#include "base/statistics/statistics.h"
#include "machine/driver/cuda_driver.h"

namespace kernelpro {

#if !KERNELPRO_HAVE_CUDA

Result<double> cublas_us(int) {
  return fail(ErrorKind::kEnvironment, "this build has no cuda target", "build it with CUDA");
}

#else

namespace {

constexpr int kWarmUps = 5, kCalls = 40;
constexpr std::size_t kFlushBytes = 512u << 20;
constexpr int kPedantic = 2;  // CUBLAS_PEDANTIC_MATH: fp32 products and sums, no TF32
constexpr int kDevicePointers = 1;

// The few functions that we need, loaded by their ABI names.
struct Cublas {
  using Handle = void*;
  int (*create)(Handle*) = nullptr;
  int (*destroy)(Handle) = nullptr;
  int (*set_stream)(Handle, CUstream) = nullptr;
  int (*set_math)(Handle, int) = nullptr;
  int (*set_pointers)(Handle, int) = nullptr;
  int (*sgemm)(Handle, int, int, int, int, int, const float*, const float*, int, const float*, int,
               const float*, float*, int) = nullptr;
  int (*sasum)(Handle, int, const float*, int, float*) = nullptr;
};

template <class F>
bool find(void* library, const char* name, F* function) {
  *function = reinterpret_cast<F>(::dlsym(library, name));
  return *function != nullptr;
}

Result<Cublas> open_cublas() {
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so",
                           "/usr/local/cuda/lib64/libcublas.so"}) {
    void* library = ::dlopen(name, RTLD_NOW);
    if (library == nullptr) continue;
    Cublas blas;
    if (find(library, "cublasCreate_v2", &blas.create) &&
        find(library, "cublasDestroy_v2", &blas.destroy) &&
        find(library, "cublasSetStream_v2", &blas.set_stream) &&
        find(library, "cublasSetMathMode", &blas.set_math) &&
        find(library, "cublasSetPointerMode_v2", &blas.set_pointers) &&
        find(library, "cublasSgemm_v2", &blas.sgemm) &&
        find(library, "cublasSasum_v2", &blas.sasum)) {
      return blas;
    }
  }
  return fail(ErrorKind::kEnvironment, "cuBLAS was not found",
              "install the CUDA toolkit's libcublas, or add its folder to LD_LIBRARY_PATH");
}

// Device memory; freed with the object.
struct Memory {
  const CudaDriver* cu;
  CUdeviceptr at = 0;
  ~Memory() {
    if (at != 0) cu->MemFree(at);
  }
  const float* floats() const { return reinterpret_cast<const float*>(at); }
  float* writable() const { return reinterpret_cast<float*>(at); }
};

}  // namespace

Result<double> cublas_us(int n) {
  KP_ASSIGN(const CudaDriver* cu, cuda_driver());
  KP_ASSIGN(const auto context, CudaContext::open());
  KP_ASSIGN(const auto blas, open_cublas());
  const std::size_t count = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  Memory a{cu}, b{cu}, c{cu}, flush{cu}, scalars{cu};
  for (Memory* matrix : {&a, &b, &c}) KP_CUDA_TRY(cu->MemAlloc(&matrix->at, 4 * count));
  KP_CUDA_TRY(cu->MemAlloc(&flush.at, kFlushBytes));
  KP_CUDA_TRY(cu->MemAlloc(&scalars.at, 64));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (Memory* matrix : {&a, &b}) {
    for (float& v : values) v = normal(random);
    KP_CUDA_TRY(cu->MemcpyHtoD(matrix->at, values.data(), 4 * count));
  }
  const float constants[] = {1, 0, 0};  // alpha, beta, result of sasum
  KP_CUDA_TRY(cu->MemcpyHtoD(scalars.at, constants, sizeof constants));
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  KP_CUDA_TRY(cu->StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  KP_CUDA_TRY(cu->EventCreate(&begin, CU_EVENT_DEFAULT));
  KP_CUDA_TRY(cu->EventCreate(&end, CU_EVENT_DEFAULT));
  Cublas::Handle handle = nullptr;
  int status = blas.create(&handle);
  if (status == 0) status = blas.set_stream(handle, stream);
  if (status == 0) status = blas.set_math(handle, kPedantic);
  if (status == 0) status = blas.set_pointers(handle, kDevicePointers);
  const float* alpha = scalars.floats();
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + kCalls && status == 0; ++i) {
    // Read the whole buffer to evict the matrices from L2.
    status = blas.sasum(handle, static_cast<int>(kFlushBytes / 4), flush.floats(), 1,
                        scalars.writable() + 2);
    KP_CUDA_TRY(cu->EventRecord(begin, stream));
    // cuBLAS is column-major: c = a b by rows is c^T = b^T a^T by columns.
    if (status == 0) {
      status = blas.sgemm(handle, 0, 0, n, n, n, alpha, b.floats(), n, a.floats(), n, alpha + 1,
                          c.writable(), n);
    }
    KP_CUDA_TRY(cu->EventRecord(end, stream));
    KP_CUDA_TRY(cu->EventSynchronize(end));
    float ms = 0;
    KP_CUDA_TRY(cu->EventElapsedTime(&ms, begin, end));
    if (i >= kWarmUps) times.push_back(1000.0 * static_cast<double>(ms));
  }
  if (handle != nullptr) blas.destroy(handle);
  cu->StreamDestroy(stream);
  if (status != 0) {
    return fail(ErrorKind::kEnvironment, "cuBLAS failed with status " + std::to_string(status),
                "check it with a small program of its own");
  }
  return median(times);
}

#endif

}  // namespace kernelpro
