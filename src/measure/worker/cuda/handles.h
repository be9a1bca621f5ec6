// SPDX-License-Identifier: Apache-2.0
// Streams, events and device memory that release themselves. One thread, with the context that they
// were made in, which must outlive them.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <algorithm>
#include <cstdint>
#include <utility>

#include "machine/driver/cuda_driver.h"

namespace kernelpro {

template <class Handle, auto Release>
class CudaHandle {
 public:
  CudaHandle() = default;
  CudaHandle(const CudaDriver& cu, Handle handle) : cu_(&cu), handle_(handle) {}
  CudaHandle(CudaHandle&& other) noexcept { *this = std::move(other); }
  CudaHandle& operator=(CudaHandle&& other) noexcept {
    std::swap(cu_, other.cu_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudaHandle() {
    if (cu_ != nullptr) (cu_->*Release)(handle_);
  }

  Handle get() const { return handle_; }

 private:
  const CudaDriver* cu_ = nullptr;
  Handle handle_{};
};

using CudaStream = CudaHandle<CUstream, &CudaDriver::StreamDestroy>;
using CudaEvent = CudaHandle<CUevent, &CudaDriver::EventDestroy>;
using DeviceMemory = CudaHandle<CUdeviceptr, &CudaDriver::MemFree>;

inline Result<CudaStream> make_stream(const CudaDriver& cu) {
  CUstream stream = nullptr;
  KP_CUDA_TRY(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return CudaStream(cu, stream);
}

inline Result<CudaEvent> make_event(const CudaDriver& cu) {
  CUevent event = nullptr;
  KP_CUDA_TRY(cu.EventCreate(&event, CU_EVENT_DEFAULT));
  return CudaEvent(cu, event);
}

inline Result<DeviceMemory> allocate(const CudaDriver& cu, std::uint64_t bytes) {
  CUdeviceptr address = 0;
  KP_CUDA_TRY(cu.MemAlloc(&address, bytes));
  return DeviceMemory(cu, address);
}

// How much has to be read so that no line of L2 stays: twice its size at least, and 128 MiB or, of
// a small one, four times its size.
inline std::uint64_t flush_bytes(const CudaContext& context) {
  constexpr std::uint64_t kEnough = 128ull << 20;
  const int attribute = context.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  if (attribute <= 0) return kEnough;
  const auto l2 = static_cast<std::uint64_t>(attribute);
  return std::max(2 * l2, std::min(kEnough, 4 * l2));
}

}  // namespace kernelpro

#endif
