// SPDX-License-Identifier: Apache-2.0
// The CUDA driver API, opened at run time so that one binary starts on any machine. Only built
// where CUDA headers were found (KERNELPRO_HAVE_CUDA). Calls go through the table:
// `driver->MemAlloc(...)`. Thread-safe as the driver API is.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cuda.h>
#include <cudaProfiler.h>

#include <string>

#include "base/error.h"

// Names without their "cu"; cuda.h maps each to the versioned symbol.
// clang-format off
#define KP_CUDA_FUNCTIONS(X) \
  X(Init) X(DriverGetVersion) X(DeviceGetCount) X(DeviceGet) X(DeviceGetName) \
  X(DeviceGetAttribute) X(DeviceTotalMem) X(DevicePrimaryCtxRetain) X(DevicePrimaryCtxRelease) \
  X(CtxSetCurrent) X(CtxGetCurrent) X(CtxSynchronize) X(GetErrorName) X(GetErrorString) \
  X(MemAddressReserve) X(MemAddressFree) X(MemCreate) X(MemRelease) X(MemMap) X(MemUnmap) \
  X(MemSetAccess) X(MemExportToShareableHandle) X(MemImportFromShareableHandle) \
  X(MemGetAllocationGranularity) X(MemAlloc) X(MemFree) X(MemcpyDtoH) X(MemcpyHtoD) \
  X(MemcpyDtoDAsync) X(MemsetD8Async) X(MemGetInfo) X(PointerGetAttribute) X(ModuleLoadData) \
  X(ModuleUnload) X(ModuleGetFunction) X(FuncSetAttribute) X(FuncGetAttribute) X(FuncGetName) \
  X(FuncGetParamInfo) X(FuncGetModule) X(KernelGetName) X(KernelGetParamInfo) X(KernelGetAttribute) \
  X(LaunchKernel) X(StreamCreate) X(StreamDestroy) X(StreamSynchronize) X(StreamBeginCapture) \
  X(StreamEndCapture) X(GraphCreate) X(GraphDestroy) X(GraphGetNodes) X(GraphGetEdges) \
  X(GraphNodeGetType) X(GraphKernelNodeGetParams) X(GraphKernelNodeGetAttribute) \
  X(GraphKernelNodeSetAttribute) X(GraphMemcpyNodeGetParams) X(GraphMemsetNodeGetParams) \
  X(GraphAddKernelNode) X(GraphAddMemcpyNode) X(GraphAddMemsetNode) X(GraphAddEmptyNode) \
  X(GraphAddDependencies) X(GraphInstantiate) X(GraphExecDestroy) X(GraphLaunch) X(EventCreate) \
  X(EventRecord) X(EventElapsedTime) X(EventSynchronize) X(EventQuery) X(EventDestroy) \
  X(OccupancyMaxActiveBlocksPerMultiprocessor) X(CtxResetPersistingL2Cache) X(CtxSetLimit) \
  X(DeviceGetUuid) X(GraphUpload) X(LaunchKernelEx) X(Memcpy3DAsync) X(MemsetD2D8Async) \
  X(MemsetD2D16Async) X(MemsetD2D32Async) X(ProfilerStart) X(ProfilerStop) \
  X(TensorMapEncodeTiled) X(StreamGetCaptureInfo)
// clang-format on

namespace kernelpro {

struct CudaDriver {
#define KP_CUDA_MEMBER(name) decltype(&::cu##name) name = nullptr;
  KP_CUDA_FUNCTIONS(KP_CUDA_MEMBER)
#undef KP_CUDA_MEMBER
};

// Opens libcuda.so.1 once; kEnvironment if the driver is missing or too old.
Result<const CudaDriver*> cuda_driver();

// "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered".
std::string cuda_error_text(CUresult result);
Error cuda_error(const char* call, CUresult result);  // kEnvironment; `call`: its source text

// Whether every later call in the context fails too.
bool breaks_context(CUresult result);
// Whether it is the GPU's, which no kernel can cause: damaged memory or links, a GPU that is gone.
bool is_gpu_fault(CUresult result);

// The primary context of visible device 0, made current on this thread. Primary, because the CUDA
// runtime inside candidates uses it.
class CudaContext {
 public:
  static Result<CudaContext> open();
  CudaContext() = default;
  CudaContext(CudaContext&& other) noexcept;
  CudaContext& operator=(CudaContext&& other) noexcept;
  ~CudaContext();

  CUdevice device() const { return device_; }
  int attribute(CUdevice_attribute attribute) const;
  std::string name() const;
  std::string arch() const;  // "sm_90a": with the a-suffix from Hopper on

 private:
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
};

}  // namespace kernelpro

// Returns a kEnvironment error from the enclosing function when a driver call fails.
#define KP_CUDA_TRY(call)                                                                     \
  do {                                                                                        \
    const CUresult kp_result = (call);                                                        \
    if (kp_result != CUDA_SUCCESS)                                                            \
      return ::tl::unexpected<::kernelpro::Error>(::kernelpro::cuda_error(#call, kp_result)); \
  } while (0)

#endif  // KERNELPRO_HAVE_CUDA
