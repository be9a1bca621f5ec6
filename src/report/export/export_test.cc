// SPDX-License-Identifier: Apache-2.0
// Exports against the real compilers: kernel.cu or kernel.cpp must stand alone, its object must
// hold the functions that kernel.h declares, and nothing else that another export would clash with.
#include "report/export/export.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "core/candidate/knobs.h"
#include "core/candidate/language.h"
#include "report/export/export_text.h"
#include "task/load/loader.h"

namespace kernelpro {
namespace {

std::string nvcc() {
  const std::string found = find_program("nvcc");
  return found.empty() ? find_program("/usr/local/cuda/bin/nvcc") : found;
}

Task example(const std::string& name) {
  return *load_task(join(join(KERNELPRO_SOURCE_DIR, "examples"), name));
}

ExportRequest request_for(const Task& task, const std::string& source,
                          Language language = Language::kCuda) {
  ExportRequest request;
  request.task = &task;
  request.c = *export_case(task, language_row(language).target, "");
  request.candidate.language = language;
  request.candidate.source = source;
  request.candidate.knobs = default_values(*parse_knobs(source, reserved_names(task)));
  request.device = "NVIDIA H200";
  request.measured = "512 us (510 us to 514 us, graph replay, L2 cold)";
  return request;
}

std::string text_of(const std::vector<ExportedFile>& files, const std::string& name) {
  for (const ExportedFile& file : files) {
    if (file.name == name) return file.text;
  }
  return "";
}

Exit run_in(const std::string& folder, std::vector<std::string> argv) {
  Command command;
  command.argv = std::move(argv);
  command.cwd = folder;
  command.limits.wall_seconds = 900;
  return *run(command);
}

// Compiles a program that uses the header and links the kernel, with the same defined and undefined
// symbols as a user's program.
void expect_builds(const std::vector<ExportedFile>& files, const std::string& use) {
  if (nvcc().empty()) GTEST_SKIP() << "nvcc is not installed";
  const TempDir folder;
  for (const ExportedFile& file : files) {
    ASSERT_TRUE(write_file(join(folder.path(), file.name), file.text));
  }
  ASSERT_TRUE(write_file(join(folder.path(), "use.cc"), use));
  const Exit exit = run_in(
      folder.path(), {nvcc(), "-std=c++20", "-O1", "--expt-relaxed-constexpr",
                      "-gencode=arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC",
                      "-Xlinker", "--no-undefined", "kernel.cu", "use.cc", "-o", "use.so"});
  ASSERT_TRUE(exit.ok()) << exit.output << "\n" << text_of(files, "kernel.cu");
  const Exit symbols = run_in(folder.path(), {"nm", "-D", "-C", "--defined-only", "use.so"});
  EXPECT_TRUE(contains(symbols.output, "::workspace_bytes()")) << symbols.output;
  EXPECT_TRUE(contains(symbols.output, "::run(")) << symbols.output;
  for (const std::string& line : lines(symbols.output)) {
    EXPECT_NE(words(line).back(), "launch") << "two exports would clash";
  }
}

TEST(Export, PlanFormStandsAlone) {
  const Task task = example("softmax");
  ExportRequest request = request_for(task, task.kernel_cu);
  request.candidate.knobs["VEC"] = "4";
  request.candidate.knobs["THREADS"] = "1024";
  const auto files = *export_kernel(request);
  const std::string kernel = text_of(files, "kernel.cu");
  EXPECT_TRUE(contains(kernel, "#define THREADS 1024\n"));
  EXPECT_FALSE(contains(kernel, "@knob"));
  EXPECT_FALSE(contains(kernel, "task.h"));
  EXPECT_TRUE(contains(kernel, "512 us"));
  EXPECT_EQ(text_of(files, "model_new.py"), "") << "a native task has no module";
  expect_builds(files,
                "#include \"kernel.h\"\n"
                "int use(const float* x, float* y) {\n"
                "  return kernelpro_softmax::run(x, y, nullptr, nullptr) +\n"
                "         (int)kernelpro_softmax::workspace_bytes();\n}\n");
}

constexpr const char* kHostForm = R"(#include <cuda_fp16.h>
#include "task.h"
// @knob TILE 128 256
template <int T>
__global__ void copy(const float* x, float* y, long long n) {
  const long long i = 1ll * blockIdx.x * T + threadIdx.x;
  if (i < n) y[i] = __half2float(__float2half(x[i])) * (1 + 0 * T);
}
extern "C" void launch(const Args& args, cudaStream_t stream) {
  const long long n = 1ll * ROWS * COLS;
  copy<TILE><<<(n + TILE - 1) / TILE, TILE, 0, stream>>>(args.x, args.y, n);
}
)";

TEST(Export, HostFormStandsAlone) {
  const Task task = example("softmax");
  const auto files = *export_kernel(request_for(task, kHostForm));
  EXPECT_TRUE(contains(text_of(files, "kernel.cu"), "#define TILE 128\n"));
  expect_builds(files,
                "#include \"kernel.h\"\n"
                "int use(const float* x, float* y, cudaStream_t s) {\n"
                "  return kernelpro_softmax::run(x, y, nullptr, s);\n}\n");
}

TEST(Export, HeaderTellsWhatAUserMustKnow) {
  const Task task = example("softmax");
  const auto files = *export_kernel(request_for(task, kHostForm));
  const std::string header = text_of(files, "kernel.h");
  for (const char* part : {"x: input, fp32 [32768][8192]", "y: output, fp32 [32768][8192]",
                           "ROWS = 32768", "NVIDIA H200", "512 us", "TILE=128", "std::size_t"}) {
    EXPECT_TRUE(contains(header, part)) << part << "\n" << header;
  }
}

TEST(Export, CaseThatDoesNotExistIsNamed) {
  const Task task = example("softmax");
  const auto missing = export_case(task, TargetKind::kCuda, "huge");
  ASSERT_FALSE(missing);
  EXPECT_TRUE(contains(missing.error().next, "gpu")) << missing.error().next;
  EXPECT_FALSE(contains(missing.error().next, "cpu")) << "not a case of the cuda target";
}

TEST(Export, TheLargestTimedCaseIsCompiledInWhereNoneIsNamed) {
  Task task = example("softmax");
  Case small = task.cases.back();
  small.name = "small_gpu";
  small.dims = {{"ROWS", 8}, {"COLS", 16}};
  task.cases.push_back(small);
  EXPECT_EQ((*export_case(task, TargetKind::kCuda, ""))->name, "gpu");
  EXPECT_EQ((*export_case(task, TargetKind::kCuda, "small_gpu"))->name, "small_gpu");
}

TEST(Export, ModulesGetTheSizesOfTheCase) {
  const std::string module =
      "import torch\nN = 4096 * 2  # rows\nA, B = 3, 4\ndef f():\n    N = 5\n    return N == A\n";
  const std::string text = with_sizes(module, {{"N", 16}, {"B", 7}});
  EXPECT_TRUE(contains(text, "N = 16  # rows\n")) << text;
  EXPECT_TRUE(contains(text, "    N = 5\n    return N == A")) << text;
  EXPECT_TRUE(text.ends_with("\nB = 7")) << text;
}

// A program links two exports, calls one, and checks what it computed.
TEST(Export, CpuKernelsStandAlone) {
  const Task axpy = *load_task(KERNELPRO_SOURCE_DIR "/tests/tasks/axpy");
  const Task softmax = example("softmax");
  const TempDir folder;
  std::vector<std::string> objects;
  for (const Task* task : {&axpy, &softmax}) {
    const ExportRequest request = request_for(*task, task->kernel_cpp, Language::kCpp);
    const std::string place = join(folder.path(), task->name);
    ASSERT_TRUE(make_dirs(place));
    const std::vector<ExportedFile> files = *export_kernel(request);
    for (const ExportedFile& file : files) {
      EXPECT_FALSE(contains(file.text, "cuda")) << file.text;
      ASSERT_TRUE(write_file(join(place, file.name), file.text));
    }
    std::vector<std::string> command = {"/usr/bin/env", "c++"};
    for (const std::string& each : export_build(request)) command.push_back(each);
    const Exit exit = run_in(place, command);
    ASSERT_TRUE(exit.ok()) << exit.output;
    objects.push_back(join(place, "kernel.o"));
  }
  ASSERT_TRUE(write_file(join(folder.path(), "use.cc"),
                         "#include \"axpy/kernel.h\"\n"
                         "#include \"softmax/kernel.h\"\n"
                         "#include <cstdlib>\n"
                         "alignas(64) static float x[1 << 20], z[1 << 20], y[1 << 20];\n"
                         "int main() {\n"
                         "  x[5] = 3, z[5] = 4;\n"
                         "  kernelpro_axpy::run(x, z, y, nullptr);\n"
                         "  (void)&kernelpro_softmax::run;\n"
                         "  return y[5] == 10 && y[6] == 0 &&\n"
                         "         kernelpro_softmax::workspace_bytes() < 1 << 30 ? 0 : 1;\n}\n"));
  const Exit linked = run_in(folder.path(), {"/usr/bin/env", "c++", "-fopenmp", "use.cc",
                                             objects[0], objects[1], "-o", "use"});
  ASSERT_TRUE(linked.ok()) << linked.output;
  const Exit used = run_in(folder.path(), {join(folder.path(), "use")});
  EXPECT_TRUE(used.ok()) << used.describe({}) << used.output;
}

TEST(Export, PythonNeedsNone) {
  const Task task = example("softmax");
  ExportRequest request = request_for(task, kHostForm);
  request.candidate.language = Language::kPython;
  EXPECT_FALSE(export_kernel(request));
}

TEST(Export, KnobsGoBehindTheIncludesWhereTheirCommentComesTooLate) {
  const std::string late = "#include \"task.h\"\nint a = TILE;\n// @knob TILE 1 2\nint b;\n";
  const std::string fixed = with_fixed_knobs(late, {{"TILE", "2"}});
  EXPECT_LT(fixed.find("#define TILE 2"), fixed.find("int a"));
  const std::string early = "// @knob TILE 1 2\n#include \"task.h\"\nint a = TILE;\n";
  const std::string moved = with_fixed_knobs(early, {{"TILE", "2"}});
  EXPECT_GT(moved.find("#define TILE 2"), moved.find("task.h")) << "no header may see it";
  const std::string guarded =
      "#include \"task.h\"\n#if 0\n// @knob TILE 1 2\n#endif\nint a = TILE;\n";
  const std::string freed = with_fixed_knobs(guarded, {{"TILE", "2"}});
  EXPECT_LT(freed.find("#define TILE 2"), freed.find("#if 0"));
}

TEST(Export, RequirementsOfKnobsBecomeRemarks) {
  const std::string source =
      "#include \"task.h\"\n// @knob TILE 4 8\n// @require TILE % 4 == 0\nint a = TILE;\n";
  EXPECT_EQ(with_fixed_knobs(source, {{"TILE", "8"}}),
            "#include \"task.h\"\n#define TILE 8\n// required: TILE % 4 == 0\nint a = TILE;\n");
}

// Python evaluates the literal to the text.
TEST(Export, PythonLiteralsHoldAnyText) {
  const std::string python = find_program("python3");
  if (python.empty()) GTEST_SKIP() << "python3 is not installed";
  const TempDir folder;
  int number = 0;
  for (const std::string& text :
       {std::string("plain\ntext\n"), std::string("it's '''quoted''' \"twice\"\n"),
        std::string("ends in a backslash\\"), std::string("ends in a quote'"), std::string(""),
        std::string("tab\there, bell\a, return\r\n"), std::string("\xc3\xa4\n")}) {
    const std::string path = join(folder.path(), "t" + std::to_string(number++) + ".py");
    ASSERT_TRUE(write_file(
        path, "import sys\nsys.stdout.buffer.write(" + python_literal(text) + ".encode())\n"));
    const Exit exit = run_in(folder.path(), {"sh", "-c", python + " " + path + " > out.bin"});
    ASSERT_TRUE(exit.ok()) << exit.output;
    EXPECT_EQ(*read_file(join(folder.path(), "out.bin")), text);
  }
}

Task relu_module_task() {
  Task task;
  task.name = "19_ReLU";
  task.tensors = {{"x", Role::kInput, DType::kFp32, {"4", "8"}, {}, 0},
                  {"scale_weight", Role::kParameter, DType::kFp32, {"8"}, {}, 0},
                  {"out", Role::kOutput, DType::kFp32, {"4", "8"}, {}, 0}};
  Case c;
  c.name = "full";
  c.timed = true;
  c.shapes = {{4, 8}, {8}, {4, 8}};
  task.cases = {c};
  task.module = Module{"19_ReLU.py",
                       "import torch\nimport torch.nn as nn\nclass Model(nn.Module):\n"
                       "    def __init__(self):\n        super().__init__()\n"
                       "        self.scale = nn.Linear(8, 1)\n"
                       "    def forward(self, x):\n        return x * self.scale.weight\n",
                       ""};
  return task;
}

// "" where there is none.
std::string python_with_torch() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (run_in("/", {"/usr/bin/env", python, "-c", "import torch"}).ok()) return python;
  }
  return "";
}

