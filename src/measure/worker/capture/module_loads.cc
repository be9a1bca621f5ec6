// SPDX-License-Identifier: Apache-2.0
#include "measure/worker/capture/images.h"

#if KERNELPRO_HAVE_CUDA

#if __has_include(<cupti_callbacks.h>)
#include <cupti.h>
#include <dlfcn.h>

#include <cstdlib>

namespace kernelpro {

namespace {

struct Calls {
  decltype(&::cuptiSubscribe) subscribe = nullptr;
  decltype(&::cuptiEnableCallback) enable = nullptr;
};

// Driver calls by which programs load modules and get their kernels. The first member of the
// parameters of those that load is where the handle goes.
constexpr CUpti_CallbackId kLoads[] = {
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoad, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData,
    CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx, CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary};

// PyTorch brings its own copy, and two in one process would conflict.
void* open_cupti() {
  constexpr const char* kNames[] = {"libcupti.so.13", "libcupti.so.12", "libcupti.so"};
  for (const char* name : kNames) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return library;
  }
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& folder :
       {std::string(),
        std::string(home != nullptr ? home : "/usr/local/cuda") + "/extras/CUPTI/lib64/",
        std::string("/usr/local/cuda/extras/CUPTI/lib64/"),
        std::string("/usr/local/cuda/lib64/")}) {
    for (const char* name : kNames) {
      if (void* library = ::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    }
  }
  return nullptr;
}

void on_call(LoadedImages* images, CUpti_CallbackId id, const CUpti_CallbackData* call) {
  if (call->callbackSite == CUPTI_API_ENTER) return images->begin_call();
  const void* module = nullptr;
  if (id == CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction) {
    module = static_cast<const cuModuleGetFunction_params*>(call->functionParams)->hmod;
  } else if (const CUmodule* made = *static_cast<CUmodule* const*>(call->functionParams)) {
    module = *made;
  }
  images->end_call(module);
}

void CUPTIAPI on_event(void* images, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                       const void* data) {
  auto* to = static_cast<LoadedImages*>(images);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API) {
    on_call(to, id, static_cast<const CUpti_CallbackData*>(data));
  } else if (domain == CUPTI_CB_DOMAIN_RESOURCE && id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    const auto* module = static_cast<const CUpti_ModuleResourceData*>(
        static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor);
    to->loaded({module->pCubin, module->cubinSize});
  }
}

}  // namespace

std::string watch_module_loads(LoadedImages* images) {
  void* library = open_cupti();
  if (library == nullptr) return "CUPTI cannot be opened; install it with the CUDA toolkit";
  Calls calls;
  calls.subscribe = reinterpret_cast<decltype(calls.subscribe)>(::dlsym(library, "cuptiSubscribe"));
  calls.enable = reinterpret_cast<decltype(calls.enable)>(::dlsym(library, "cuptiEnableCallback"));
  if (calls.subscribe == nullptr || calls.enable == nullptr) return "CUPTI lacks its callbacks";
  CUpti_SubscriberHandle subscriber{};
  if (const CUptiResult result = calls.subscribe(&subscriber, on_event, images);
      result != CUPTI_SUCCESS) {
    return "CUPTI does not start (error " + std::to_string(static_cast<int>(result)) +
           "): is there a driver, and no other profiler in this process?";
  }
  bool enabled = calls.enable(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE,
                              CUPTI_CBID_RESOURCE_MODULE_LOADED) == CUPTI_SUCCESS;
  for (const CUpti_CallbackId id : kLoads) {
    enabled =
        enabled && calls.enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id) == CUPTI_SUCCESS;
  }
  enabled = enabled && calls.enable(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                    CUPTI_DRIVER_TRACE_CBID_cuModuleGetFunction) == CUPTI_SUCCESS;
  return enabled ? "" : "CUPTI does not report which modules are loaded";
}

}  // namespace kernelpro

#else

namespace kernelpro {
std::string watch_module_loads(LoadedImages*) { return "this kernelpro was built without CUPTI"; }
}  // namespace kernelpro

#endif

#endif
