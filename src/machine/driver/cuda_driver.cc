// SPDX-License-Identifier: Apache-2.0
#include "machine/driver/cuda_driver.h"

#if KERNELPRO_HAVE_CUDA

#include <dlfcn.h>

#include <utility>

#include "core/machine/architecture.h"

namespace kernelpro {

namespace {

#define KP_TEXT2(x) #x
#define KP_TEXT(x) KP_TEXT2(x)

Result<CudaDriver> load_driver() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return fail(ErrorKind::kEnvironment, "no NVIDIA driver: libcuda.so.1 cannot be opened",
                "install the NVIDIA driver, or use the cpu target");
  }
  CudaDriver driver;
#define KP_CUDA_LOAD(name)                                                                    \
  driver.name = reinterpret_cast<decltype(driver.name)>(::dlsym(library, KP_TEXT(cu##name))); \
  if (driver.name == nullptr)                                                                 \
    return fail(ErrorKind::kEnvironment,                                                      \
                "the NVIDIA driver is too old: it has no " KP_TEXT(cu##name),                 \
                "install a driver for CUDA 13 (580 or later)");
  KP_CUDA_FUNCTIONS(KP_CUDA_LOAD)
#undef KP_CUDA_LOAD
  return driver;
}

}  // namespace

Result<const CudaDriver*> cuda_driver() {
  static const Result<CudaDriver> driver = load_driver();
  if (!driver) return tl::unexpected<Error>(driver.error());
  return &*driver;
}

std::string cuda_error_text(CUresult result) {
  const Result<const CudaDriver*> driver = cuda_driver();
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver) {
    (*driver)->GetErrorName(result, &name);
    (*driver)->GetErrorString(result, &text);
  }
  return std::string(name != nullptr ? name : "CUDA error " + std::to_string(result)) +
         (text != nullptr ? std::string(": ") + text : "");
}

Error cuda_error(const char* call, CUresult result) {
  return {ErrorKind::kEnvironment, std::string(call) + ": " + cuda_error_text(result),
          "`kernelpro doctor` shows what this GPU and driver allow"};
}

bool is_gpu_fault(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_CONTAINED:
    case CUDA_ERROR_SYSTEM_NOT_READY:
      return true;
    default:
      return false;
  }
}

bool breaks_context(CUresult result) {
  switch (result) {
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case CUDA_ERROR_EXTERNAL_DEVICE:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return is_gpu_fault(result);
  }
}

Result<CudaContext> CudaContext::open() {
  KP_ASSIGN(const CudaDriver* driver, cuda_driver());
  const CudaDriver& cu = *driver;
  KP_CUDA_TRY(cu.Init(0));
  int count = 0;
  KP_CUDA_TRY(cu.DeviceGetCount(&count));
  if (count == 0) {
    return fail(ErrorKind::kEnvironment, "no CUDA device is visible",
                "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use the cpu target");
  }
  CudaContext context;
  KP_CUDA_TRY(cu.DeviceGet(&context.device_, 0));
  KP_CUDA_TRY(cu.DevicePrimaryCtxRetain(&context.context_, context.device_));
  KP_CUDA_TRY(cu.CtxSetCurrent(context.context_));
  return context;
}

CudaContext::CudaContext(CudaContext&& other) noexcept { *this = std::move(other); }

CudaContext& CudaContext::operator=(CudaContext&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(context_, other.context_);
  return *this;
}

CudaContext::~CudaContext() {
  if (context_ != nullptr) (*cuda_driver())->DevicePrimaryCtxRelease(device_);
}

int CudaContext::attribute(CUdevice_attribute attribute) const {
  int value = 0;
  (*cuda_driver())->DeviceGetAttribute(&value, attribute, device_);
  return value;
}

std::string CudaContext::name() const {
  char text[256] = "";
  (*cuda_driver())->DeviceGetName(text, sizeof text, device_);
  return text;
}

std::string CudaContext::arch() const {
  const int major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  const int minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return Architecture{major, minor, 0}.compile_name();
}

}  // namespace kernelpro

#endif  // KERNELPRO_HAVE_CUDA
