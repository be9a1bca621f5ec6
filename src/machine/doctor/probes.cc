// SPDX-License-Identifier: Apache-2.0
#include "machine/doctor/probes.h"

#include <dlfcn.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/files.h"
#include "base/process/sandbox.h"
#include "base/process/subprocess.h"
#include "base/process/worker_path.h"
#include "base/text.h"
#include "machine/cpu.h"
#include "machine/doctor/cuda.h"
#include "machine/doctor/python.h"
#include "machine/gpu_lease.h"

namespace kernelpro {

namespace {

constexpr const char* kCpu = "cpu target";
constexpr const char* kHouse = "KernelPro";

std::string first_line_of(const std::vector<std::string>& argv) {
  Command command;
  command.argv = argv;
  command.limits.wall_seconds = 10;
  const auto exit = run(command);
  if (!exit || !exit->ok()) return "";
  const std::vector<std::string> all = lines(exit->output);
  return all.empty() ? "" : all.front();
}

// The same order as src/build: $CXX, c++, g++, clang++.
std::string host_compiler() {
  const char* cxx = std::getenv("CXX");
  for (const std::string& name : {std::string(cxx != nullptr ? cxx : ""), std::string("c++"),
                                  std::string("g++"), std::string("clang++")}) {
    if (name.empty()) continue;
    const std::string path = contains(name, "/") ? (exists(name) ? name : "") : find_program(name);
    if (!path.empty()) return path;
  }
  return "";
}

Probe compiler_probe(const std::string& compiler) {
  if (compiler.empty()) {
    return {kCpu, "host compiler", ProbeState::kMissing, "no c++, g++ or clang++ on PATH",
            "apt-get install g++, or set CXX"};
  }
  return {kCpu, "host compiler", ProbeState::kOk, first_line_of({compiler, "--version"}), ""};
}

Probe openmp_probe(const std::string& compiler) {
  Probe probe{kCpu, "OpenMP", ProbeState::kMissing, "a program with -fopenmp does not build",
              "apt-get install g++ (its libgomp), or libomp-dev for clang"};
  if (compiler.empty()) return probe;
  TempDir folder;
  const std::string source = join(folder.path(), "probe.cc");
  if (!write_file(source,
                  "#include <omp.h>\nint main() { return omp_get_max_threads() > 0 ? 0 : 1; }\n")) {
    return probe;
  }
  const std::string program = join(folder.path(), "probe");
  Command command;
  command.argv = {compiler, "-fopenmp", source, "-o", program};
  command.limits.wall_seconds = 30;
  const auto built = run(command);
  if (!built || !built->ok()) return probe;
  command.argv = {program};
  const auto ran = run(command);
  if (!ran || !ran->ok()) return probe;
  return {kCpu, "OpenMP", ProbeState::kOk, "builds and runs", ""};
}

Probe cpu_probe() {
  const CpuInfo info = read_cpu_info();
  return {kCpu, "processor", ProbeState::kOk,
          info.name + ", " + std::to_string(info.threads) + " threads, " +
              human_bytes(static_cast<double>(available_memory_bytes())) + " memory available",
          ""};
}

Probe objdump_probe() {
  const std::string path = find_program("objdump");
  if (path.empty()) {
    return {kCpu, "objdump", ProbeState::kMissing,
            "not on PATH: no evidence from the disassembly of CPU kernels",
            "apt-get install binutils"};
  }
  return {kCpu, "objdump", ProbeState::kOk, first_line_of({path, "--version"}), ""};
}

Probe perf_probe() {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.size = sizeof attributes;
  attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
  attributes.disabled = 1;
  attributes.exclude_kernel = 1;
  const Fd counter(static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0)));
  if (counter.valid()) {
    return {kCpu, "perf events", ProbeState::kOk, "instructions can be counted", ""};
  }
  const int error = errno;
  const auto level = read_file("/proc/sys/kernel/perf_event_paranoid");
  const std::string paranoid =
      level ? "; perf_event_paranoid is " + std::string(trim(*level)) : std::string();
  if (error == ENOENT || error == EOPNOTSUPP || error == ENODEV) {
    return {kCpu, "perf events", ProbeState::kLimited,
            "the processor's counters are not visible here (a virtual machine often hides them)",
            "run on the host; without them the evidence is disassembly and timing"};
  }
  return {kCpu, "perf events", ProbeState::kLimited, std::strerror(error) + paranoid,
          "sysctl kernel.perf_event_paranoid=1, and allow perf_event_open in the container; "
          "without it the evidence is disassembly and timing"};
}

