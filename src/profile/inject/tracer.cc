// SPDX-License-Identifier: Apache-2.0
// A library that the CUDA driver loads into a program (CUDA_INJECTION64_PATH) to record its GPU
// activity: kernels, copies, memsets, and the API calls that launch, copy, wait and allocate; and
// the machine code that it loads (module_writer.h). Or instead, program-counter samples of its
// kernels (sampler.h). It is standalone, does nothing unless KERNELPRO_TRACE_FOLDER is set, and
// never breaks the program: the file notes what could not be recorded. CUPTI has one subscriber in
// a process: a program that profiles itself gets along without, or we do.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>

#include "profile/inject/cupti_table.h"
#include "profile/inject/module_writer.h"
#include "profile/inject/sampler.h"
#include "profile/inject/trace_writer.h"

namespace kernelpro::tracer {

namespace {

using trace_format::Kind;

constexpr std::size_t kBufferBytes = 1 << 20;
constexpr std::uint64_t kDefaultLimit = 256ull << 20;
constexpr std::uint64_t kDefaultCodeLimit = 512ull << 20;
// How much of the trace is lost when the program is killed.
constexpr long kFlushNanoseconds = 100'000'000;
constexpr CUpti_CallbackId kMostCallbacks = 4096;

// Older CUPTIs have shorter records with the same start; only that common part is read here.
static_assert(offsetof(CUpti_ActivityKernel10, clusterZ) ==
              offsetof(CUpti_ActivityKernel9, clusterZ));

struct Tracer {
  Tracer(const CuptiTable* table, const std::string& folder, std::uint64_t limit,
         std::uint64_t code_limit)
      : cupti(table), writer(folder, limit), modules(folder, code_limit) {}
  const CuptiTable* cupti;
  TraceWriter writer;
  ModuleWriter modules;
  Sampler* sampler = nullptr;  // null: a trace
  std::mutex flushing;
  bool stopped = false;  // under `flushing`
  std::atomic<bool> forked{false};
};
// Never deleted: CUPTI may call back during process exit.
Tracer* tracer = nullptr;

void write_kernel(TraceWriter::Batch* batch, const CUpti_ActivityKernel10& r) {
  trace_format::Kernel out{};
  out.start = r.start;
  out.end = r.end;
  out.graph_node = r.graphNodeId;
  out.graph = r.graphId;
  out.correlation = r.correlationId;
  out.stream = r.streamId;
  out.device = r.deviceId;
  out.name = batch->name(r.name);
  const std::int32_t grid[3] = {r.gridX, r.gridY, r.gridZ};
  const std::int32_t block[3] = {r.blockX, r.blockY, r.blockZ};
  const std::uint32_t cluster[3] = {r.clusterX, r.clusterY, r.clusterZ};
  for (int i = 0; i < 3; ++i) {
    out.grid[i] = static_cast<std::uint32_t>(grid[i]);
    out.block[i] = static_cast<std::uint32_t>(block[i]);
    out.cluster[i] = cluster[i];
  }
  out.registers = r.registersPerThread;
  out.static_shared = static_cast<std::uint32_t>(r.staticSharedMemory);
  out.dynamic_shared = static_cast<std::uint32_t>(r.dynamicSharedMemory);
  out.local_bytes = r.localMemoryPerThread;
  batch->add(Kind::kKernel, out);
}

template <class Record>
void write_copy(TraceWriter::Batch* batch, const Record& r) {
  batch->add(Kind::kCopy,
             trace_format::Copy{r.start, r.end, r.bytes, r.graphNodeId, r.correlationId, r.streamId,
                                r.deviceId, r.copyKind, r.srcKind, r.dstKind, r.flags});
}

void write_memory(TraceWriter::Batch* batch, const CUpti_ActivityMemory4& r) {
  const bool device = r.memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE ||
                      r.memoryKind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
  const bool allocated = r.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION;
  const bool released = r.memoryOperationType == CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  if (!device || (!allocated && !released)) return;
  batch->add(Kind::kMemory, trace_format::Memory{r.timestamp, r.address, r.bytes, r.deviceId,
                                                 allocated ? 1u : 0u});
}

void write_api(TraceWriter::Batch* batch, const CUpti_ActivityAPI& r) {
  const bool runtime = r.kind == CUPTI_ACTIVITY_KIND_RUNTIME;
  const char* name = nullptr;
  static_cast<void>(tracer->cupti->GetCallbackName(
      runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API, r.cbid, &name));
  batch->add(Kind::kApi, trace_format::Api{r.start, r.end, r.correlationId, r.threadId,
                                           batch->name(name), runtime ? 1u : 0u});
}

void write_marker(TraceWriter::Batch* batch, const CUpti_ActivityMarker2& r) {
  const bool begins = (r.flags & CUPTI_ACTIVITY_FLAG_MARKER_START) != 0;
  if (!begins && (r.flags & CUPTI_ACTIVITY_FLAG_MARKER_END) == 0) return;
  batch->add(Kind::kMarker,
             trace_format::Marker{r.timestamp, r.id, r.objectId.pt.threadId,
                                  begins ? batch->name(r.name) : 0, begins ? 1u : 0u});
}

void write_record(TraceWriter::Batch* batch, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return write_kernel(batch, *reinterpret_cast<const CUpti_ActivityKernel10*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return write_copy(batch, *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return write_copy(batch, *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const auto& r = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
      return batch->add(Kind::kMemset,
                        trace_format::Memset{r.start, r.end, r.bytes, r.graphNodeId,
                                             r.correlationId, r.streamId, r.deviceId, r.value});
    }
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return write_memory(batch, *reinterpret_cast<const CUpti_ActivityMemory4*>(record));
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
      return write_api(batch, *reinterpret_cast<const CUpti_ActivityAPI*>(record));
    case CUPTI_ACTIVITY_KIND_MARKER:
      return write_marker(batch, *reinterpret_cast<const CUpti_ActivityMarker2*>(record));
    case CUPTI_ACTIVITY_KIND_OVERHEAD: {
      // These first fields are the same in all versions of this record.
      const auto& r = *reinterpret_cast<const CUpti_ActivityOverhead3*>(record);
      return batch->add(Kind::kOverhead, trace_format::Overhead{r.start, r.end});
    }
    default:
      return;
  }
}

void CUPTIAPI buffer_requested(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *records = 0;  // as many as fit
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, kBufferBytes));
  *size = *buffer == nullptr ? 0 : kBufferBytes;
}

void CUPTIAPI buffer_completed(CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                               std::size_t, std::size_t valid) {
  if (!tracer->forked.load()) {
    TraceWriter::Batch batch(&tracer->writer);
    CUpti_Activity* record = nullptr;
    while (valid > 0 &&
           tracer->cupti->ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
      write_record(&batch, record);
    }
    std::size_t dropped = 0;
    if (tracer->cupti->ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS) {
      batch.dropped(dropped);
    }
  }
  std::free(buffer);
}

void* flush_now_and_then(void*) {
  const timespec pause{0, kFlushNanoseconds};
  for (;;) {
    ::nanosleep(&pause, nullptr);
    const std::lock_guard lock(tracer->flushing);
    if (tracer->stopped) return nullptr;
    static_cast<void>(tracer->cupti->ActivityFlushAll(0));
  }
}

void at_exit() {
  if (tracer->forked.load()) return;
  {
    const std::lock_guard lock(tracer->flushing);
    if (tracer->stopped) return;
    tracer->stopped = true;
    if (tracer->sampler != nullptr) {
      tracer->sampler->end(&tracer->writer);
    } else {
      static_cast<void>(tracer->cupti->ActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
    }
    if (const std::uint64_t left_out = tracer->modules.left_out(); left_out > 0) {
      TraceWriter::Batch(&tracer->writer)
          .note("the machine code of " + std::to_string(left_out) + " modules was not kept");
    }
  }
  tracer->writer.close();
}

void in_forked_child() {
  tracer->forked.store(true);
  tracer->writer.forget();
}

// Calls that the reader uses: those that launch, copy, wait, allocate or load code. Recording the
// rest, such as cudaGetLastError, would only slow the program down.
bool is_interesting(std::string_view name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string_view::npos; };
  if (has("Graph")) {
    return has("GraphLaunch") || has("GraphInstantiate") || has("GraphExecUpdate");
  }
  if (has("Attribute") || has("Prefetch") || has("Advise")) return false;
  for (const char* part :
       {"Launch", "Memcpy", "Memset", "Synchronize", "Malloc", "Free", "MemAlloc", "HostAlloc",
        "HostRegister", "HostUnregister", "MemCreate", "MemMap", "MemUnmap", "MemRelease",
        "MemGetInfo", "GetDeviceProperties", "ModuleLoad", "LibraryLoad"}) {
    if (has(part)) return true;
  }
  return false;
}

using EnableOne = CUptiResult(CUPTIAPI*)(CUpti_CallbackId, std::uint8_t);

void enable_calls(CUpti_CallbackDomain domain, EnableOne enable, CUpti_ActivityKind all) {
  if (enable == nullptr) {  // older CUPTIs: all or none
    static_cast<void>(tracer->cupti->ActivityEnable(all));
    return;
  }
  for (CUpti_CallbackId id = 1; id < kMostCallbacks; ++id) {
    const char* name = nullptr;
    if (tracer->cupti->GetCallbackName(domain, id, &name) != CUPTI_SUCCESS) return;
    if (name != nullptr && is_interesting(name)) static_cast<void>(enable(id, 1));
  }
}

std::string describe(CUptiResult result) {
  const char* text = nullptr;
  static_cast<void>(tracer->cupti->GetResultString(result, &text));
  return text != nullptr ? text : std::to_string(static_cast<int>(result));
}

std::string start() {
  const CuptiTable& cupti = *tracer->cupti;
  CUptiResult result = cupti.ActivityRegisterCallbacks(buffer_requested, buffer_completed);
  if (result != CUPTI_SUCCESS) {
    return "CUPTI gave no activity records (" + describe(result) +
           "); no other profiler may be attached to the program";
  }
  result = cupti.ActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (result != CUPTI_SUCCESS) {
    return "CUPTI does not record kernels (" + describe(result) +
           "); no other profiler may be attached, and the driver must be as new as this CUPTI";
  }
  for (const CUpti_ActivityKind kind :
       {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET,
        CUPTI_ACTIVITY_KIND_OVERHEAD, CUPTI_ACTIVITY_KIND_MARKER, CUPTI_ACTIVITY_KIND_MEMORY2}) {
    static_cast<void>(cupti.ActivityEnable(kind));
  }
  enable_calls(CUPTI_CB_DOMAIN_RUNTIME_API, cupti.ActivityEnableRuntimeApi,
               CUPTI_ACTIVITY_KIND_RUNTIME);
  enable_calls(CUPTI_CB_DOMAIN_DRIVER_API, cupti.ActivityEnableDriverApi,
               CUPTI_ACTIVITY_KIND_DRIVER);
  return "";
}

void CUPTIAPI on_resource(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                          const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || tracer->forked.load()) return;
  const auto* resource = static_cast<const CUpti_ResourceData*>(data);
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    const auto* module = static_cast<const CUpti_ModuleResourceData*>(resource->resourceDescriptor);
    tracer->modules.write(module->pCubin, module->cubinSize);
    return;
  }
  const std::lock_guard lock(tracer->flushing);
  if (tracer->sampler == nullptr || tracer->stopped) return;
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    const std::string problem = tracer->sampler->begin(resource->context);
    if (!problem.empty()) TraceWriter::Batch(&tracer->writer).note(problem);
  } else if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING) {
    tracer->sampler->end_of(resource->context, &tracer->writer);
  }
}

