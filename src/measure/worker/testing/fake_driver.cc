// SPDX-License-Identifier: Apache-2.0
// The fake driver's devices, modules and kernels.
#if KERNELPRO_HAVE_CUDA

#include "measure/worker/testing/fake_driver.h"

#include <algorithm>
#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdio>

#include "measure/worker/testing/fake_state.h"

namespace kernelpro::fake {

namespace {

constexpr const char* kImageHead = "fake module\n";
thread_local CUcontext current = nullptr;
int the_context = 0;  // its address is the handle

std::string count_of(std::size_t count, const char* what) {
  if (count == 0) return "";
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s") + ", ";
}

// Whether a call needs no context and works in a broken one.
bool is_query(const std::string& call) {
  return call.starts_with("Device") || call == "Init" || call == "DriverGetVersion" ||
         call.starts_with("CtxSetCurrent") || call == "CtxGetCurrent";
}

// A kernel's write to memory that is mapped read-only ends it here. What its body holds is lost.
sigjmp_buf faulted;
void on_fault(int) { siglongjmp(faulted, 1); }

void run_body(const Kernel& kernel, Launch* launch) {
  struct sigaction act {
  }, before{};
  act.sa_handler = on_fault;
  ::sigaction(SIGSEGV, &act, &before);
  if (sigsetjmp(faulted, 1) == 0) {
    kernel.body(*launch);
  } else {
    launch->fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  ::sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace

State& state() {
  static State* one = new State;
  return *one;
}

CUresult State::enter(const char* call) {
  log.emplace_back(call);
  const std::uint64_t number = calls++;
  for (auto failure = failures.begin(); failure != failures.end(); ++failure) {
    if (!failure->call.empty() && failure->call != call) continue;
    if (failure->call.empty() ? failure->after > number : failure->after-- > 0) continue;
    const CUresult result = failure->result;
    failures.erase(failure);
    failed = call;
    return result;
  }
  if (is_query(call)) return CUDA_SUCCESS;
  return current == nullptr ? CUDA_ERROR_INVALID_CONTEXT : broken;
}

const Kernel* State::kernel(const std::string& name) const {
  if (const auto found = kernels.find(name); found != kernels.end()) return &found->second;
  const auto found = judge_kernels().find(name);
  return found == judge_kernels().end() ? nullptr : &found->second;
}

CUresult State::run(Function* function, Launch launch, const char* how) {
  if (!functions.has(function) || !modules.has(function->module)) {
    complain("a kernel of a module that is not loaded: " + launch.kernel);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  log.push_back(std::string(how) + " " + launch.kernel);
  launch.globals = &function->module->globals;
  launch.carveout = function->carveout;
  launch.us = function->kernel->us;
  const auto begun = std::chrono::steady_clock::now();
  if (function->kernel->body) run_body(*function->kernel, &launch);
  now_us += launch.us;
  // A parent compares the times of a call with its own clock.
  const std::chrono::duration<double, std::micro> least(launch.us);
  while (std::chrono::steady_clock::now() - begun < least) continue;
  if (launch.fault != CUDA_SUCCESS && broken == CUDA_SUCCESS) broken = launch.fault;
  launches.push_back(std::move(launch));
  return CUDA_SUCCESS;
}

void* Launch::bytes_at(std::uint64_t address, std::size_t bytes) {
  if (state().is_mapped(address, bytes)) return reinterpret_cast<void*>(address);
  fault = CUDA_ERROR_ILLEGAL_ADDRESS;
  return nullptr;
}

CUresult check_launch(const Function& function, const Launch& launch) {
  const auto volume = [](const std::array<unsigned, 3>& d) { return 1.0 * d[0] * d[1] * d[2]; };
  if (volume(launch.grid) < 1 || volume(launch.block) < 1 || volume(launch.block) > 1024 ||
      launch.shared > static_cast<unsigned>(function.max_dynamic_shared)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // More than eight blocks need an opt-in.
  if (volume(launch.cluster) > 8 && function.non_portable_cluster == 0) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  return CUDA_SUCCESS;
}

void read_parameters(const Kernel& kernel, void** pointers, Launch* launch) {
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    launch->parameters.emplace_back(static_cast<const char*>(pointers[i]), kernel.parameters[i]);
  }
}

void apply_attribute(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, Launch* launch) {
  if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) {
    launch->cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
  } else if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) {
    launch->cooperative = value.cooperative != 0;
  } else if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) {
    launch->priority = value.priority;
  } else if (id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE) {
    launch->cluster_policy = static_cast<int>(value.clusterSchedulingPolicyPreference);
  }
}

void reset(bool has_gpu) {
  State& s = state();
  release_memory();
  s.modules.clear();
  s.functions.clear();
  s.streams.clear();
  s.events.clear();
  s.graphs.clear();
  s.execs.clear();
  s = State();
  s.has_gpu = has_gpu;
}

void define(const std::string& name, Kernel kernel) { state().kernels[name] = std::move(kernel); }

std::string image(const std::vector<std::string>& kernels) {
  std::string text = kImageHead;
  for (const std::string& name : kernels) text += name + "\n";
  return text;
}

std::string judge_image() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : judge_kernels()) names.push_back(name);
  return image(names);
}