// Limits that candidates and compilers run under, even as root (base/process/sandbox.h).
std::vector<Probe> limit_probes() {
  std::vector<Probe> probes;
  for (const SandboxSupport& each : sandbox_support()) {
    probes.push_back({"limits", each.name, each.held ? ProbeState::kOk : ProbeState::kLimited,
                      each.means, each.follows});
  }
  return probes;
}

Probe lease_probe() {
  const std::string folder = gpu_lease_dir();
  struct stat st {};
  if (folder.empty() || ::stat(folder.c_str(), &st) != 0) {
    return {kHouse, "GPU leases", ProbeState::kMissing, "no folder for lock files",
            "make /tmp writable, or set KERNELPRO_LEASES to a folder that all users share"};
  }
  if ((st.st_mode & S_IWOTH) == 0) {
    return {kHouse, "GPU leases", ProbeState::kLimited,
            folder + " belongs to this user: other users' measurements can overlap with yours",
            "create /tmp/kernelpro-leases with mode 1777"};
  }
  return {kHouse, "GPU leases", ProbeState::kOk, folder, ""};
}

Probe worker_probe() {
  const Result<std::string> worker = worker_path();
  if (worker) return {kHouse, "kernelpro-worker", ProbeState::kOk, *worker, ""};
  return {kHouse, "kernelpro-worker", ProbeState::kMissing, worker.error().message,
          worker.error().next};
}

Probe cache_probe() {
  const std::string folder = cache_dir();
  struct statvfs space {};
  if (!make_dirs(folder) || access(folder.c_str(), W_OK) != 0) {
    return {kHouse, "cache folder", ProbeState::kMissing, folder + " cannot be written",
            "set KERNELPRO_CACHE to a folder that can be written"};
  }
  if (statvfs(folder.c_str(), &space) != 0) {
    return {kHouse, "cache folder", ProbeState::kLimited, folder + ": free space is unknown", ""};
  }
  const double free = static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize);
  if (free < 1e9) {
    return {kHouse, "cache folder", ProbeState::kLimited,
            folder + " has only " + human_bytes(free) + " free",
            "free some space, or set KERNELPRO_CACHE to a larger disk"};
  }
  return {kHouse, "cache folder", ProbeState::kOk, folder + ", " + human_bytes(free) + " free", ""};
}

Probe chromium_probe() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (const std::string path = find_program(name); !path.empty()) {
      return {kHouse, "chromium (for tests)", ProbeState::kOk, path, ""};
    }
  }
  return {kHouse, "chromium (for tests)", ProbeState::kLimited,
          "not found: the test that opens the report is skipped", "apt-get install chromium"};
}

}  // namespace

std::string probe_state_name(ProbeState state) {
  return state == ProbeState::kOk ? "OK" : state == ProbeState::kLimited ? "limited" : "missing";
}

std::vector<Probe> probe_machine() {
  const std::string compiler = host_compiler();
  std::vector<Probe> probes = {cpu_probe(), compiler_probe(compiler), openmp_probe(compiler),
                               objdump_probe(), perf_probe()};
  const auto add = [&](std::vector<Probe> more) {
    for (Probe& probe : more) probes.push_back(std::move(probe));
  };
  add(probe_cuda());
  add(probe_python());
  add(limit_probes());
  probes.push_back(worker_probe());
  probes.push_back(cache_probe());
  probes.push_back(lease_probe());
  probes.push_back(chromium_probe());
  return probes;
}

}  // namespace kernelpro
