// SPDX-License-Identifier: Apache-2.0
// A fake CUPTI that needs no GPU: delivers records requested by a test program into the tracer's
// buffers, as the real one would. A sampled context gives samples of the kernel: 8 at its start,
// and 64 at 32 bytes that wait for a load, 48 of them exposed. The test finds fake_play by dlsym.
#pragma once

extern "C" {
// Queues the records of `repetitions` iterations on thread `thread`: each a launch call, a kernel,
// a pageable copy to the device, a memset and a synchronization. They are delivered at the next
// flush, or earlier when a buffer is full.
void fake_play(int repetitions, unsigned thread);
// The program creates its context.
void fake_context();
// The program loads a module with this machine code.
void fake_load(const void* image, unsigned long bytes);
// Sampling is refused from now on.
void fake_refuse_sampling();
// Makes the next completed buffer report this many lost records.
void fake_drop(unsigned records);
}
