// SPDX-License-Identifier: Apache-2.0
// How many CUDA contexts per second a machine creates and destroys, on one GPU and on several at
// once. Each candidate is evaluated in a separate process, so this rate limits the speedup from
// additional GPUs.
//   bench_contexts [SECONDS [NAME=VALUE...]]
// For each row, parallel lanes on each GPU create one context after another for SECONDS (default
// 3). Each GPU also has an idle context, as during a run. "One connection" means
// CUDA_DEVICE_MAX_CONNECTIONS=1; "one GPU in sight" also blocks the device files of all other GPUs,
// as for workers of plans without parallel kernels. With NAME=VALUE, runs only processes with these
// in their environment, and with these and one GPU in sight.
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/process/hidden_files.h"
#include "machine/driver/cuda_driver.h"
#include "machine/gpu_watch.h"

#if KERNELPRO_HAVE_CUDA

#include <dlfcn.h>

namespace kernelpro {
namespace {

// Milliseconds for one context.
struct Took {
  double init = 0, context = 0, end = 0;
};

using Settings = std::vector<std::string>;  // environment, "NAME=VALUE"
using Create = CUresult (*)(CUcontext*, unsigned, CUdevice);
using Destroy = CUresult (*)(CUcontext);

// Child: creates a context, reports it, and exits at the end of its input. `inside`: creates one
// context after another in the process until then.
int child(const std::string& mode, const std::vector<std::string>& hidden) {
  if (!hide_files(hidden)) return 1;
  const double begin = real_clock().now_s();
  const auto driver = cuda_driver();
  if (!driver || (*driver)->Init(0) != CUDA_SUCCESS) return 1;
  const double initialized = real_clock().now_s();
  if (mode == "inside") {
    void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
    const auto create = reinterpret_cast<Create>(::dlsym(library, "cuCtxCreate_v2"));
    const auto destroy = reinterpret_cast<Destroy>(::dlsym(library, "cuCtxDestroy_v2"));
    if (create == nullptr || destroy == nullptr) return 1;
    pollfd input{0, POLLIN, 0};
    while (::poll(&input, 1, 0) == 0) {
      const double from = real_clock().now_s();
      CUcontext context = nullptr;
      if (create(&context, 0, 0) != CUDA_SUCCESS) return 1;
      const double made = real_clock().now_s();
      if (destroy(context) != CUDA_SUCCESS) return 1;
      std::printf("%.3f %.3f %.3f\n", 0.0, 1e3 * (made - from),
                  1e3 * (real_clock().now_s() - made));
      std::fflush(stdout);
    }
    return 0;
  }
  CUcontext context = nullptr;
  if ((*driver)->DevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) return 1;
  std::printf("%.3f %.3f 0\n", 1e3 * (initialized - begin),
              1e3 * (real_clock().now_s() - initialized));
  std::fflush(stdout);
  char byte = 0;
  while (::read(0, &byte, 1) > 0) {
  }
  if (mode == "release") (*driver)->DevicePrimaryCtxRelease(0);
  ::_exit(0);
}

class Process {
 public:
  Process(const std::string& mode, int gpu, const Settings& settings) {
    int in[2], out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const std::vector<GpuName> gpus = list_gpus().value_or(std::vector<GpuName>());
    const std::string name = static_cast<std::size_t>(gpu) < gpus.size()
                                 ? gpus[static_cast<std::size_t>(gpu)].uuid
                                 : std::to_string(gpu);
    const std::string visible = "CUDA_VISIBLE_DEVICES=" + name;
    std::vector<char*> env;
    for (char** each = environ; *each != nullptr; ++each) env.push_back(*each);
    env.insert(env.begin(), const_cast<char*>(visible.c_str()));
    for (const std::string& each : settings) {
      env.insert(env.begin(), const_cast<char*>(each.c_str()));
    }
    env.push_back(nullptr);
    std::vector<std::string> hidden;
    if (mode == "alone") hidden = device_files_of_others(name);
    std::vector<const char*> argv = {"bench_contexts", "--child", mode.c_str()};
    for (const std::string& file : hidden) argv.push_back(file.c_str());
    argv.push_back(nullptr);
    if (::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, const_cast<char**>(argv.data()),
                      env.data()) != 0) {
      std::abort();
    }
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = ::fdopen(out[0], "r");
  }
  ~Process() {
    end();
    std::fclose(output_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // Reads the next line; false when the process has ended.
  bool took(Took* took) {
    return std::fscanf(output_, "%lf %lf %lf", &took->init, &took->context, &took->end) == 3;
  }
  void end() {
    if (pid_ == 0) return;
    ::close(input_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int input_ = -1;
  FILE* output_ = nullptr;
};

// Runs one lane until `until`.
std::vector<Took> lane(const std::string& mode, int gpu, const Settings& settings, double until) {
  std::vector<Took> all;
  if (mode == "inside") {
    Process process(mode, gpu, settings);
    Took took;
    while (real_clock().now_s() < until && process.took(&took)) all.push_back(took);
    return all;
  }
  while (real_clock().now_s() < until) {
    Process process(mode, gpu, settings);
    Took took;
    if (!process.took(&took)) break;
    const double from = real_clock().now_s();
    process.end();
    took.end = 1e3 * (real_clock().now_s() - from);
    all.push_back(took);
  }
  return all;
}

void row(const char* what, const std::string& mode, int gpus, int lanes, const Settings& settings,
         double seconds) {
  std::vector<Took> all;
  std::mutex mutex;
  std::vector<std::thread> threads;
  const double from = real_clock().now_s();
  for (int gpu = 0; gpu < gpus; ++gpu) {
    for (int i = 0; i < lanes; ++i) {
      threads.emplace_back([&, gpu] {
        const std::vector<Took> mine = lane(mode, gpu, settings, from + seconds);
        const std::lock_guard<std::mutex> lock(mutex);
        all.insert(all.end(), mine.begin(), mine.end());
      });
    }
  }
  for (std::thread& thread : threads) thread.join();
  const double passed = real_clock().now_s() - from;
  Took mean;
  const double count = std::max<double>(1, static_cast<double>(all.size()));
  for (const Took& each : all) {
    mean.init += each.init / count;
    mean.context += each.context / count;
    mean.end += each.end / count;
  }
  std::printf("| %s | %d | %d | %.1f | %.1f | %.1f | %.1f |\n", what, gpus, lanes,
              static_cast<double>(all.size()) / passed, mean.init, mean.context, mean.end);
  std::fflush(stdout);
}

int bench(double seconds, const Settings& given) {
  const auto driver = cuda_driver();
  int there = 0;
  if (!driver || (*driver)->Init(0) != CUDA_SUCCESS ||
      (*driver)->DeviceGetCount(&there) != CUDA_SUCCESS || there == 0) {
    std::fprintf(stderr, "bench_contexts: there is no GPU; `kernelpro doctor` tells more\n");
    return 3;
  }
  std::vector<std::unique_ptr<Process>> idle;
  for (int gpu = 0; gpu < there; ++gpu) {
    Took took;
    idle.push_back(std::make_unique<Process>("process", gpu, Settings()));
    if (!idle.back()->took(&took)) return 3;
  }
  std::printf("| contexts | GPUs | lanes a GPU | a second | init ms | context ms | end ms |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  for (int gpus = 1; gpus <= there; gpus *= 2) {
    for (const int lanes : {1, 3}) {
      const Settings one = {"CUDA_DEVICE_MAX_CONNECTIONS=1"};
      if (!given.empty()) {
        row("a process each, as given", "process", gpus, lanes, given, seconds);
        row("a process each, as given, one GPU in sight", "alone", gpus, lanes, given, seconds);
        continue;
      }
      row("a process each", "process", gpus, lanes, {}, seconds);
      row("a process each, released first", "release", gpus, lanes, {}, seconds);
      row("a process each, one connection", "process", gpus, lanes, one, seconds);
      row("a process each, one GPU in sight", "alone", gpus, lanes, one, seconds);
      row("in one process", "inside", gpus, lanes, {}, seconds);
    }
  }
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  if (argc >= 3 && std::strcmp(argv[1], "--child") == 0) {
    return kernelpro::child(argv[2], {argv + 3, argv + argc});
  }
  return kernelpro::bench(argc > 1 ? std::atof(argv[1]) : 3,
                          {argv + std::min(argc, 2), argv + argc});
}

#else

int main() {
  std::fprintf(stderr, "bench_contexts: this build is without CUDA; install its headers\n");
  return 3;
}

#endif