const std::vector<std::string>& log() { return state().log; }
void clear_log() {
  state().log.clear();
  state().launches.clear();
}
const std::vector<Launch>& launches() { return state().launches; }

void fail(const std::string& call, CUresult result, int after) {
  state().failures.push_back({call, static_cast<std::uint64_t>(after), result});
}
void fail_call(std::uint64_t number, CUresult result) {
  state().failures.push_back({"", state().calls + number, result});
}
std::uint64_t calls() { return state().calls; }
const std::string& failed() { return state().failed; }
void break_context(CUresult result) { state().broken = result; }
void misplace_below(std::uint64_t bytes) { state().misplaced_below = bytes; }
void set_memory(std::uint64_t bytes) { state().total_bytes = bytes; }
void add_host_memory(std::uint64_t address) { state().host_memory.insert(address); }
void add_node(CUgraph graph, CUgraphNodeType type) {
  auto& nodes = reinterpret_cast<Graph*>(graph)->nodes;
  nodes.push_back(std::make_unique<Node>());
  nodes.back()->type = type;
}

std::string alive() {
  const State& s = state();
  std::string text =
      count_of(static_cast<std::size_t>(s.contexts), "context") +
      count_of(s.ranges.size(), "address range") + count_of(s.mappings.size(), "mapping") +
      count_of(s.physical.size(), "shared memory handle") +
      count_of(s.allocations.size(), "allocation") + count_of(s.modules.count(), "module") +
      count_of(s.streams.count(), "stream") + count_of(s.events.count(), "event") +
      count_of(s.graphs.count(), "graph") + count_of(s.execs.count(), "executable graph");
  return text.substr(0, text.size() - std::min<std::size_t>(2, text.size()));
}

const std::vector<std::string>& misuse() { return state().misuse; }

}  // namespace kernelpro::fake

using namespace kernelpro::fake;

KP_FAKE(Init, unsigned) {
  KP_FAKE_ENTER(Init);
  return state().has_gpu ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}
