// SPDX-License-Identifier: Apache-2.0
// Role cuda-compile: NVRTC in a separate process, so that a source that hangs or crashes the
// compiler costs only this process. Serves any number of compilations. Its working directory must
// be writable and holds precompiled headers.
#if KERNELPRO_HAVE_CUDA

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/hash.h"
#include "measure/worker/cuda/message.h"
#include "measure/worker/cuda/nvrtc.h"
#include "measure/worker/roles.h"

namespace kernelpro {

namespace {

// "12.10" is after "12.8".
bool at_least(const std::string& version, int major, int minor) {
  const std::size_t dot = version.find('.');
  const int found = std::atoi(version.c_str());
  const int after = dot == std::string::npos ? 0 : std::atoi(version.c_str() + dot + 1);
  return found > major || (found == major && after >= minor);
}

std::vector<std::string> options_for(const std::string& arch, const std::string& version) {
  std::vector<std::string> options = {"-arch=" + arch, "-std=c++20", "-lineinfo", "-default-device",
                                      "--ptxas-options=-v"};
  // From 13.0 on NVRTC has its own cache, which returns a cubin without ptxas's report.
  if (at_least(version, 13, 0)) options.emplace_back("-no-cache");
  if (at_least(version, 12, 8)) {
    options.insert(options.end(), {"-pch", "-pch-messages=false"});
  }
  const std::string include = cuda_include_dir();
  if (!include.empty()) {
    options.push_back("-I" + include);
    options.push_back("-I" + include + "/cccl");
  }
  return options;
}

Result<Fd> in_memory(const std::string& bytes) {
  Fd file(::memfd_create("cubin", MFD_CLOEXEC));
  std::size_t done = 0;
  while (file.valid() && done < bytes.size()) {
    const ssize_t n = ::write(file.get(), bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  if (file.valid() && done == bytes.size()) return file;
  return fail(ErrorKind::kEnvironment,
              std::string("no memory for the compiler's result: ") + std::strerror(errno),
              "free some memory");
}

// A precompiled header is matched by the names of its includes, not by the texts that we supply
// under those names: each has its own folder.
std::string pch_option(const std::string& text) {
  const std::string folder = hash_hex(text);
  ::mkdir(folder.c_str(), 0700);
  return "-pch-dir=" + folder;
}

// ptxas names shared memory SMEM: in a module with a variable of that name (with -default-device
// constants are variables) it takes the variable's address for that of shared memory, and the
// kernel writes anywhere (CUDA 13.0). So such a variable gets another name, unless a directive
// speaks of it.
constexpr const char* kReserved = "SMEM";
constexpr const char* kRenamed = "-DSMEM=kp_SMEM";

bool has_directive_about(const std::string& source, std::string_view name) {
  for (std::size_t at = source.find(name); at != std::string::npos;
       at = source.find(name, at + 1)) {
    const std::size_t line = source.rfind('\n', at) + 1;
    const std::size_t first = source.find_first_not_of(" \t", line);
    if (source[first] == '#') return true;
  }
  return false;
}

void serve_compile(WorkerChannel* channel, const WorkerCommand& command,
                   std::vector<std::string> options) {
  const bool precompiles = std::find(options.begin(), options.end(), "-pch") != options.end();
  for (const Json& folder : JsonReader(command.json).array("include_dirs")) {
    if (folder.is_string()) options.push_back("-I" + folder.get<std::string>());
  }
  const std::string header = command.text("header"), library = command.text("library");
  const std::string source = command.text("source");
  if (!has_directive_about(source, kReserved)) options.emplace_back(kRenamed);
  if (precompiles) options.push_back(pch_option(library.empty() ? header : library));
  std::vector<NvrtcHeader> headers = {{"task.h", header}};
  if (!library.empty()) headers.push_back({"kernelpro_library.h", library});
  Result<NvrtcOutput> output = nvrtc_compile(source, command.text("file"), headers, options);
  if (!output) return channel->answer_error(output.error());
  const Result<Fd> cubin = in_memory(output->cubin);
  if (!cubin) return channel->answer_error(cubin.error());
  channel->answer({{"compiled", output->ok}, {"log", output->log}}, {cubin->get()});
}

// NVRTC's first compilation in a process takes several times as long: do it while nothing waits.
void warm_up(const std::vector<std::string>& options) {
  (void)nvrtc_compile("__global__ void warm(float* x) { x[threadIdx.x] *= 2; }\n", "warm.cu", {},
                      options);
}

}  // namespace

int cuda_compile(int, char**) {
  WorkerChannel channel;
  const Result<std::string> version = nvrtc_version();
  while (const std::optional<WorkerCommand> command = channel.next()) {
    if (!version) {
      channel.answer_error(version.error());
      continue;
    }
    const std::vector<std::string> options = options_for(command->text("arch"), *version);
    if (command->verb() == "version") {
      channel.answer({{"version", *version}});
      warm_up(options);
    } else {
      serve_compile(&channel, *command, options);
    }
  }
  return 0;
}

}  // namespace kernelpro

#endif
