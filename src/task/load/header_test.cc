// SPDX-License-Identifier: Apache-2.0
#include "task/load/header.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/tags.h"
#include "task/load/loader.h"

namespace kernelpro {
namespace {

constexpr std::string_view kEveryType = R"([task]
name = "types"
workspace = 256
[[tensor]]
name = "h"
role = "input"
dtype = "fp16"
shape = ["N"]
[[tensor]]
name = "b"
role = "parameter"
dtype = "bf16"
shape = ["N"]
[[tensor]]
name = "i"
role = "input"
dtype = "int64"
shape = []
init = { kind = "integers", low = 0, high = 9 }
[[tensor]]
name = "m"
role = "input"
dtype = "bool"
shape = ["N"]
[[tensor]]
name = "y"
role = "output"
dtype = "bf16"
shape = ["N"]
[[tensor]]
name = "count"
role = "output"
dtype = "int32"
shape = [1]
[[case]]
name = "only"
dims = { N = 5, HUGE = 5000000000 }
timed = true
)";

Task every_type() {
  auto task = parse_task(kEveryType, "task.toml");
  EXPECT_TRUE(task) << (task ? "" : task.error().text());
  return task.value_or(Task{});
}

// What an export copies is what candidates are compiled with.
TEST(Header, ItsPartsAreThoseThatProgramsTake) {
  const Task task = every_type();
  const Case& c = task.cases[0];
  for (const TargetKind target : {TargetKind::kCpu, TargetKind::kCuda}) {
    const std::string whole = task_header(task, c, target);
    const std::string declarations = task_declarations(task, c, target);
    EXPECT_TRUE(contains(whole, declarations)) << declarations;
    for (const char* part :
         {"constexpr int N = 5;", "constexpr long long HUGE = 5000000000ll;", "struct Args {",
          "int* count;  // [1] = [1]", "WORKSPACE_BYTES = 256"}) {
      EXPECT_TRUE(contains(declarations, part)) << part << "\n" << declarations;
    }
    EXPECT_FALSE(contains(declarations, "ReferenceArgs"));
  }
  const std::string names = plan_argument_names(task);
  EXPECT_TRUE(task_header(task, c, TargetKind::kCuda).ends_with(names)) << names;
  EXPECT_TRUE(names.starts_with("namespace arg {\n")) << names;
}

// Output of a command in a folder that holds task.h and `source`.
Exit compile(const std::string& header, const std::string& name, const std::string& source,
             std::vector<std::string> argv) {
  const TempDir dir;
  EXPECT_TRUE(write_file(join(dir.path(), "task.h"), header));
  EXPECT_TRUE(write_file(join(dir.path(), name), source));
  Command command;
  command.argv = std::move(argv);
  command.cwd = dir.path();
  const auto exit = run(command);
  EXPECT_TRUE(exit) << (exit ? "" : exit.error().text());
  return exit.value_or(Exit{});
}

std::string host_compiler() {
  const char* cxx = std::getenv("CXX");
  return cxx != nullptr && *cxx != 0 ? cxx : "c++";
}

std::string nvcc() {
  const char* home = std::getenv("CUDA_HOME");
  for (const std::string& path : {std::string(home == nullptr ? "" : home) + "/bin/nvcc",
                                  std::string("/usr/local/cuda/bin/nvcc")}) {
    if (exists(path)) return path;
  }
  return find_program("nvcc");
}

TEST(TaskHeader, DeclaresConstantsAndArgs) {
  const Task task = every_type();
  const std::string text = task_header(task, task.cases[0], TargetKind::kCpu);
  for (const char* part : {"constexpr int N = 5;\n", "constexpr long long HUGE = 5000000000ll;\n",
                           "constexpr int WORKSPACE_BYTES = 256;\n", "  const kp::half* h;",
                           "  const kp::bfloat16* b;", "  const long long* i;", "  const bool* m;",
                           "  kp::bfloat16* y;", "  double* y;\n", "  int* count;\n",
                           "  void* workspace;", "extern \"C\" void launch(const Args& args);"}) {
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(contains(text, "KP_LAUNCH"));
}

TEST(TaskHeader, TypesRoundToNearestEvenOnTheHost) {
  const Task task = every_type();
  const std::string source = R"(#include "task.h"
#include <cmath>
#include <limits>
static unsigned bits(float x) { return kp::bfloat16(x).bits; }
int main() {
  if (bits(1.0f) != 0x3f80 || bits(-2.0f) != 0xc000) return 1;
  if (bits(1.00390625f) != 0x3f80) return 2;  // half way: to even
  if (bits(1.01171875f) != 0x3f82) return 3;  // half way: to even
  if (bits(3.4e38f) != 0x7f80) return 4;      // beyond the largest: infinity
  if (!std::isnan(float(kp::bfloat16(std::numeric_limits<float>::quiet_NaN())))) return 5;
  if (float(kp::bfloat16(0.15625f)) != 0.15625f) return 6;
  if (float(kp::half(1.0f / 3)) != 0.333251953125f || float(kp::half(65520.0f)) < 65520.0f) return 7;
  if (sizeof(kp::half) != 2 || sizeof(kp::bfloat16) != 2) return 8;
  Args args{};
  return args.workspace == nullptr && HUGE == 5000000000 && N == 5 ? 0 : 9;
}
)";
  const Exit exit =
      compile(task_header(task, task.cases[0], TargetKind::kCpu), "main.cpp", source,
              {"/bin/sh", "-c",
               host_compiler() + " -std=c++20 -O2 -Wall -Wextra -Werror -Wshadow -Wconversion "
                                 "main.cpp -o main && ./main"});
  EXPECT_TRUE(exit.ok()) << exit.code << "\n" << exit.output;
}

TEST(TaskHeader, CompilesForCudaWithoutWarnings) {
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc on this machine";
  const Task task = every_type();
  const std::string source = R"(#include "task.h"
__global__ void kernel(const __half* h, const __nv_bfloat16* b, int* count, void* scratch, int n) {
  if (threadIdx.x < N) count[0] = n + int(__half2float(h[1])) + int(__bfloat162float(b[1]));
  *static_cast<int*>(scratch) = N;
}
KP_MEMSET(arg::count, 0, 4)
KP_LAUNCH(kernel, kp::dim(1), kp::dim(32), 0, arg::h + 1, arg::b, arg::count, arg::workspace, 7)
)";
  const std::string header = task_header(task, task.cases[0], TargetKind::kCuda);
  const std::vector<std::string> common = {
      nvcc(),    "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a",
      "-cubin",  "-Werror",    "all-warnings",
      "main.cu", "-o",         "main.cubin"};
  const Exit exit = compile(header, "main.cu", source, common);
  EXPECT_TRUE(exit.ok()) << exit.output;
}

