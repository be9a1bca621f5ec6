// SPDX-License-Identifier: Apache-2.0
// A CUPTI without a GPU: it gives the tracer the records that a test's program asks for, as the
// real one would, in buffers that the tracer hands out. Found by dlsym: fake_play.
#pragma once

extern "C" {
// Queues the records of `repetitions` iterations, each a launch call, a kernel, a pageable copy to
// the device, a memset and a synchronisation, as of thread `thread`. They are delivered at the next
// flush, or earlier when a buffer is full.
void fake_play(int repetitions, unsigned thread);
// The next completed buffer reports so many lost records.
void fake_drop(unsigned records);
}
