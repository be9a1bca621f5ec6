// SPDX-License-Identifier: Apache-2.0
#include "machine/gpu_watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "base/files.h"
#include "base/process/processes.h"
#include "base/text.h"
#include "machine/driver/nvml.h"

namespace kernelpro {

namespace {

// Bits of nvmlClocksEventReasons.
constexpr std::uint64_t kIdle = 0x1;
struct Reason {
  std::uint64_t bit;
  const char* name;
};
constexpr Reason kThrottling[] = {{0x04, "power cap"},
                                  {0x08, "hardware slowdown"},
                                  {0x20, "software thermal slowdown"},
                                  {0x40, "hardware thermal slowdown"},
                                  {0x80, "power brake"}};

constexpr double kClockFall = 0.03;  // smaller falls are the governor's ordinary steps

Error nvml_error(const Nvml& library, const char* what, int status) {
  return {ErrorKind::kEnvironment,
          std::string("NVML cannot report ") + what + ": " + library.ErrorString(status),
          "check that nvidia-smi works"};
}

bool is_index(const std::string& text) {
  return !text.empty() && text.size() < 6 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whether the process has GPU device files open. Works only for our own user's processes.
bool has_gpu_open(int pid) {
  std::error_code error;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(it->path(), unreadable).string();
    if (target.starts_with("/dev/nvidia") && target != "/dev/nvidiactl") return true;
  }
  return false;
}

// In a container NVML may report host pids, which mean nothing here. Count a pid missing from /proc
// as ours, up to the number of our processes on the GPU that NVML did not list.
std::vector<int> foreign(const std::vector<int>& on_gpu) {
  std::vector<int> ours = descendants(::getpid());
  ours.push_back(::getpid());
  const std::set<int> tree(ours.begin(), ours.end());
  std::vector<int> result, unknown;
  std::set<int> listed;
  for (const int pid : on_gpu) {
    if (tree.contains(pid)) {
      listed.insert(pid);
    } else if (::access(("/proc/" + std::to_string(pid)).c_str(), F_OK) == 0) {
      result.push_back(pid);
    } else {
      unknown.push_back(pid);
    }
  }
  if (!unknown.empty()) {
    const auto unlisted =
        static_cast<std::size_t>(std::count_if(tree.begin(), tree.end(), [&](int pid) {
          return !listed.contains(pid) && has_gpu_open(pid);
        }));
    for (std::size_t i = unlisted; i < unknown.size(); ++i) result.push_back(unknown[i]);
  }
  return result;
}

std::vector<int> processes_on(const Nvml& library, NvmlDevice device) {
  const auto list = library.DeviceGetComputeRunningProcesses_v3 != nullptr
                        ? library.DeviceGetComputeRunningProcesses_v3
                        : library.DeviceGetComputeRunningProcesses_v2;
  if (list == nullptr) return {};
  std::vector<NvmlProcess> found(256);
  unsigned count = static_cast<unsigned>(found.size());
  if (list(device, &count, found.data()) != 0) return {};
  std::vector<int> pids;
  for (unsigned i = 0; i < std::min<unsigned>(count, 256); ++i) {
    pids.push_back(static_cast<int>(found[i].pid));
  }
  return pids;
}

struct Opened {
  const Nvml* library = nullptr;
  NvmlDevice device = nullptr;    // as requested: perhaps a MIG slice
  NvmlDevice physical = nullptr;  // the GPU, which has the clocks
};

Result<std::string> uuid_at(const Nvml& library, unsigned index) {
  NvmlDevice device = nullptr;
  char uuid[128] = "";
  int status = library.DeviceGetHandleByIndex_v2(index, &device);
  if (status == 0) status = library.DeviceGetUUID(device, uuid, sizeof uuid - 1);
  if (status == 0) return std::string(uuid);
  return fail(ErrorKind::kBadInput,
              "there is no GPU " + std::to_string(index) + ": " + library.ErrorString(status),
              "`kernelpro doctor` lists the GPUs of this machine");
}

Result<Opened> open_gpu(const std::string& gpu) {
  Opened opened;
  KP_ASSIGN(opened.library, nvml());
  KP_ASSIGN(const std::string uuid, gpu_uuid(gpu));
  const int status = opened.library->DeviceGetHandleByUUID(uuid.c_str(), &opened.device);
  if (status != 0) {
    return tl::unexpected<Error>(nvml_error(*opened.library, ("of GPU " + uuid).c_str(), status));
  }
  opened.physical = opened.device;
  NvmlDevice parent = nullptr;
  if (opened.library->DeviceGetDeviceHandleFromMigDeviceHandle != nullptr &&
      uuid.starts_with("MIG-") &&
      opened.library->DeviceGetDeviceHandleFromMigDeviceHandle(opened.device, &parent) == 0) {
    opened.physical = parent;
  }
  return opened;
}

const char* on_off(int status, int value) {
  return status != 0 ? "none" : value != 0 ? "on" : "off";
}

}  // namespace

Result<std::vector<GpuName>> list_gpus() {
  KP_ASSIGN(const Nvml* library, nvml());
  const Nvml& ml = *library;
  unsigned count = 0;
  if (const int status = ml.DeviceGetCount_v2(&count); status != 0) {
    return tl::unexpected<Error>(nvml_error(ml, "how many GPUs there are", status));
  }
  std::vector<GpuName> gpus;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    char uuid[128] = "", name[128] = "";
    if (ml.DeviceGetHandleByIndex_v2(i, &device) != 0) continue;  // lost, or not visible to us
    if (ml.DeviceGetUUID(device, uuid, sizeof uuid - 1) != 0) continue;
    (void)ml.DeviceGetName(device, name, sizeof name - 1);
    gpus.push_back({static_cast<int>(i), printable(uuid), printable(name)});
  }
  return gpus;
}

