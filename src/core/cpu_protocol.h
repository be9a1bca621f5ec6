// SPDX-License-Identifier: Apache-2.0
// What the supervisor of the cpu target and its workers say to each other over a Channel: plain
// structures, one per frame. A worker that ran candidate code may send anything, so the supervisor
// believes nothing that it says: results lie in the supervisor's memory, times are read from the
// supervisor's clock.
//
//   supervisor -> worker: CpuSetup, then its CpuSlot, then the path of the shared object ("": calls
//                         do nothing, which shows what an order costs by itself);
//                         descriptors: status page, inputs (read-only), outputs and workspace
//   worker -> supervisor: CpuReady, then the address of every slot and of the workspace
//   supervisor -> worker: CpuCall        worker -> supervisor: CpuDone        (any number of times)
#pragma once

#include <atomic>
#include <cstdint>

namespace kernelpro {

constexpr std::int64_t kCpuSlotAlign = 64;  // alignment of tensors on the cpu target
// What the host compiler adds to a source: void kernelpro_call(const Args&) noexcept calls `launch`
// (or `reference`). In the shared object, so that its own C++ runtime reports stray exceptions.
constexpr const char* kCpuEntry = "kernelpro_call";
constexpr std::uint8_t kCpuCanary = 0xC5;  // fills what a slot has before and after its tensor

// One buffer: whole pages of the inputs' or outputs' file. The tensor ends at the end of the pages,
// but for the bytes that its alignment asks for; an unmapped page follows, and one goes before.
struct CpuSlot {
  std::int64_t offset = 0;    // of the pages in the file
  std::int64_t mapped = 0;    // bytes of pages
  std::int64_t first = 0;     // of the tensor within the pages
  std::int64_t bytes = 0;     // of the tensor; 0: no buffer (a null pointer)
  std::int32_t writable = 0;  // lies in the outputs' file
  std::int32_t reserved = 0;
};

struct CpuSetup {
  std::int32_t tensors = 0;        // of one set
  std::int32_t sets = 1;           // slots: all tensors of set 0, of set 1, ...
  std::int32_t has_workspace = 0;  // one more slot follows, which all sets share
  std::int32_t reserved = 0;
  std::int64_t address_space = 0;  // bytes, for RLIMIT_AS; 0: unlimited
};

struct CpuReady {
  std::int32_t ok = 0;  // 0: `problem` says why
  char problem[508] = {};
};

// One call on each of `sets` sets from `first` on, all of it `repeats` times.
struct CpuCall {
  std::int32_t first = 0;
  std::int32_t sets = 1;
  std::int32_t repeats = 1;
  std::int32_t reserved = 0;
};

// All calls have returned, if the worker is to be believed.
struct CpuDone {
  std::int32_t reserved = 0;
};

// The role cpu-ceilings answers each frame, whatever is in it, with one of these: a fresh
// measurement. It ends when the supervisor closes its end.
struct CpuCeilings {
  double copy_bytes_per_s = 0;  // read plus written
  double fma_flops_per_s = 0;
  char how[240] = {};
};

// Shared with the supervisor, so that it can be read after the worker's death.
struct CpuStatus {
  enum Phase : std::int32_t { kStarting, kLoading, kIdle, kCalling };
  std::atomic<std::int32_t> phase{kStarting};
  std::atomic<std::int32_t> signal{0};        // that ended it, as its handler saw it
  std::atomic<std::int32_t> is_write{0};      // SIGSEGV: a store
  std::atomic<std::int32_t> system_call{-1};  // SIGSYS: the one that was refused
  std::atomic<std::uint64_t> address{0};      // SIGSEGV: what was touched
  std::atomic<std::int64_t> mapped_pages{0};  // SIGSEGV, SIGABRT: address space in use
};

}  // namespace kernelpro
