// SPDX-License-Identifier: Apache-2.0
// What programs in a sandbox may need to read.
#include <cstdlib>
#include <filesystem>

#include "base/process/sandbox.h"

namespace kernelpro {

namespace {

// NVIDIA's PCI devices, as folders below /sys/devices.
std::vector<std::string> nvidia_devices() {
  std::vector<std::string> found;
  const std::string all = "/sys/bus/pci/devices/";
  for (const std::string& name : list_dir(all)) {
    const Result<std::string> vendor = read_file(all + name + "/vendor");
    std::error_code error;
    const std::filesystem::path real = std::filesystem::canonical(all + name, error);
    if (vendor && vendor->starts_with("0x10de") && !error) found.push_back(real.string());
  }
  return found;
}

std::string folder_above(const std::filesystem::path& program) {
  const std::string above = program.parent_path().parent_path().string();
  return holds_homes(above) ? program.parent_path().string() : above;
}

}  // namespace

std::vector<std::string> system_roots() {
  return {"/usr",
          "/bin",
          "/sbin",
          "/lib",
          "/lib64",
          "/nix/store",
          "/gnu/store",
          "/etc/ld.so.cache",
          "/etc/ld.so.conf",
          "/etc/ld.so.conf.d",
          "/etc/ld.so.preload",
          "/etc/alternatives",
          "/etc/localtime",
          "/dev/urandom",
          "/dev/random"};
}

std::vector<std::string> gpu_system_files() {
  std::vector<std::string> files = {"/proc/cpuinfo",
                                    "/proc/meminfo",
                                    "/proc/stat",
                                    "/proc/version",
                                    "/proc/devices",
                                    "/proc/modules",
                                    "/proc/filesystems",
                                    "/proc/driver",
                                    "/proc/sys/vm",
                                    "/proc/sys/kernel/cap_last_cap",
                                    "/proc/sys/kernel/osrelease",
                                    "/proc/sys/kernel/numa_balancing",
                                    "/sys/devices/system",
                                    "/sys/kernel/mm/transparent_hugepage",
                                    "/sys/kernel/mm/hugepages",
                                    "/sys/bus/pci"};
  for (const std::string& name : list_dir("/sys/module")) {
    if (name.starts_with("nvidia")) files.push_back("/sys/module/" + name);
  }
  for (std::string& device : nvidia_devices()) files.push_back(std::move(device));
  return files;
}

bool holds_homes(const std::string& folder) {
  const char* home = std::getenv("HOME");
  std::error_code error;
  const std::string own =
      home != nullptr ? std::filesystem::weakly_canonical(home, error).string() : "";
  return folder == "/" || folder == "/home" || folder == "/root" || folder == "/tmp" ||
         folder == "/var" || folder == "/etc" || folder == own || own.starts_with(folder + "/");
}

std::string program_root(const std::string& program) {
  const std::string found = find_program(program);
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(found, error);
  if (found.empty() || error) return "";
  return folder_above(real);
}

std::vector<std::string> program_roots(const std::string& program) {
  std::vector<std::string> roots = {program_root(program)};
  const std::string found = find_program(program);
  if (!found.empty()) roots.push_back(folder_above(absolute(found)));
  return roots;
}

std::vector<std::string> compiler_variables() {
  return {"PATH",
          "LD_LIBRARY_PATH",
          "LIBRARY_PATH",
          "CPATH",
          "C_INCLUDE_PATH",
          "CPLUS_INCLUDE_PATH",
          "COMPILER_PATH",
          "GCC_EXEC_PREFIX",
          "CUDA_HOME",
          "CUDA_PATH",
          "NVCC_CCBIN",
          "NVCC_PREPEND_FLAGS",
          "NVCC_APPEND_FLAGS",
          "NIX_CFLAGS_COMPILE",
          "NIX_LDFLAGS"};
}

}  // namespace kernelpro