// The module file of a CPU kernel in real Python: built, called, and compared with the module.
TEST(Export, ModelNewOnTheCpuComputesWhatModelDoes) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "PyTorch is not installed";
  Task task = relu_module_task();
  task.tensors[1].shape = {"1", "8"};
  task.cases[0].shapes[1] = {1, 8};
  const auto files = *export_kernel(request_for(task,
                                                R"(#include "task.h"
extern "C" void launch(const Args& args) {
  for (int i = 0; i < 32; ++i) args.out[i] = args.x[i] * args.scale_weight[i % 8];
}
)",
                                                Language::kCpp));
  const TempDir folder;
  ASSERT_TRUE(write_file(join(folder.path(), "model_new.py"), text_of(files, "model_new.py")));
  ASSERT_TRUE(write_file(join(folder.path(), "use.py"), R"py(
import copy
import torch
import model_new
a, x = model_new.Model(), torch.randn(4, 8)
b = model_new.ModelNew()
b.load_state_dict(a.state_dict())
with torch.no_grad():
    assert torch.allclose(b(x), a(x)) and torch.allclose(b(x=x), a(x))
    assert torch.allclose(model_new.kp_forward(a, x), a(x)), "any module with Model's parameters"
    assert torch.allclose(copy.deepcopy(b)(x.t().contiguous().t()), a(x)), "strides are made plain"
assert model_new.kp_misfit(a, x) == ""
assert "(4, 8), not (5, 8)" in model_new.kp_misfit(a, torch.randn(5, 8))
assert "float64" in model_new.kp_misfit(a, x.double())
assert "1 tensors, 2 were" in model_new.kp_misfit(a, (x, x))
assert "scale_weight" in model_new.kp_misfit(torch.nn.ReLU(), x)
assert model_new.KP_PRECISION == "fp32"
print("all is well")
)py"));
  const Exit exit = run_in(folder.path(), {"/usr/bin/env", python, "use.py"});
  EXPECT_TRUE(exit.ok() && contains(exit.output, "all is well"))
      << exit.output << text_of(files, "model_new.py");
}

