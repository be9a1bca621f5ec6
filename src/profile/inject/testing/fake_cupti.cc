// SPDX-License-Identifier: Apache-2.0
#include "profile/inject/testing/fake_cupti.h"

#include <cupti.h>
#include <cupti_pcsampling.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <vector>

#define KP_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Bytes = std::vector<std::uint8_t>;

struct Fake {
  std::mutex mutex;
  CUpti_BuffersCallbackRequestFunc request = nullptr;
  CUpti_BuffersCallbackCompleteFunc complete = nullptr;
  std::deque<Bytes> queued;
  std::uint64_t clock = 1'000'000'000;
  std::uint32_t correlation = 0;
  std::size_t dropped = 0;
  CUpti_CallbackFunc resource = nullptr;
  void* resource_data = nullptr;
  bool reports_modules = false, reports_contexts = false;
  CUpti_PCSamplingData* samples = nullptr;
  bool sampling = false, refuses = false;
};
Fake& fake() {
  static Fake* one = new Fake;
  return *one;
}

constexpr const char* kRuntimeNames[] = {nullptr, "cudaLaunchKernel_v7000", "cudaMemcpy_v3020",
                                         "cudaDeviceSynchronize_v3020", "cudaGetLastError_v3020"};
constexpr const char* kDriverNames[] = {nullptr, "cuLaunchKernel", "cuMemcpyHtoD_v2"};

constexpr const char* kReasons[] = {"smsp__pcsamp_warps_issue_stalled_selected",
                                    "smsp__pcsamp_warps_issue_stalled_long_scoreboard",
                                    "smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued"};

template <class Record>
Record make(CUpti_ActivityKind kind) {
  Record record;
  std::memset(&record, 0, sizeof record);
  record.kind = kind;
  return record;
}

template <class Record>
void queue(const Record& record) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&record);
  fake().queued.emplace_back(bytes, bytes + sizeof record);
}

void queue_call(CUpti_ActivityKind kind, std::uint32_t id, unsigned thread, std::uint64_t start,
                std::uint64_t end) {
  auto call = make<CUpti_ActivityAPI>(kind);
  call.cbid = id;
  call.start = start;
  call.end = end;
  call.threadId = thread;
  call.correlationId = fake().correlation;
  queue(call);
}

void queue_kernel(std::uint64_t start, std::uint64_t end) {
  auto kernel = make<CUpti_ActivityKernel10>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  kernel.start = start;
  kernel.end = end;
  kernel.correlationId = fake().correlation;
  kernel.streamId = 7;
  kernel.gridX = 100;
  kernel.gridY = 2;
  kernel.gridZ = 1;
  kernel.blockX = 256;
  kernel.blockY = kernel.blockZ = 1;
  kernel.registersPerThread = 40;
  kernel.dynamicSharedMemory = 1024;
  kernel.name = "_Z3addPKfPfi";
  queue(kernel);
}

void queue_memory(std::uint64_t address, std::uint64_t bytes, CUpti_ActivityMemoryKind kind,
                  bool allocated) {
  auto memory = make<CUpti_ActivityMemory4>(CUPTI_ACTIVITY_KIND_MEMORY2);
  memory.memoryOperationType = allocated ? CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION
                                         : CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  memory.memoryKind = kind;
  memory.address = address;
  memory.bytes = bytes;
  memory.timestamp = fake().clock;
  queue(memory);
}

void queue_iteration(unsigned thread) {
  Fake& f = fake();
  const std::uint64_t t = f.clock;
  f.clock += 100'000;
  ++f.correlation;
  if (f.correlation == 1) {  // two buffers, one of them released, and one of the host
    queue_memory(0x1000, 1 << 20, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, true);
    queue_memory(0x9000, 1 << 10, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, true);
    queue_memory(0x9000, 1 << 10, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, false);
    queue_memory(0x5000, 1 << 12, CUPTI_ACTIVITY_MEMORY_KIND_PINNED, true);
  }
  queue_call(CUPTI_ACTIVITY_KIND_RUNTIME, 1, thread, t, t + 5'000);
  queue_call(CUPTI_ACTIVITY_KIND_DRIVER, 1, thread, t + 1'000, t + 4'000);
  queue_kernel(t + 6'000, t + 26'000);
  ++f.correlation;
  queue_call(CUPTI_ACTIVITY_KIND_RUNTIME, 2, thread, t + 6'000, t + 60'000);
  auto copy = make<CUpti_ActivityMemcpy6>(CUPTI_ACTIVITY_KIND_MEMCPY);
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.bytes = 4096;
  copy.start = t + 30'000;
  copy.end = t + 50'000;
  copy.correlationId = f.correlation;
  queue(copy);
  auto memset = make<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET);
  memset.bytes = 512;
  memset.start = t + 62'000;
  memset.end = t + 64'000;
  queue(memset);
  ++f.correlation;
  queue_call(CUPTI_ACTIVITY_KIND_RUNTIME, 3, thread, t + 61'000, t + 66'000);
}

