// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity, callback and sampling APIs, opened at run time. The tracer may be loaded into a
// program that brings its own CUPTI: a copy that the process has already loaded is preferred, since
// two would conflict.
#pragma once

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <string>

// Names without their "cupti". The optional ones are missing in older versions.
// clang-format off
#define KP_ACTIVITY_FUNCTIONS(X) \
  X(GetVersion) X(GetResultString) X(GetCallbackName) X(ActivityRegisterCallbacks) \
  X(ActivityEnable) X(ActivityFlushAll) X(ActivityGetNextRecord) \
  X(ActivityGetNumDroppedRecords)
#define KP_ACTIVITY_OPTIONAL(X) X(ActivityEnableRuntimeApi) X(ActivityEnableDriverApi) \
  X(Subscribe) X(EnableCallback) KP_SAMPLING_FUNCTIONS(X)
#define KP_SAMPLING_FUNCTIONS(X) \
  X(PCSamplingEnable) X(PCSamplingStart) X(PCSamplingStop) X(PCSamplingGetNumStallReasons) \
  X(PCSamplingGetStallReasons) X(PCSamplingSetConfigurationAttribute)
// clang-format on

namespace kernelpro::tracer {

struct CuptiTable {
  void* library = nullptr;
#define KP_MEMBER(name) decltype(&::cupti##name) name = nullptr;
  KP_ACTIVITY_FUNCTIONS(KP_MEMBER)
  KP_ACTIVITY_OPTIONAL(KP_MEMBER)
#undef KP_MEMBER
  bool can_sample() const {
#define KP_HAS(name) &&name != nullptr
    return true KP_SAMPLING_FUNCTIONS(KP_HAS);
#undef KP_HAS
  }
};

// The process's only table; nullptr without a usable CUPTI, with the reason and the remedy in
// `problem`. Thread-safe; `problem` may be null.
const CuptiTable* cupti_table(std::string* problem);

}  // namespace kernelpro::tracer
