// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity API, opened at run time. The tracer is loaded into programs that bring a CUPTI
// of their own: the one that the process has already loaded is preferred, two would not agree.
#pragma once

#include <cupti.h>

#include <string>

// Names without their "cupti". The last two are missing in older versions.
// clang-format off
#define KP_ACTIVITY_FUNCTIONS(X) \
  X(GetVersion) X(GetResultString) X(GetCallbackName) X(ActivityRegisterCallbacks) \
  X(ActivityEnable) X(ActivityFlushAll) X(ActivityGetNextRecord) \
  X(ActivityGetNumDroppedRecords)
#define KP_ACTIVITY_OPTIONAL(X) X(ActivityEnableRuntimeApi) X(ActivityEnableDriverApi)
// clang-format on

namespace kernelpro::tracer {

struct CuptiTable {
  void* library = nullptr;
#define KP_MEMBER(name) decltype(&::cupti##name) name = nullptr;
  KP_ACTIVITY_FUNCTIONS(KP_MEMBER)
  KP_ACTIVITY_OPTIONAL(KP_MEMBER)
#undef KP_MEMBER
};

// The one table of the process; nullptr when there is no usable CUPTI, and then `problem` says why,
// with the remedy. Thread-safe; `problem` may be null.
const CuptiTable* cupti_table(std::string* problem);

}  // namespace kernelpro::tracer
