// SPDX-License-Identifier: Apache-2.0
// CUPTI's program-counter sampling on this process's context, in continuous mode between a start
// and a stop: nothing is replayed. Enabling, starting and disabling cost 0.3 s, and an enabled
// session keeps threads and hardware busy, so each collection has its own. One thread, current
// context, in a process that never used CUPTI's range profiler.
#pragma once

#include "machine/driver/cupti_sampling.h"

#if KERNELPRO_HAVE_CUPTI

#include <functional>

#include "core/evidence/samples.h"

namespace kernelpro {

// The period, as the exponent of two in cycles, that gives a call of `cycles` 50,000 to 250,000
// samples, one for each multiprocessor and period. Short calls give fewer: shorter periods lose
// samples (measured on an H200: none of 274,000 at 2^8 in 0.28 ms, half at 2^6).
int sampling_period(double cycles, int multiprocessors);

// Samples what `run` launches; it waits for the GPU before it returns. Errors of CUPTI begin with
// "cupti"; those of `run` are passed on.
Result<SampleAnswers> sample_run(int period, const std::function<Result<void>()>& run);

}  // namespace kernelpro

#endif
