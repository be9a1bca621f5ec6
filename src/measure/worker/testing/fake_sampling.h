// SPDX-License-Identifier: Apache-2.0
// A fake of CUPTI's program-counter sampling over the fake driver: a libcupti.so.13 that
// test_measure_worker and fake_worker link, so that dlopen finds it already loaded. Each launch
// between a start and a stop is sampled at two places of its kernel: at 0 its warps are ready (8
// samples), at 32 they wait for a load (64 samples, 48 of them in cycles without an issue). It has
// nothing else of CUPTI.
#pragma once

#include "measure/worker/testing/fake_driver.h"

#if KERNELPRO_HAVE_CUDA

#include <cupti_result.h>

namespace kernelpro::fake {

// The next `times` calls of this name, without "cuptiPCSampling", fail. Also by the environment,
// for processes: KERNELPRO_FAKE_SAMPLING="Enable RESULT TIMES".
KP_FAKE_API void refuse_sampling(const std::string& call, CUptiResult result, int times = 1);
// The exponent of the period that was last set.
KP_FAKE_API int sampled_period();
// As many further program counters did not fit.
KP_FAKE_API void leave_program_counters(std::size_t count);
// "Enable", "Start", "Stop", "Disable", in order, since the last call of this.
KP_FAKE_API std::vector<std::string> sampling_calls();

}  // namespace kernelpro::fake

#endif
