// SPDX-License-Identifier: Apache-2.0
// Compile time of a candidate for the task's largest case, without a GPU and with an empty cache:
// for the first time in a process, and later with a slightly changed source.
//   bench_compile TASK KERNEL.cu [INCLUDE_DIR...]
#include <cstdio>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "build/compiler.h"
#include "measure/station/target.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

int compile_times(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: bench_compile TASK KERNEL.cu [INCLUDE_DIR...]\n");
    return 2;
  }
  OpenSettings open;
  open.target = TargetKind::kCuda;
  const auto opened = open_task(argv[1], open);
  const auto source = read_file(argv[2]);
  if (!opened || !source) {
    std::fprintf(stderr, "%s\n", (opened ? source.error() : opened.error()).text().c_str());
    return 1;
  }
  const TempDir cache;
  CompileSettings settings;
  settings.cache_dir = cache.path();
  settings.cuda_arch = "sm_90a";
  settings.include_dirs.assign(argv + 3, argv + argc);
  const auto compiler = make_cuda_compiler(settings);
  if (!compiler) {
    std::fprintf(stderr, "%s\n", compiler.error().text().c_str());
    return 1;
  }
  const std::vector<const Case*> cases = cases_for(opened->task, TargetKind::kCuda);
  for (int i = 0; i < 4; ++i) {
    Candidate candidate;
    candidate.language = Language::kCuda;
    candidate.source = *source + "\n// " + std::to_string(i) + "\n";
    const double from = real_clock().now_s();
    const auto result = (*compiler)->compile(opened->task, *cases.back(), candidate);
    const double seconds = real_clock().now_s() - from;
    if (!result) {
      std::fprintf(stderr, "%s\n", result.error().text().c_str());
      return 1;
    }
    if (const auto* error = std::get_if<CompileError>(&*result)) {
      std::fprintf(stderr, "%s\n", error->log.c_str());
      return 1;
    }
    std::printf("%-8s %6.2f s\n", i == 0 ? "first" : "later", seconds);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) { return kernelpro::compile_times(argc, argv); }
