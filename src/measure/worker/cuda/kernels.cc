// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/cuda/kernels.h"

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <utility>

#include "embedded/gpu_state_kernels.h"
#include "embedded/judge_kernels.h"
#include "measure/worker/cuda/nvrtc.h"

namespace kernelpro {

std::string TrustedKernels::source() {
  return std::string(embedded::judge_kernels) + std::string(embedded::gpu_state_kernels);
}

Result<TrustedKernels> TrustedKernels::load(const CudaDriver& cu, const CudaContext& context) {
  KP_ASSIGN(std::string cubin, trusted_cubin(source(), context.arch()));
  TrustedKernels kernels;
  KP_CUDA_TRY(cu.ModuleLoadData(&kernels.module_, cubin.data()));
  kernels.cu_ = &cu;
  kernels.multiprocessors_ = context.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return kernels;
}

TrustedKernels::TrustedKernels(TrustedKernels&& other) noexcept { *this = std::move(other); }

TrustedKernels& TrustedKernels::operator=(TrustedKernels&& other) noexcept {
  std::swap(cu_, other.cu_);
  std::swap(module_, other.module_);
  std::swap(multiprocessors_, other.multiprocessors_);
  std::swap(functions_, other.functions_);
  return *this;
}

TrustedKernels::~TrustedKernels() {
  if (module_ != nullptr) cu_->ModuleUnload(module_);
}

unsigned TrustedKernels::blocks_for(std::uint64_t count) const {
  const std::uint64_t wanted = (count + 255) / 256;
  const std::uint64_t full = static_cast<std::uint64_t>(multiprocessors_) * 8;
  return static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, full));
}

CUresult TrustedKernels::launch(const char* kernel, unsigned blocks, unsigned threads,
                                unsigned shared, CUstream stream, void** arguments) {
  CUfunction& function = functions_[kernel];
  if (function == nullptr) {
    const CUresult found = cu_->ModuleGetFunction(&function, module_, kernel);
    if (found != CUDA_SUCCESS) return found;
  }
  if (shared > 48 * 1024) {
    const CUresult set = cu_->FuncSetAttribute(
        function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shared));
    if (set != CUDA_SUCCESS) return set;
  }
  return cu_->LaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, arguments,
                           nullptr);
}

}  // namespace kernelpro

#endif