Result<std::string> gpu_uuid(const std::string& gpu) {
  KP_ASSIGN(const Nvml* library, nvml());
  std::string wanted = gpu;
  if (wanted.empty()) {
    const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
    wanted = visible != nullptr && *visible != '\0' ? split(visible, ',').front() : "0";
    wanted = std::string(trim(wanted));
  }
  if (is_index(wanted)) return uuid_at(*library, static_cast<unsigned>(std::stoul(wanted)));
  if (wanted.starts_with("MIG-")) return wanted;
  KP_ASSIGN(const std::vector<GpuName> gpus, list_gpus());
  for (const GpuName& each : gpus) {
    if (!wanted.empty() && each.uuid.starts_with(wanted)) return each.uuid;
  }
  return fail(ErrorKind::kBadInput, "there is no GPU " + printable(wanted),
              "`kernelpro doctor` lists the GPUs of this machine");
}

std::vector<std::string> device_files_of_others(const std::string& uuid) {
  const Result<const Nvml*> library = nvml();
  NvmlDevice device = nullptr;
  unsigned minor = 0;
  if (!library || (*library)->DeviceGetMinorNumber == nullptr ||
      (*library)->DeviceGetHandleByUUID(uuid.c_str(), &device) != 0 ||
      (*library)->DeviceGetMinorNumber(device, &minor) != 0) {
    return {};
  }
  const std::string prefix = "nvidia", own = prefix + std::to_string(minor);
  bool there = false;
  std::vector<std::string> others;
  for (const std::string& name : list_dir("/dev")) {
    if (!name.starts_with(prefix) || !is_index(name.substr(prefix.size()))) continue;
    there |= name == own;
    if (name != own) others.push_back("/dev/" + name);
  }
  return there ? others : std::vector<std::string>();
}

namespace {

// In the order of CUDA_VISIBLE_DEVICES.
Result<std::vector<std::string>> visible_gpus() {
  std::vector<std::string> names;
  if (const char* visible = std::getenv("CUDA_VISIBLE_DEVICES")) {
    for (const std::string& each : split(visible, ',')) names.emplace_back(trim(each));
    return names;
  }
  KP_ASSIGN(const auto gpus, list_gpus());
  for (const GpuName& gpu : gpus) names.push_back(std::to_string(gpu.index));
  return names;
}

std::string model_of(const std::vector<GpuName>& gpus, const std::string& uuid) {
  for (const GpuName& gpu : gpus) {
    if (gpu.uuid == uuid) return gpu.name;
  }
  return "";
}

}  // namespace

Result<std::vector<std::string>> choose_gpus(const std::vector<std::string>& named) {
  std::vector<std::string> names;
  for (const std::string& text : named) {
    for (const std::string& each : split(text, ',')) {
      if (!trim(each).empty()) names.emplace_back(trim(each));
    }
  }
  if (names.size() == 1 && names.front() == "all") {
    KP_ASSIGN(names, visible_gpus());
  }
  if (names.size() < 2) return names;
  KP_ASSIGN(const auto gpus, list_gpus());
  std::vector<std::string> uuids;
  for (const std::string& name : names) {
    KP_ASSIGN(auto uuid, gpu_uuid(name));
    if (std::find(uuids.begin(), uuids.end(), uuid) != uuids.end()) {
      return fail(ErrorKind::kBadInput, "GPU " + printable(name) + " is named twice",
                  "name each GPU once, or all of them with --gpu all");
    }
    uuids.push_back(std::move(uuid));
    const std::string first = model_of(gpus, uuids.front());
    const std::string model = model_of(gpus, uuids.back());
    if (model != first) {
      return fail(ErrorKind::kBadInput,
                  "GPU " + names.front() + " is a " + first + " and GPU " + name + " a " + model +
                      ": their times cannot be compared",
                  "name GPUs of one model (`kernelpro doctor` lists them)");
    }
  }
  return names;
}

