// SPDX-License-Identifier: Apache-2.0
// CUPTI's program-counter sampling, opened at run time from the same library as the range profiler
// (machine/driver/cupti.h). The two exclude each other within a process: where one was initialized,
// the other does not start.
#pragma once

#include "machine/driver/cupti.h"

#if KERNELPRO_HAVE_CUPTI

#include <cupti_pcsampling.h>

// Names without their "cupti".
// clang-format off
#define KP_CUPTI_SAMPLING_FUNCTIONS(X) \
  X(PCSamplingEnable) X(PCSamplingDisable) X(PCSamplingStart) X(PCSamplingStop) \
  X(PCSamplingGetNumStallReasons) X(PCSamplingGetStallReasons) \
  X(PCSamplingSetConfigurationAttribute)
// clang-format on

namespace kernelpro {

struct CuptiSampling {
#define KP_CUPTI_MEMBER(name) decltype(&::cupti##name) name = nullptr;
  KP_CUPTI_SAMPLING_FUNCTIONS(KP_CUPTI_MEMBER)
#undef KP_CUPTI_MEMBER
};

// kEnvironment, with the remedy, if there is no CUPTI or it is too old.
Result<const CuptiSampling*> cupti_sampling();

}  // namespace kernelpro

#endif
