// SPDX-License-Identifier: Apache-2.0
// Messages between the supervisor of the cpu target and its workers over a Channel: plain structs,
// one per frame. A worker that ran candidate code may send anything, so the supervisor trusts
// nothing it sends: results are in the supervisor's memory, times come from the supervisor's clock.
//
//   supervisor -> worker: CpuSetup, then its CpuSlot; descriptors: status page, inputs (read-only),
//                         outputs and workspace, and the shared object (without one, calls do
//                         nothing, which measures their overhead)
//   worker -> supervisor: CpuReady, before any candidate code runs, then the address of every slot
//                         and of the workspace; CpuLoaded, after
//   supervisor -> worker: CpuCall        worker -> supervisor: CpuDone        (any number of times)
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace kernelpro {

// How candidates are compiled: what decides their code, apart from the flags that a compiler may
// lack (-march=native -fopenmp). Precise floating point: no -ffast-math, since a candidate must
// keep the precision contract. Relaxes only what cannot change a result's value (errno, traps), and
// allows FMA contraction.
constexpr std::string_view kCpuFlags =
    "-std=c++20 -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast";
constexpr std::int64_t kCpuSlotAlign = 64;  // alignment of tensors on the cpu target
// Added to a source by the host compiler: void kernelpro_call(const Args&) noexcept calls `launch`
// (or `reference`). It is in the shared object so that its C++ runtime reports stray exceptions.
constexpr const char* kCpuEntry = "kernelpro_call";
// By this name the candidate's loader knows the shared object, wherever it lies.
constexpr const char* kCpuObjectName = "/kernel.so";
// Exit statuses of a worker that found itself changed (CpuStatus).
constexpr int kCpuFloatStateExit = 160;
constexpr int kCpuSignalStateExit = 161;
constexpr int kCpuForeignAnswerExit = 162;
constexpr int kCpuRegistersExit = 163;

// One buffer: whole pages of the inputs' or outputs' file, between two unmapped pages. The tensor
// begins with the pages, or ends with them, less the bytes that its alignment requires.
struct CpuSlot {
  std::int64_t offset = 0;    // of the pages in the file
  std::int64_t mapped = 0;    // bytes of pages
  std::int64_t first = 0;     // of the tensor within the pages
  std::int64_t bytes = 0;     // of the tensor; 0: no buffer (null pointer)
  std::int32_t writable = 0;  // in the outputs' file
  std::int32_t reserved = 0;
};

struct CpuSetup {
  std::int32_t tensors = 0;        // per set
  std::int32_t sets = 1;           // slots: all tensors of set 0, of set 1, ...
  std::int32_t has_workspace = 0;  // one more slot follows, shared by all sets
  std::int32_t reserved = 0;
  std::int64_t address_space = 0;  // bytes, for RLIMIT_AS; 0: unlimited
};

// `problem` is the machine's fault in CpuReady, the candidate's in CpuLoaded.
struct CpuReady {
  std::int32_t ok = 0;  // 0: `problem` says why
  char problem[508] = {};
};
using CpuLoaded = CpuReady;

// One call on each of `sets` sets, starting at `first`; all of it `repeats` times.
struct CpuCall {
  std::int32_t first = 0;
  std::int32_t sets = 1;
  std::int32_t repeats = 1;
  std::int32_t reserved = 0;
};

// All calls have returned, if the worker can be believed.
struct CpuDone {
  std::int32_t reserved = 0;
};

// The role cpu-ceilings answers every frame, whatever its content, with one of these: a fresh
// measurement. It exits when the supervisor closes its end.
struct CpuCeilings {
  double copy_bytes_per_s = 0;  // read plus written
  double fma_flops_per_s = 0;
  char how[240] = {};
};

// Shared with the supervisor, which can read it after the worker has died.
struct CpuStatus {
  std::atomic<std::int32_t> signal{0};        // that killed it, as seen by its handler
  std::atomic<std::int32_t> is_write{0};      // SIGSEGV: a store
  std::atomic<std::int32_t> system_call{-1};  // SIGSYS: the refused call
  std::atomic<std::int32_t> float_state{0};   // 1: not as the ABI has it after loading or a call
  std::atomic<std::int32_t> signal_state{0};  // 1: the mask, a handler or its stack was changed
  std::atomic<std::int32_t> registers{0};     // 1: one that a callee must restore was changed
  std::atomic<std::uint64_t> address{0};      // SIGSEGV: the faulting address
  std::atomic<std::int64_t> mapped_pages{0};  // SIGSEGV, SIGABRT: address space in use
};

}  // namespace kernelpro