// The module file in real Python, with PyTorch's extension builder faked instead of a GPU: checks
// what it builds and the arguments of the call.
TEST(Export, ModelNewHandsTheKernelItsTensors) {
  const std::string python = python_with_torch();
  if (python.empty()) GTEST_SKIP() << "PyTorch is not installed";
  const Task task = relu_module_task();
  const auto files =
      *export_kernel(request_for(task,
                                 "#include \"task.h\"\n__global__ void k(const float*, float*) {}\n"
                                 "KP_LAUNCH(k, kp::dim(1), kp::dim(1), 0, arg::x, arg::out)\n"));
  const std::string text = text_of(files, "model_new.py");
  ASSERT_NE(text, "");
  const TempDir folder;
  ASSERT_TRUE(write_file(join(folder.path(), "model_new.py"), text));
  ASSERT_TRUE(write_file(join(folder.path(), "use.py"), R"py(
import contextlib, types
import torch
import torch.utils.cpp_extension as ext
built, calls = [], []
def load_inline(**options):
    built.append(options)
    return types.SimpleNamespace(kp_run=lambda *a: calls.append(a))
ext.load_inline = load_inline
torch.cuda.get_device_capability = lambda *a: (9, 0)
torch.cuda.device = lambda d: contextlib.nullcontext()
torch.cuda.current_stream = lambda d=None: types.SimpleNamespace(cuda_stream=7)
import model_new
assert "sm_90a" in " ".join(built[0]["extra_cuda_cflags"])
assert "__global__ void k" in built[0]["cuda_sources"][0]
torch.manual_seed(42); a = model_new.Model()
torch.manual_seed(42); b = model_new.ModelNew()
assert all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters()))
fit = model_new._kp_fit
try:
    fit(torch.zeros(4, 9), "x", torch.float32, torch.Size((4, 8)))
    raise SystemExit("a wrong shape was taken")
except ValueError as error:
    assert "(4, 8)" in str(error) and "(4, 9)" in str(error), error
try:
    fit(torch.zeros(4, 8), "x", torch.float32, torch.Size((4, 8)))
    raise SystemExit("a tensor on the CPU was taken")
except ValueError as error:
    assert "GPU" in str(error), error
model_new._kp_fit = lambda tensor, *about: tensor
real_empty = torch.empty
model_new._kp_torch = types.SimpleNamespace(**vars(torch))
model_new._kp_torch.empty = lambda *a, device=None, **k: real_empty(*a, **k)
x = torch.randn(4, 8)
out = b(x)
given, workspace, stream = calls[0]
assert given[0] is x and given[1] is b.scale.weight and given[2] is out and stream == 7
assert out.shape == (4, 8) and workspace.numel() == 0
b(x=x)
assert calls[1][0][0] is x
print("all is well")
)py"));
  const Exit exit = run_in(folder.path(), {"/usr/bin/env", python, "use.py"});
  EXPECT_TRUE(exit.ok() && contains(exit.output, "all is well")) << exit.output << text;
}

}  // namespace
}  // namespace kernelpro