KP_FAKE(DriverGetVersion, int* version) {
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}
KP_FAKE(DeviceGetCount, int* count) {
  KP_FAKE_ENTER(DeviceGetCount);
  *count = 1;
  return CUDA_SUCCESS;
}
KP_FAKE(DeviceGet, CUdevice* device, int ordinal) {
  KP_FAKE_ENTER(DeviceGet);
  *device = ordinal;
  return CUDA_SUCCESS;
}
KP_FAKE(DeviceGetName, char* name, int bytes, CUdevice) {
  std::snprintf(name, static_cast<std::size_t>(bytes), "Fake GPU");
  return CUDA_SUCCESS;
}
KP_FAKE(DeviceGetUuid, CUuuid* uuid, CUdevice) {
  KP_FAKE_ENTER(DeviceGetUuid);
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = static_cast<char>(16 * i + i);
  return CUDA_SUCCESS;
}
KP_FAKE(DeviceTotalMem, std::size_t* bytes, CUdevice) {
  *bytes = state().total_bytes;
  return CUDA_SUCCESS;
}
KP_FAKE(DeviceGetAttribute, int* value, CUdevice_attribute attribute, CUdevice) {
  static const std::map<CUdevice_attribute, int> values = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 64 << 10},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kMostShared},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 512},
  };
  const auto known = values.find(attribute);
  *value = known == values.end() ? 0 : known->second;
  return CUDA_SUCCESS;
}
KP_FAKE(DevicePrimaryCtxRetain, CUcontext* context, CUdevice) {
  KP_FAKE_ENTER(DevicePrimaryCtxRetain);
  ++state().contexts;
  *context = reinterpret_cast<CUcontext>(&the_context);
  return CUDA_SUCCESS;
}
KP_FAKE(DevicePrimaryCtxRelease, CUdevice) {
  state().leave("DevicePrimaryCtxRelease");
  if (--state().contexts < 0) state().complain("a context is released once too often");
  return CUDA_SUCCESS;
}
KP_FAKE(CtxSetCurrent, CUcontext context) {
  KP_FAKE_ENTER(CtxSetCurrent);
  current = context;
  return CUDA_SUCCESS;
}
KP_FAKE(CtxGetCurrent, CUcontext* context) {
  KP_FAKE_ENTER(CtxGetCurrent);
  *context = current;
  return CUDA_SUCCESS;
}
KP_FAKE(CtxSynchronize) {
  KP_FAKE_ENTER(CtxSynchronize);
  return CUDA_SUCCESS;
}
KP_FAKE(CtxSetLimit, CUlimit, std::size_t) {
  KP_FAKE_ENTER(CtxSetLimit);
  return CUDA_SUCCESS;
}
KP_FAKE(CtxResetPersistingL2Cache) {
  KP_FAKE_ENTER(CtxResetPersistingL2Cache);
  return CUDA_SUCCESS;
}
KP_FAKE(GetErrorName, CUresult error, const char** text) {
  static const std::map<CUresult, const char*> names = {
      {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE"},
      {CUDA_ERROR_ECC_UNCORRECTABLE, "CUDA_ERROR_ECC_UNCORRECTABLE"},
      {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
  };
  const auto known = names.find(error);
  *text = known == names.end() ? "CUDA_ERROR_OTHER" : known->second;
  return CUDA_SUCCESS;
}
KP_FAKE(GetErrorString, CUresult, const char** text) {
  *text = "as the fake driver was told";
  return CUDA_SUCCESS;
}
KP_FAKE(ProfilerStart) {
  KP_FAKE_ENTER(ProfilerStart);
  return CUDA_SUCCESS;
}
KP_FAKE(ProfilerStop) {
  KP_FAKE_ENTER(ProfilerStop);
  return CUDA_SUCCESS;
}

KP_FAKE(ModuleLoadData, CUmodule* module, const void* image) {
  KP_FAKE_ENTER(ModuleLoadData);
  const std::string text = static_cast<const char*>(image);
  if (!text.starts_with(kImageHead)) return CUDA_ERROR_INVALID_IMAGE;
  Module* made = state().modules.add();
  made->image = text;
  *module = reinterpret_cast<CUmodule>(made);
  return CUDA_SUCCESS;
}
KP_FAKE(ModuleUnload, CUmodule module) {
  state().leave("ModuleUnload");
  if (!state().modules.remove(module)) state().complain("an unknown module is unloaded");
  return state().broken;
}
KP_FAKE(ModuleGetFunction, CUfunction* function, CUmodule module, const char* name) {
  KP_FAKE_ENTER(ModuleGetFunction);
  if (!state().modules.has(module)) return CUDA_ERROR_INVALID_HANDLE;
  auto* owner = reinterpret_cast<Module*>(module);
  const Kernel* kernel = state().kernel(name);
  if (kernel == nullptr ||
      owner->image.find("\n" + std::string(name) + "\n") == std::string::npos) {
    return CUDA_ERROR_NOT_FOUND;
  }
  Function*& known = owner->functions[name];
  if (known == nullptr) {
    known = state().functions.add();
    known->module = owner;
    known->name = name;
    known->kernel = kernel;
  }
  *function = reinterpret_cast<CUfunction>(known);
  return CUDA_SUCCESS;
}
KP_FAKE(FuncSetAttribute, CUfunction function, CUfunction_attribute attribute, int value) {
  KP_FAKE_ENTER(FuncSetAttribute);
  auto* f = reinterpret_cast<Function*>(function);
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    if (value < 0 || value > kMostShared) return CUDA_ERROR_INVALID_VALUE;
    f->max_dynamic_shared = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    f->carveout = value;
  } else if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) {
    f->non_portable_cluster = value;
  }
  return CUDA_SUCCESS;
}
KP_FAKE(FuncGetAttribute, int* value, CUfunction_attribute attribute, CUfunction function) {
  KP_FAKE_ENTER(FuncGetAttribute);
  const auto* f = reinterpret_cast<const Function*>(function);
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES      ? f->max_dynamic_shared
           : attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT ? f->carveout
           : attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
               ? f->non_portable_cluster
           : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? f->kernel->local_bytes
                                                             : 0;
  return CUDA_SUCCESS;
}
KP_FAKE(FuncGetName, const char** name, CUfunction function) {
  KP_FAKE_ENTER(FuncGetName);
  *name = reinterpret_cast<const Function*>(function)->name.c_str();
  return CUDA_SUCCESS;
}
KP_FAKE(FuncGetModule, CUmodule* module, CUfunction function) {
  KP_FAKE_ENTER(FuncGetModule);
  *module = reinterpret_cast<CUmodule>(reinterpret_cast<const Function*>(function)->module);
  return CUDA_SUCCESS;
}
KP_FAKE(FuncGetParamInfo, CUfunction function, std::size_t i, std::size_t* offset,
        std::size_t* bytes) {
  KP_FAKE_ENTER(FuncGetParamInfo);
  const std::vector<std::size_t>& sizes =
      reinterpret_cast<const Function*>(function)->kernel->parameters;
  if (i >= sizes.size()) return CUDA_ERROR_INVALID_VALUE;
  *bytes = sizes[i];
  *offset = 8 * i;
  return CUDA_SUCCESS;
}
// Kernels of the CUDA runtime, which the fake does not have.
KP_FAKE(KernelGetName, const char**, CUkernel) { return CUDA_ERROR_NOT_SUPPORTED; }
KP_FAKE(KernelGetParamInfo, CUkernel, std::size_t, std::size_t*, std::size_t*) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
KP_FAKE(KernelGetAttribute, int*, CUfunction_attribute, CUkernel, CUdevice) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
KP_FAKE(OccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, CUfunction, int threads,
        std::size_t) {
  KP_FAKE_ENTER(OccupancyMaxActiveBlocksPerMultiprocessor);
  *blocks = 2048 / std::max(1, threads);
  return CUDA_SUCCESS;
}

#endif
