// SPDX-License-Identifier: Apache-2.0
// The trace file format, written by the tracer library into a traced process's folder and read by
// profile/trace/file.h: a header, then records, each a RecordHead and its payload. Little-endian
// plain structures, no pointers; each string appears once, as kName, before the first record that
// refers to it. A file ends mid-record if the process was killed; without a kEnd, the last records
// are lost.
#pragma once

#include <cstdint>

namespace kernelpro::trace_format {

inline constexpr char kMagic[8] = {'K', 'P', 'T', 'R', 'A', 'C', 'E', '1'};

// Environment variables of the tracer.
inline constexpr char kFolderVariable[] = "KERNELPRO_TRACE_FOLDER";  // where files go; unset: off
inline constexpr char kCuptiVariable[] = "KERNELPRO_TRACE_CUPTI";    // which libcupti; optional
inline constexpr char kLimitVariable[] = "KERNELPRO_TRACE_LIMIT";    // bytes of a file; optional
inline constexpr char kCodeVariable[] = "KERNELPRO_TRACE_CODE";  // bytes of code to keep; "0": none
// Samples instead of a trace: the period, as an exponent of two in cycles.
inline constexpr char kSampleVariable[] = "KERNELPRO_TRACE_SAMPLES";

// Machine code of loaded modules lies beside the trace, in files of this kind.
inline constexpr char kCodeSuffix[] = ".cubin";

struct FileHead {
  char magic[8];
  std::uint32_t version;
  std::uint32_t process;
};
inline constexpr std::uint32_t kVersion = 1;

enum class Kind : std::uint16_t {
  kName = 1,
  kKernel = 2,
  kCopy = 3,
  kMemset = 4,
  kApi = 5,
  kMarker = 6,
  kOverhead = 7,
  kNote = 8,  // text: why something could not be recorded
  kEnd = 9,
  kSampling = 10,
  kSample = 11,
  kMemory = 12,
};

struct RecordHead {
  Kind kind;
  std::uint16_t reserved;
  std::uint32_t bytes;  // of the payload
};

struct Name {  // then the string's bytes
  std::uint32_t id;
};

struct Kernel {
  std::uint64_t start, end;
  std::uint64_t graph_node;
  std::uint32_t graph, correlation, stream, device, name;
  std::uint32_t grid[3], block[3], cluster[3];
  std::uint32_t registers, static_shared, dynamic_shared, local_bytes;
};

struct Copy {
  std::uint64_t start, end, bytes, graph_node;
  std::uint32_t correlation, stream, device;
  std::uint8_t copy_kind, source_kind, destination_kind, flags;  // CUPTI's values
};

struct Memset {
  std::uint64_t start, end, bytes, graph_node;
  std::uint32_t correlation, stream, device, value;
};

struct Api {
  std::uint64_t start, end;
  std::uint32_t correlation, thread, name;
  std::uint32_t runtime;  // 1: runtime API, 0: driver API
};

struct Marker {
  std::uint64_t time;
  std::uint32_t id, thread, name;  // name 0 at the end of a range
  std::uint32_t begins;            // 1: begin, 0: end
};

// A delay caused by the profiler itself.
struct Overhead {
  std::uint64_t start, end;
};

// Before the samples of a process.
struct Sampling {
  std::uint64_t dropped;  // samples lost
  std::uint32_t period;   // exponent of two in cycles
  std::uint32_t reserved;
};

struct Sample {
  std::uint32_t function, offset;  // bytes from the function's start
  std::uint32_t reason;            // as CUPTI names it
  std::uint32_t samples;
};

// Device memory that was allocated or released.
struct Memory {
  std::uint64_t time, address, bytes;
  std::uint32_t device;
  std::uint32_t allocated;  // 1: allocated, 0: released
};

struct End {
  std::uint64_t dropped;
};

}  // namespace kernelpro::trace_format
