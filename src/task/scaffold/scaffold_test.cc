// SPDX-License-Identifier: Apache-2.0
// Typical user files, in fixtures/. cli/new_test.cc builds and judges some of the results.
#include "task/scaffold/scaffold.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/text.h"
#include "task/load/loader.h"
#include "task/load/unfilled.h"

namespace kernelpro {
namespace {

Result<Scaffold> from(const std::string& file, const std::string& function = "") {
  ScaffoldSource source;
  source.file = file;
  source.name = file.substr(0, file.find('.'));
  source.text =
      *read_file(join(std::string(KERNELPRO_SOURCE_DIR) + "/src/task/scaffold/fixtures", file));
  source.function = function;
  return scaffold_from(source);
}

// The folder as generated, and with every mark removed.
struct Folder {
  TempDir dir;
  std::string raw = join(dir.path(), "raw"), filled = join(dir.path(), "filled");
  explicit Folder(const Scaffold& scaffold) {
    EXPECT_TRUE(make_dirs(raw));
    EXPECT_TRUE(make_dirs(filled));
    for (const auto& [name, text] : scaffold.files) {
      EXPECT_TRUE(write_file(join(raw, name), text));
      EXPECT_TRUE(write_file(join(filled, name), replace_all(text, std::string(kUnfilled), "")));
    }
  }
};

// "x:input[N] y:output[N]"
std::string tensors(const Task& task) {
  std::string text;
  for (const Tensor& t : task.tensors) {
    text += (text.empty() ? "" : " ") + t.name + ":" + std::string(role_name(t.role)) + "[" +
            join_text(t.shape, ",") + "]";
  }
  return text;
}

struct Native {
  const char* file;
  const char* calls;  // in launch
  const char* tensors;
  bool reference;  // found in the file
};

TEST(Scaffold, NativeFiles) {
  const Native natives[] = {
      {"axpy.cu", "saxpy<<<", "x:input[N_DIM] y_in:input[N_DIM] y:output[N_DIM]", false},
      {"softmax.cu", "softmax_forward(args.out, args.inp, ROWS, COLS, stream)",
       "inp:input[ROWS,COLS] out:output[ROWS,COLS]", true},
      {"sgemm.cu", "run_sgemm_coalesced(",
       "A:input[M_DIM,K_DIM] B:input[K_DIM,N_DIM] "
       "C_in:input[M_DIM,N_DIM] C:output[M_DIM,N_DIM]",
       false},
      {"layernorm.cu", "launch_layernorm(",
       "x:input[BATCH,DIM] gamma:input[DIM] beta:input[DIM] y:output[BATCH,DIM]", false},
      {"reduce.cu", "sum(args.in, args.out, N)", "in:input[N] out:output[]", false},
      {"transpose.cu", "transposeCoalesced<<<",
       "idata:input[WIDTH,HEIGHT] odata:output[WIDTH,HEIGHT]", true},
      {"gelu_half.cu", "gelu<<<", "x:input[N] y:output[N]", false},
      {"gather.cu", "gather(",
       "table:input[NUM_ROWS,WIDTH] indices:input[NUM_ROWS,WIDTH] "
       "out:output[NUM_ROWS,WIDTH]",
       false},
      {"two_pass.cu", "subtract_max(", "x:input[N] y:output[N]", true},
      {"messy.cu", "scale(", "in:input[N4 * 4] out:output[N4 * 4]", false},
      {"dot.cpp", "weighted_rows(", "x:input[ROWS,COLS] w:input[COLS] out:output[ROWS,COLS]",
       true}};
  for (const Native& native : natives) {
    SCOPED_TRACE(native.file);
    const auto scaffold = from(native.file);
    ASSERT_TRUE(scaffold) << scaffold.error().text();
    const std::string& kernel = scaffold->files.at(scaffold->kernel);
    EXPECT_TRUE(contains(kernel, native.calls)) << kernel;
    EXPECT_FALSE(contains(kernel, "int main(")) << "the user's main would be built in";
    const Folder folder(*scaffold);
    const auto refused = load_task(folder.raw);
    ASSERT_FALSE(refused) << "a guess was taken for a decision";
    EXPECT_EQ(refused.error().kind, ErrorKind::kBadInput);
    EXPECT_TRUE(contains(refused.error().message, "to be filled in")) << refused.error().message;
    const auto task = load_task(folder.filled);
    ASSERT_TRUE(task) << task.error().text();
    EXPECT_EQ(tensors(*task), native.tensors);
    const bool derived = contains(join_text(scaffold->derived, "\n"), "the references, from");
    EXPECT_EQ(derived, native.reference) << join_text(scaffold->derived, "\n");
  }
}

TEST(Scaffold, WhatAPlanCannotHoldIsMended) {
  const std::string softmax = from("softmax.cu")->files.at("kernel.cu");
  EXPECT_FALSE(contains(softmax, "cudaStreamSynchronize"));
  const std::string gemm = from("sgemm.cu")->files.at("kernel.cu");
  EXPECT_TRUE(contains(gemm, "<<<gridDim, blockDim, 0, kernelpro_stream>>>")) << gemm;
  EXPECT_TRUE(contains(gemm, "cudaMemcpyAsync(args.C, args.C_in"));
  const std::string reduce = from("reduce.cu")->files.at("kernel.cu");
  EXPECT_TRUE(contains(reduce, "cudaMemsetAsync(out, 0, sizeof(float), kernelpro_stream)"))
      << reduce;
  const std::string transpose = from("transpose.cu")->files.at("kernel.cu");
  EXPECT_TRUE(contains(transpose, "// left out, not found: #include \"helper_cuda.h\""));
  const std::string two = from("two_pass.cu")->files.at("task.toml");
  EXPECT_TRUE(contains(two, "workspace = ")) << two;
}

TEST(Scaffold, ReferencesAreInDoublePrecision) {
  const auto scaffold = from("softmax.cu");
  const std::string cpp = scaffold->files.at("reference.cpp");
  EXPECT_TRUE(contains(cpp, "softmax_forward_cpu(double* out, Wide<float> inp")) << cpp;
  EXPECT_FALSE(contains(cpp, "expf("));
  const std::string cu = scaffold->files.at("reference.cu");
  EXPECT_TRUE(contains(cu, "+= (1) * kp_threads")) << "rows are shared by threads\n" << cu;
  // Two loops, the second on the first's results: must not be shared.
  EXPECT_TRUE(
      contains(from("two_pass.cu")->files.at("reference.cu"), "define<<<1, 1, 0, stream>>>"));
}

TEST(Scaffold, Extensions) {
  const auto relu = from("relu_extension.cu");
  ASSERT_TRUE(relu) << relu.error().text();
  EXPECT_EQ(relu->task, "model.py");
  EXPECT_TRUE(contains(relu->files.at("model.py"), "return torch.relu(x)"));
  const std::string kernel = relu->files.at("kernel.cu");
  EXPECT_FALSE(contains(kernel, "PYBIND11_MODULE"));
  EXPECT_FALSE(contains(kernel, "#include <torch/"));
  EXPECT_TRUE(contains(kernel, "torch::deliver(relu_forward(x), args.out")) << kernel;

  const auto model = from("inline_model.py");
  ASSERT_TRUE(model) << model.error().text();
  const std::string py = model->files.at("model.py");
  EXPECT_TRUE(contains(py, "class Model(nn.Module)"));
  EXPECT_TRUE(contains(py, "def get_inputs"));
  EXPECT_FALSE(contains(py, "load_inline")) << py;
  EXPECT_FALSE(contains(py, "ModelNew")) << py;
  EXPECT_TRUE(contains(model->files.at("kernel.cu"), "{batch_size, dim}"));

  const auto add = from("inline_add.py");
  ASSERT_TRUE(add) << add.error().text();
  EXPECT_TRUE(contains(add->files.at("model.py"), "return torch.add(a, b)\n"));
}

TEST(Scaffold, FaultsSayWhatToDo) {
  ScaffoldSource source;
  source.file = "empty.cu";
  source.name = "empty";
  source.text = "// nothing\n";
  EXPECT_TRUE(contains(scaffold_from(source).error().message, "no function that can be a kernel"));
  source.text =
      "__global__ void a(float* x) { x[0] = 1; }\n__global__ void b(float* x) { x[0] = 2; }\n";
  const auto several = scaffold_from(source);
  ASSERT_FALSE(several);
  EXPECT_TRUE(contains(several.error().message, "a, b"));
  EXPECT_TRUE(contains(several.error().next, "--function"));
  source.function = "b";
  EXPECT_TRUE(scaffold_from(source));
  EXPECT_FALSE(from("softmax.cu", "absent"));
}

TEST(Scaffold, TheEmptyOneIsRefusedUntilFilled) {
  const Scaffold scaffold = scaffold_empty("mine");
  const Folder folder(scaffold);
  EXPECT_FALSE(load_task(folder.raw));
  const auto task = load_task(folder.filled);
  ASSERT_TRUE(task) << task.error().text();
  EXPECT_EQ(task->name, "mine");
}

}  // namespace
}  // namespace kernelpro
