// SPDX-License-Identifier: Apache-2.0
#include "machine/driver/cuda_driver.h"

#if KERNELPRO_HAVE_CUDA

#include <dlfcn.h>

#include <utility>

#include "core/architecture.h"

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

Result<CudaContext> CudaContext::open() {
  const Result<const CudaDriver*> driver = cuda_driver();
  if (!driver) return tl::unexpected<Error>(driver.error());
  const CudaDriver& cu = **driver;
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