// Delivers as many queued records as the tracer's buffers hold.
void deliver() {
  Fake& f = fake();
  while (!f.queued.empty()) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0, most = 0, used = 0;
    f.request(&buffer, &size, &most);
    if (buffer == nullptr) return;
    while (!f.queued.empty() && used + f.queued.front().size() <= size) {
      std::memcpy(buffer + used, f.queued.front().data(), f.queued.front().size());
      used += f.queued.front().size();
      f.queued.pop_front();
    }
    f.complete(nullptr, 0, buffer, size, used);
  }
}

std::size_t size_of(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_MEMORY2:
      return sizeof(CUpti_ActivityMemory4);
    default:
      return sizeof(CUpti_ActivityAPI);
  }
}

}  // namespace

KP_EXPORT void fake_play(int repetitions, unsigned thread) {
  const std::lock_guard lock(fake().mutex);
  for (int i = 0; i < repetitions; ++i) queue_iteration(thread);
}

KP_EXPORT void fake_drop(unsigned records) {
  const std::lock_guard lock(fake().mutex);
  fake().dropped = records;
}

KP_EXPORT void fake_refuse_sampling() { fake().refuses = true; }

KP_EXPORT void fake_context() {
  Fake& f = fake();
  if (!f.reports_contexts) return;
  CUpti_ResourceData data{};
  data.context = reinterpret_cast<CUcontext>(&f);
  f.resource(f.resource_data, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_CREATED, &data);
}

KP_EXPORT void fake_load(const void* image, unsigned long bytes) {
  Fake& f = fake();
  if (!f.reports_modules) return;
  CUpti_ModuleResourceData module{};
  module.pCubin = static_cast<const char*>(image);
  module.cubinSize = bytes;
  CUpti_ResourceData data{};
  data.resourceDescriptor = &module;
  f.resource(f.resource_data, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
}

KP_EXPORT CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber,
                                              CUpti_CallbackFunc callback, void* data) {
  if (fake().resource != nullptr) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  fake().resource = callback;
  fake().resource_data = data;
  *subscriber = reinterpret_cast<CUpti_SubscriberHandle>(&fake());
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle,
                                                   CUpti_CallbackDomain, CUpti_CallbackId id) {
  if (id == CUPTI_CBID_RESOURCE_MODULE_LOADED) fake().reports_modules = enable != 0;
  if (id == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) fake().reports_contexts = enable != 0;
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams*) {
  return fake().refuses ? CUPTI_ERROR_INSUFFICIENT_PRIVILEGES : CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI
cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams* params) {
  *params->numStallReasons = std::size(kReasons);
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI
cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams* params) {
  for (std::size_t i = 0; i < params->numStallReasons; ++i) {
    params->stallReasonIndex[i] = static_cast<std::uint32_t>(i + 3);
    std::strcpy(params->stallReasons[i], kReasons[i]);
  }
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI
cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams* params) {
  for (std::size_t i = 0; i < params->numAttributes; ++i) {
    const CUpti_PCSamplingConfigurationInfo& info = params->pPCSamplingConfigurationInfo[i];
    if (info.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER) {
      fake().samples = static_cast<CUpti_PCSamplingData*>(
          info.attributeData.samplingDataBufferData.samplingDataBuffer);
    }
  }
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiPCSamplingStart(CUpti_PCSamplingStartParams*) {
  if (fake().samples == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  fake().sampling = true;
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiPCSamplingStop(CUpti_PCSamplingStopParams*) {
  if (!fake().sampling) return CUPTI_ERROR_INVALID_OPERATION;
  static char name[] = "_Z3addPKfPfi";
  CUpti_PCSamplingData& data = *fake().samples;
  const auto add = [&](std::uint64_t offset,
                       const std::vector<CUpti_PCSamplingStallReason>& reasons) {
    CUpti_PCSamplingPCData& pc = data.pPcData[data.totalNumPcs];
    data.totalNumPcs = data.totalNumPcs + 1;
    pc.functionName = name;
    pc.pcOffset = offset;
    pc.stallReasonCount = reasons.size();
    for (std::size_t i = 0; i < reasons.size(); ++i) pc.stallReason[i] = reasons[i];
  };
  add(32, {{4, 64}, {5, 48}});
  add(0, {{3, 8}});
  data.droppedSamples = 2;
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult, const char** text) {
  *text = "a result of the fake";
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id,
                                                    const char** name) {
  const bool runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
  const std::size_t count = runtime ? std::size(kRuntimeNames) : std::size(kDriverNames);
  if (id >= count) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = runtime ? kRuntimeNames[id] : kDriverNames[id];
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(
    CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  fake().request = request;
  fake().complete = complete;
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind) { return CUPTI_SUCCESS; }

KP_EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t) {
  const std::lock_guard lock(fake().mutex);
  deliver();
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                                          CUpti_Activity** record) {
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<std::uint8_t*>(*record) + size_of((*record)->kind);
  }
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

KP_EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t,
                                                                 std::size_t* dropped) {
  *dropped = fake().dropped;
  fake().dropped = 0;
  return CUPTI_SUCCESS;
}
