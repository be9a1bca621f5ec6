// SPDX-License-Identifier: Apache-2.0
// CUPTI's range profiler, opened at run time so that binaries start without it. Only built where
// its headers were found (KERNELPRO_HAVE_CUPTI). Calls go through the table:
// `cupti->RangeProfilerStart(...)`. The host part (metric names, number of passes) needs no GPU.
#pragma once

#if KERNELPRO_HAVE_CUDA && __has_include(<cupti_range_profiler.h>)
#define KERNELPRO_HAVE_CUPTI 1

#include <cupti_profiler_host.h>
#include <cupti_range_profiler.h>
#include <cupti_result.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include <string>

#include "base/error.h"

// Libraries must come from the same CUDA major version.
#define KERNELPRO_CUPTI_MAJOR 13

// Names without their "cupti".
// clang-format off
#define KP_CUPTI_FUNCTIONS(X) \
  X(GetVersion) X(GetResultString) X(DeviceGetChipName) X(ProfilerInitialize) \
  X(ProfilerGetCounterAvailability) X(ProfilerHostInitialize) X(ProfilerHostDeinitialize) \
  X(ProfilerHostGetMetricProperties) X(ProfilerHostConfigAddMetrics) \
  X(ProfilerHostGetConfigImageSize) \
  X(ProfilerHostGetConfigImage) X(ProfilerHostGetNumOfPasses) \
  X(ProfilerHostEvaluateToGpuValues) X(RangeProfilerEnable) X(RangeProfilerDisable) \
  X(RangeProfilerSetConfig) X(RangeProfilerStart) X(RangeProfilerStop) \
  X(RangeProfilerDecodeData) X(RangeProfilerGetCounterDataSize) \
  X(RangeProfilerCounterDataImageInitialize) X(RangeProfilerGetCounterDataInfo)
// clang-format on

namespace kernelpro {

struct Cupti {
#define KP_CUPTI_MEMBER(name) decltype(&::cupti##name) name = nullptr;
  KP_CUPTI_FUNCTIONS(KP_CUPTI_MEMBER)
#undef KP_CUPTI_MEMBER
  std::string path;  // of the library that was opened
};

struct CuptiLibrary {
  void* handle = nullptr;
  std::string path;
};
// Opens libcupti once: the copy that this process has loaded, else from the CUDA toolkit, else
// where the loader finds it, else from Python's packages. kEnvironment if there is none.
Result<const CuptiLibrary*> cupti_library();
// Its range profiler; kEnvironment if there is none or it is too old.
Result<const Cupti*> cupti();

// Explains a failed call and what to do about it: missing permission, counters in use by another
// profiler, a chip unknown to this CUPTI.
Error cupti_error(const char* call, CUptiResult result);

// A zeroed CUPTI parameter block with its size set.
template <class Params>
Params cupti_params(std::size_t size) {
  Params params{};
  params.structSize = size;
  return params;
}

}  // namespace kernelpro

#define KP_CUPTI_PARAMS(type, name) \
  type##_Params name = ::kernelpro::cupti_params<type##_Params>(type##_Params_STRUCT_SIZE)

// Returns the error from the enclosing function when a CUPTI call fails.
#define KP_CUPTI_TRY(call)                                                                     \
  do {                                                                                         \
    const CUptiResult kp_result = (call);                                                      \
    if (kp_result != CUPTI_SUCCESS)                                                            \
      return ::tl::unexpected<::kernelpro::Error>(::kernelpro::cupti_error(#call, kp_result)); \
  } while (0)

#endif  // KERNELPRO_HAVE_CUDA and CUPTI's headers