// "", or why not.
std::string watch(std::initializer_list<CUpti_CallbackId> events) {
  const CuptiTable& cupti = *tracer->cupti;
  if (cupti.Subscribe == nullptr || cupti.EnableCallback == nullptr) {
    return "this CUPTI has no callbacks";
  }
  CUpti_SubscriberHandle subscriber{};
  if (const CUptiResult result = cupti.Subscribe(&subscriber, on_resource, nullptr);
      result != CUPTI_SUCCESS) {
    return describe(result);
  }
  for (const CUpti_CallbackId event : events) {
    const CUptiResult result = cupti.EnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, event);
    if (result != CUPTI_SUCCESS) return describe(result);
  }
  return "";
}

std::string start_sampling(std::uint32_t period) {
  tracer->sampler = new Sampler(*tracer->cupti, period);
  const std::string problem =
      watch({CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING});
  return problem.empty() ? ""
                         : "CUPTI does not report contexts (" + problem +
                               "), so the program was not sampled; it must not profile itself";
}

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

void begin() {
  const char* folder = std::getenv(trace_format::kFolderVariable);
  if (folder == nullptr || *folder == '\0' || tracer != nullptr) return;
  const std::uint64_t limit = number_in(trace_format::kLimitVariable, kDefaultLimit);
  const std::uint64_t code_limit = number_in(trace_format::kCodeVariable, kDefaultCodeLimit);
  const std::uint64_t period = number_in(trace_format::kSampleVariable, 0);
  std::string problem;
  const CuptiTable* table = cupti_table(&problem);
  tracer = new Tracer(table, folder, limit, code_limit);
  if (table != nullptr) {
    problem = period > 0 ? start_sampling(static_cast<std::uint32_t>(period)) : start();
  }
  if (!problem.empty()) {
    TraceWriter::Batch(&tracer->writer).note(problem);
    tracer->writer.close();
    return;
  }
  if (period == 0 && code_limit > 0) {
    const std::string none = watch({CUPTI_CBID_RESOURCE_MODULE_LOADED});
    if (!none.empty()) {
      TraceWriter::Batch(&tracer->writer).note("the machine code was not recorded: " + none);
    }
  }
  static_cast<void>(::pthread_atfork(nullptr, nullptr, in_forked_child));
  static_cast<void>(std::atexit(at_exit));
  static_cast<void>(std::at_quick_exit(at_exit));
  if (period > 0) return;
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, flush_now_and_then, nullptr) == 0) {
    ::pthread_detach(thread);
  }
}

}  // namespace

}  // namespace kernelpro::tracer

// Called by the driver when the program initializes CUDA.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  kernelpro::tracer::begin();
  return 1;
}

// Called by NVTX (NVTX_INJECTION64_PATH) at the program's first range: CUPTI does the rest.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(void* get_table) {
  const kernelpro::tracer::CuptiTable* table = kernelpro::tracer::cupti_table(nullptr);
  if (table == nullptr) return 0;
  using Initialize = int (*)(void*);
  const auto initialize =
      reinterpret_cast<Initialize>(::dlsym(table->library, "InitializeInjectionNvtx2"));
  return initialize != nullptr ? initialize(get_table) : 0;
}
