// SPDX-License-Identifier: Apache-2.0
// kernelpro-traced HOW [FILE...]: a program to trace. It loads the tracer as the CUDA driver would,
// lets the fake CUPTI play some work, and ends in the way given by HOW.
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "profile/inject/trace_format.h"

namespace {

using Play = void (*)(int, unsigned);
using Drop = void (*)(unsigned);
using Load = void (*)(const void*, unsigned long);
using Simple = void (*)();

void* library(const char* variable) {
  const char* path = std::getenv(variable);
  void* handle = path != nullptr ? ::dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (handle == nullptr) std::fprintf(stderr, "%s: %s\n", variable, ::dlerror());
  return handle;
}

// Imitates cuInit.
bool initialise() {
  void* tracer = library("CUDA_INJECTION64_PATH");
  if (tracer == nullptr) return false;
  const auto entry = reinterpret_cast<int (*)()>(::dlsym(tracer, "InitializeInjection"));
  return entry != nullptr && entry() == 1;
}

// Loads the machine code in these files, as a program does.
void load_modules(Load load, int count, char** files) {
  for (int i = 0; i < count; ++i) {
    std::ifstream file(files[i], std::ios::binary);
    std::stringstream bytes;
    bytes << file.rdbuf();
    const std::string image = bytes.str();
    load(image.data(), image.size());
  }
}

int forks(Play play) {
  play(3, 1);
  const pid_t child = ::fork();
  if (child == 0) std::exit(0);  // runs the exit handlers, as a careless child does
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "exit";
  if (!initialise()) return 1;
  void* fake = library(kernelpro::trace_format::kCuptiVariable);
  if (fake == nullptr) return how == "without" ? 0 : 2;
  const auto play = reinterpret_cast<Play>(::dlsym(fake, "fake_play"));
  if (how == "refused") reinterpret_cast<Simple>(::dlsym(fake, "fake_refuse_sampling"))();
  reinterpret_cast<Simple>(::dlsym(fake, "fake_context"))();
  load_modules(reinterpret_cast<Load>(::dlsym(fake, "fake_load")), argc - 2, argv + 2);
  if (how == "exit" || how == "refused") play(5, 1);
  if (how == "many") play(20000, 1);
  if (how == "fork") return forks(play);
  if (how == "drops") {
    reinterpret_cast<Drop>(::dlsym(fake, "fake_drop"))(17);
    play(2, 1);
  }
  if (how == "threads") {
    std::vector<std::thread> threads;
    for (unsigned i = 1; i <= 4; ++i) {
      threads.emplace_back([=] {
        for (int k = 0; k < 50; ++k) play(2, i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  if (how == "killed" || how == "hangs") {
    play(4, 1);
    ::usleep(400'000);  // time for the tracer to write
    if (how == "killed") ::raise(SIGKILL);
    ::pause();
  }
  return how == "fails" ? 3 : 0;
}
