// SPDX-License-Identifier: Apache-2.0
// Launches our own kernels (measure/worker/cuda/judge.cu). One thread, current context; launches go
// to the default stream in order.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <map>
#include <string>

#include "machine/driver/cuda_driver.h"

namespace kernelpro {

class TrustedKernels {
 public:
  // What they are compiled from, by NVRTC.
  static std::string source();
  static Result<TrustedKernels> load(const CudaDriver& cu, const CudaContext& context);
  TrustedKernels() = default;
  TrustedKernels(TrustedKernels&& other) noexcept;
  TrustedKernels& operator=(TrustedKernels&& other) noexcept;
  ~TrustedKernels();

  // Enough threads to fill the GPU, or fewer for fewer than `count` items; grid-stride kernels.
  template <class... Args>
  CUresult run(const char* kernel, std::uint64_t count, Args... args) {
    void* pointers[] = {&args...};
    return launch(kernel, blocks_for(count), 256, 0, nullptr, pointers);
  }
  template <class... Args>
  CUresult run_on(CUstream stream, const char* kernel, unsigned blocks, unsigned threads,
                  unsigned shared, Args... args) {
    void* pointers[] = {&args...};
    return launch(kernel, blocks, threads, shared, stream, pointers);
  }
  int multiprocessors() const { return multiprocessors_; }
  unsigned blocks_for(std::uint64_t count) const;

 private:
  CUresult launch(const char* kernel, unsigned blocks, unsigned threads, unsigned shared,
                  CUstream stream, void** arguments);

  const CudaDriver* cu_ = nullptr;
  CUmodule module_ = nullptr;
  int multiprocessors_ = 1;
  std::map<std::string, CUfunction> functions_;
};

}  // namespace kernelpro

#endif