TEST(Examples, StartingKernelsCompileForTheHostAtDefaultsAndTuned) {
  for (const char* name : {"softmax", "layernorm", "matmul"}) {
    const auto task = load_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/" + name);
    ASSERT_TRUE(task) << task.error().text();
    const auto knobs = parse_knobs(task->kernel_cpp);
    ASSERT_TRUE(knobs) << knobs.error().text();
    KnobValues last;
    for (const Knob& knob : *knobs) last[knob.name] = knob.values.back();
    for (const KnobValues& values : {default_values(*knobs), last}) {
      const Exit exit = compile(task_header(*task, task->cases[0], TargetKind::kCpu), "kernel.cpp",
                                apply_knobs(task->kernel_cpp, values),
                                {host_compiler(), "-std=c++20", "-fsyntax-only", "-Wno-psabi",
                                 "-Wall", "-Wextra", "-Werror", "-fopenmp", "kernel.cpp"});
      EXPECT_TRUE(exit.ok()) << name << " " << knobs_to_text(values) << "\n" << exit.output;
    }
  }
}

TEST(Examples, StartingKernelsCompileForCuda) {
  if (nvcc().empty()) GTEST_SKIP() << "no nvcc on this machine";
  for (const char* name : {"softmax", "layernorm", "matmul"}) {
    const auto task = load_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/" + name);
    ASSERT_TRUE(task) << task.error().text();
    const auto knobs = parse_knobs(task->kernel_cu);
    ASSERT_TRUE(knobs) << knobs.error().text();
    const Exit exit = compile(task_header(*task, task->cases[0], TargetKind::kCuda), "kernel.cu",
                              apply_knobs(task->kernel_cu, default_values(*knobs)),
                              {nvcc(), "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a",
                               "-cubin", "-Werror", "all-warnings", "kernel.cu", "-o", "k.cubin"});
    EXPECT_TRUE(exit.ok()) << name << "\n" << exit.output;
  }
}

TEST(Examples, KnobsUseListedTags) {
  for (const char* name : {"softmax", "layernorm", "matmul"}) {
    const auto task = load_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/" + name);
    ASSERT_TRUE(task) << task.error().text();
    for (const std::string& source : {task->kernel_cpp, task->kernel_cu}) {
      const auto knobs = parse_knobs(source);
      ASSERT_TRUE(knobs) << knobs.error().text();
      EXPECT_GE(knobs->size(), 4u);
      for (const Knob& knob : *knobs) {
        for (const std::string& tag : knob.tags) EXPECT_NE(find_tag(tag), nullptr) << tag;
      }
    }
  }
}

}  // namespace
}  // namespace kernelpro
