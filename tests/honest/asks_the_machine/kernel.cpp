// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Asks what a kernel may ask: processors, caches, page size, time, noise; and prints from a thread.
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <thread>

#include "task.h"

extern "C" void launch(const Args& args) {
  static const unsigned threads = [] {
    std::ifstream file("/proc/cpuinfo");
    std::string line;
    std::getline(file, line);
    std::random_device noise;
    std::thread([&] { std::printf("%s %u\n", line.c_str(), noise() % 2); }).join();
    const long caches = sysconf(_SC_LEVEL2_CACHE_SIZE) + sysconf(_SC_PAGESIZE) + sched_getcpu();
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    std::fprintf(stderr, "%ld %d %d\n", caches, omp_get_num_procs(), now != 0);
    return std::max(1u, std::thread::hardware_concurrency());
  }();
  const int part = static_cast<int>(N / threads) + 1;
#pragma omp parallel for
  for (unsigned t = 0; t < threads; ++t) {
    const int end = std::min<int>(N, static_cast<int>(t + 1) * part);
    for (int i = static_cast<int>(t) * part; i < end; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  }
}