Result<GpuState> gpu_state(const std::string& gpu) {
  KP_ASSIGN(const Opened opened, open_gpu(gpu));
  const Nvml& ml = *opened.library;
  const NvmlDevice device = opened.physical;
  GpuState state;
  // Values that a GPU does not report (a MIG slice, a laptop) stay zero.
  (void)ml.DeviceGetClockInfo(device, kNvmlSmClock, &state.sm_mhz);
  (void)ml.DeviceGetClockInfo(device, kNvmlMemoryClock, &state.memory_mhz);
  (void)ml.DeviceGetMaxClockInfo(device, kNvmlSmClock, &state.max_sm_mhz);
  (void)ml.DeviceGetTemperature(device, 0, &state.temperature_c);
  const auto reasons = ml.DeviceGetCurrentClocksEventReasons != nullptr
                           ? ml.DeviceGetCurrentClocksEventReasons
                           : ml.DeviceGetCurrentClocksThrottleReasons;
  unsigned long long bits = 0;
  if (reasons != nullptr && reasons(device, &bits) == 0) state.throttle_reasons = bits;
  NvmlMemory memory{};
  if (ml.DeviceGetMemoryInfo(opened.device, &memory) == 0) {
    state.used_bytes = memory.used;
    state.total_bytes = memory.total;
  }
  state.foreign_pids = foreign(processes_on(ml, device));
  return state;
}

int foreign_processes(const GpuState& before, const GpuState& after) {
  std::set<int> others(before.foreign_pids.begin(), before.foreign_pids.end());
  others.insert(after.foreign_pids.begin(), after.foreign_pids.end());
  return static_cast<int>(others.size());
}

std::vector<std::string> watch_notes(const GpuState& before, const GpuState& after) {
  std::vector<std::string> notes;
  const std::uint64_t reasons = before.throttle_reasons | after.throttle_reasons;
  std::vector<std::string> names;
  for (const Reason& reason : kThrottling) {
    if ((reasons & reason.bit) != 0) names.push_back(reason.name);
  }
  if (!names.empty()) notes.push_back("the GPU was throttled (" + join_text(names, ", ") + ")");
  std::set<int> others(before.foreign_pids.begin(), before.foreign_pids.end());
  others.insert(after.foreign_pids.begin(), after.foreign_pids.end());
  if (!others.empty()) {
    std::vector<std::string> pids;
    for (const int pid : others) pids.push_back(std::to_string(pid));
    if (pids.size() > 4) {
      pids.resize(4);
      pids.push_back("...");
    }
    notes.push_back((others.size() == 1 ? "1 other process"
                                        : std::to_string(others.size()) + " other processes") +
                    " used the GPU (pid " + join_text(pids, ", ") + ")");
  }
  // Ignore the clocks of an idle GPU.
  const bool busy = (before.throttle_reasons & kIdle) == 0 && (after.throttle_reasons & kIdle) == 0;
  const auto fell = [](unsigned from, unsigned to) {
    return from > 0 && to > 0 && to < (1 - kClockFall) * from;
  };
  const auto clock_note = [&](const char* what, unsigned from, unsigned to) {
    if (busy && fell(from, to)) {
      notes.push_back(std::string("the ") + what + " clock fell from " + std::to_string(from) +
                      " to " + std::to_string(to) + " MHz");
    }
  };
  clock_note("SM", before.sm_mhz, after.sm_mhz);
  clock_note("memory", before.memory_mhz, after.memory_mhz);
  return notes;
}

Result<GpuSettings> gpu_settings(const std::string& gpu) {
  KP_ASSIGN(const Opened opened, open_gpu(gpu));
  const Nvml& ml = *opened.library;
  const NvmlDevice device = opened.physical;
  GpuSettings settings;
  char text[96] = "";
  if (ml.SystemGetDriverVersion(text, sizeof text - 1) == 0) settings.driver = printable(text);
  int current = 0, pending = 0;
  const auto read = [](auto function, auto... arguments) {
    return function != nullptr ? function(arguments...) : -1;
  };
  settings.ecc = on_off(read(ml.DeviceGetEccMode, device, &current, &pending), current);
  settings.persistence = on_off(read(ml.DeviceGetPersistenceMode, device, &current), current);
  unsigned mig = 0, mig_pending = 0, milliwatts = 0;
  const int status = read(ml.DeviceGetMigMode, device, &mig, &mig_pending);
  settings.mig = on_off(status, static_cast<int>(mig));
  if (read(ml.DeviceGetEnforcedPowerLimit, device, &milliwatts) == 0) {
    settings.power_limit_w = milliwatts * 1e-3;
  }
  NvmlMemory memory{};
  if (ml.DeviceGetMemoryInfo(opened.device, &memory) == 0) {
    settings.total_bytes = memory.total;
    settings.free_bytes = memory.free;
  }
  return settings;
}

}  // namespace kernelpro
