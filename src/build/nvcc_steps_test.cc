// SPDX-License-Identifier: Apache-2.0
#include "build/nvcc_steps.h"

#include <gtest/gtest.h>

#include "base/cuda_toolkit.h"
#include "base/files.h"
#include "base/process/subprocess.h"
#include "base/text.h"
#include "build/compiler.h"

namespace kernelpro {
namespace {

constexpr const char* kKernel =
    "#include <cuda_runtime.h>\n"
    "static __global__ void scale(float* x) { x[threadIdx.x] *= 2; }\n"
    "extern \"C\" void launch(float* x, cudaStream_t s) { scale<<<1, 32, 0, s>>>(x); }\n";

class NvccSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    nvcc_ = find_cuda_tool("nvcc");
    if (nvcc_.empty()) GTEST_SKIP() << "no nvcc";
  }

  Exit run_here(std::vector<std::string> argv) {
    Command command;
    command.argv = std::move(argv);
    command.cwd = dir_.path();
    command.env = {"LC_ALL=C", "TMPDIR=" + dir_.path()};
    Result<Exit> exit = run(command);
    EXPECT_TRUE(exit);
    return exit ? std::move(*exit) : Exit();
  }

  std::vector<std::string> argv(const std::vector<std::string>& more) const {
    std::vector<std::string> all = {nvcc_,        "-std=c++20", "-shared", "-nodlink",
                                    "-Xcompiler", "-fPIC",      "--keep",  "--keep-dir",
                                    ".",          "-o",         "k.so"};
    all.insert(all.end(), {"-gencode=arch=compute_90a,code=sm_90a", "-Xptxas", "-v"});
    all.insert(all.end(), more.begin(), more.end());
    all.emplace_back("k.cu");
    return all;
  }

  std::string script() {
    const Exit listing = run_here(argv({"--dryrun"}));
    EXPECT_TRUE(listing.ok()) << listing.output;
    return side_by_side(listing.output, dir_.path()).value_or("");
  }

  Exit by_steps(const std::string& source) {
    EXPECT_TRUE(write_file(join(dir_.path(), "k.cu"), source));
    const std::string text = script();
    EXPECT_NE(text, "");
    return run_here({"/bin/sh", "-c", text});
  }

  TempDir dir_;
  std::string nvcc_;
};

TEST_F(NvccSteps, MakeWhatNvccMakes) {
  const Exit exit = by_steps(kKernel);
  ASSERT_TRUE(exit.ok()) << exit.output;
  EXPECT_NE(exit.output.find("Used "), std::string::npos) << exit.output;  // ptxas -v
  const auto cubin = read_file(join(dir_.path(), "k.cubin"));
  ASSERT_TRUE(cubin);
  EXPECT_TRUE(exists(join(dir_.path(), "k.so")));
  EXPECT_TRUE(exists(join(dir_.path(), "k.ptx")));
  // A static kernel's name contains the module id, so both sides must agree on it.
  const auto stub = read_file(join(dir_.path(), "k.cudafe1.stub.c"));
  ASSERT_TRUE(stub);
  const std::string::size_type at = stub->find("__cudaRegisterEntry(");
  ASSERT_NE(at, std::string::npos);
  const auto ptx = read_file(join(dir_.path(), "k.ptx"));
  ASSERT_TRUE(ptx);
  const std::string::size_type entry = ptx->find(".entry ");
  ASSERT_NE(entry, std::string::npos);
  const std::string name = ptx->substr(entry + 7, ptx->find('(', entry) - entry - 7);
  EXPECT_TRUE(contains(*stub, name)) << name << "\n" << stub->substr(at, 300);
}

TEST_F(NvccSteps, SayWhatNvccSays) {
  for (const std::string& source :
       {std::string("__global__ void k() { int unused; undeclared = 1; }\n"),
        std::string("int host() { return undeclared; }\n") + kKernel,
        std::string("__global__ void k() { asm(\"no such instruction;\"); }\n")}) {
    const Exit steps = by_steps(source);
    const Exit nvcc = run_here(argv({}));
    EXPECT_FALSE(steps.ok());
    EXPECT_FALSE(nvcc.ok());
    for (const std::string& line : lines(steps.output)) {
      EXPECT_TRUE(!contains(line, "error") || contains(nvcc.output, line)) << line;
    }
    EXPECT_TRUE(contains(steps.output, "error")) << steps.output;
  }
}

TEST(NvccListing, OthersAreLeftToNvcc) {
  EXPECT_FALSE(side_by_side("", "/tmp/x"));
  EXPECT_FALSE(side_by_side("#$ clang -x cuda k.cu\n", "/tmp/x"));
  // Two architectures: two runs of cicc.
  const char* two =
      "#$ gcc -E k.cu -o k.cpp4.ii\n#$ cudafe++ --module_id_file_name \"k.id\" k.cpp4.ii\n"
      "#$ gcc -E k.cu\n#$ cicc --module_id_file_name \"k.id\"\n#$ ptxas\n"
      "#$ gcc -E k.cu\n#$ cicc --module_id_file_name \"k.id\"\n#$ ptxas\n"
      "#$ gcc -c x k.cudafe1.cpp \n";
  EXPECT_FALSE(side_by_side(two, "/tmp/x"));
}

// Host code may use all of <cmath>, and names that it brings in.
TEST_F(NvccSteps, TheCompilerStillTakesEverySource) {
  CompileSettings settings;
  settings.cache_dir = dir_.path();
  settings.cuda_arch = "sm_90a";
  auto compiler = make_cuda_compiler(settings);
  ASSERT_TRUE(compiler) << compiler.error().text();
  Task task;
  task.tensors = {{"x", Role::kOutput, DType::kFp32, {"32"}, {}, 0}};
  task.cases = {{"c", {}, true, {}}};
  const std::string source =
      "#include \"task.h\"\n#include <cmath>\n"
      "__global__ void k(float* x, float by) { x[threadIdx.x] *= by; }\n"
      "extern \"C\" void launch(const Args& args, cudaStream_t stream) {\n"
      "  const double by = std::max(1.0, std::riemann_zeta(2.0));\n"
      "  k<<<1, 32, 0, stream>>>(args.x, static_cast<float>(by));\n}\n";
  const auto built = (*compiler)->compile(task, task.cases[0], {Language::kCuda, source, {}, {}});
  ASSERT_TRUE(built) << built.error().text();
  const auto* error = std::get_if<CompileError>(&*built);
  EXPECT_EQ(error, nullptr) << error->log;
}

}  // namespace
}  // namespace kernelpro
