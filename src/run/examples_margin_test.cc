// SPDX-License-Identifier: Apache-2.0
// The examples' kernels for the cpu target stay within a tenth of their tolerance for any random
// inputs: a correct start must not fail by an unlucky draw.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/files.h"
#include "build/compiler.h"
#include "core/candidate/knobs.h"
#include "core/task/inputs.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "task/open/open_task.h"

namespace kernelpro {
namespace {

using Entry = void (*)(const void* args);

// Never unloaded: OpenMP's threads outlive calls.
void* load(const CompileResult& result) {
  EXPECT_TRUE(result) << (result ? "" : result.error().text());
  const Binary* binary = result ? std::get_if<Binary>(&*result) : nullptr;
  EXPECT_NE(binary, nullptr) << "it does not compile";
  if (binary == nullptr) return nullptr;
  return ::dlopen(binary->shared_object.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

// A task's tensors, with outputs twice: as the kernel and as the reference writes them.
class Buffers {
 public:
  Buffers(const Task& task, const Case& c) : tensors_(shaped_tensors(task, c)) {
    for (const Shaped& tensor : tensors_) {
      const bool output = tensor.tensor->role == Role::kOutput;
      data_.emplace_back(static_cast<std::size_t>(tensor.bytes / 64 + 1) * (output ? 3 : 1));
      args_.push_back(data_.back().data());
      // References write doubles, after the kernel's floats.
      wide_.push_back(output ? data_.back().data() + tensor.bytes / 64 + 1 : args_.back());
    }
    args_.push_back(nullptr);  // no workspace
  }

  void draw(std::uint64_t seed) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Shaped& shaped = tensors_[i];
      if (shaped.tensor->role == Role::kOutput) continue;
      draw_inputs(*shaped.tensor, static_cast<int>(i), key_of(seed), 0, shaped.elements, args_[i]);
    }
  }

  const void* args() const { return args_.data(); }
  const void* reference_args() const { return wide_.data(); }
  float* input(std::size_t i) { return static_cast<float*>(args_[i]); }

  // The largest error of any output, relative to its tolerance.
  double error(const Task& task) const {
    double worst = 0;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].tensor->role != Role::kOutput) continue;
      const Rule rule = rule_for(task, *tensors_[i].tensor, Policy::kContract);
      const Expected expected = make_expected(tensors_[i], wide_[i], rule);
      worst = std::max(worst,
                       compare_output(tensors_[i], args_[i], expected).worst / allowed_error(rule));
    }
    return worst;
  }

 private:
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  std::vector<Shaped> tensors_;
  std::vector<std::vector<Line>> data_;
  std::vector<void*> args_, wide_;
};

class Example {
 public:
  // `dims` replace those of the task's cases.
  Example(const std::string& name, const std::map<std::string, std::int64_t>& dims) {
    OpenSettings open;
    open.target = TargetKind::kCpu;
    auto opened = open_task(std::string(KERNELPRO_SOURCE_DIR) + "/examples/" + name, open);
    EXPECT_TRUE(opened) << opened.error().text();
    task_ = opened->task;
    case_.name = "margin";
    case_.dims = {dims.begin(), dims.end()};
    task_.cases = {case_};
    CompileSettings settings;
    settings.cache_dir = cache_.path();
    auto compiler = make_cpu_compiler(settings);
    EXPECT_TRUE(compiler) << compiler.error().text();
    compiler_ = std::move(*compiler);
    reference_ = load(compiler_->compile_reference(task_, case_));
  }

  // The largest error of `draws` draws; `change` may change the inputs.
  double error(const std::map<std::string, std::string>& knobs, int draws,
               const std::function<void(Buffers*)>& change = {}) {
    Candidate candidate;
    candidate.source = task_.kernel_cpp;
    candidate.knobs = default_values(*parse_knobs(candidate.source));
    for (const auto& [name, value] : knobs) candidate.knobs[name] = value;
    void* const kernel = load(compiler_->compile(task_, case_, candidate));
    if (kernel == nullptr || reference_ == nullptr) return INFINITY;
    const auto launch = reinterpret_cast<Entry>(::dlsym(kernel, "launch"));
    const auto reference = reinterpret_cast<Entry>(::dlsym(reference_, "reference"));
    Buffers buffers(task_, case_);
    double worst = 0;
    for (int draw = 0; draw < draws; ++draw) {
      buffers.draw(static_cast<std::uint64_t>(draw));
      if (change) change(&buffers);
      launch(buffers.args());
      reference(buffers.reference_args());
      worst = std::max(worst, buffers.error(task_));
    }
    return worst;
  }

 private:
  TempDir cache_;
  Task task_;
  Case case_;
  std::unique_ptr<Compiler> compiler_;
  void* reference_ = nullptr;
};

constexpr int kDraws = 100;
constexpr double kMargin = 0.1;

TEST(ExamplesMargin, LayerNorm) {
  Example example("layernorm", {{"ROWS", 8}, {"COLS", 8192}});
  EXPECT_LT(example.error({}, kDraws), kMargin);
  EXPECT_LT(example.error({{"VEC", "8"}, {"OVERLAP", "1"}}, kDraws), kMargin);
}

TEST(ExamplesMargin, LayerNormOfOddRows) {
  Example example("layernorm", {{"ROWS", 8}, {"COLS", 1003}});
  EXPECT_LT(example.error({}, kDraws), kMargin);
  EXPECT_LT(example.error({{"VEC", "16"}, {"OVERLAP", "1"}}, kDraws), kMargin);
}

// One element predicts little about a row's mean: the variance of distances from it loses digits.
TEST(ExamplesMargin, LayerNormOfRowsThatBeginFarFromTheirMean) {
  Example example("layernorm", {{"ROWS", 8}, {"COLS", 8192}});
  const auto far = [](Buffers* buffers) {
    for (int row = 0; row < 8; ++row) buffers->input(0)[8192 * row] = 40.0f;
  };
  EXPECT_LT(example.error({}, kDraws / 10, far), kMargin);
}

TEST(ExamplesMargin, Softmax) {
  Example example("softmax", {{"ROWS", 8}, {"COLS", 8192}});
  EXPECT_LT(example.error({}, kDraws), kMargin);
  EXPECT_LT(example.error({{"VEC", "16"}, {"OVERLAP", "1"}}, kDraws), kMargin);
}

TEST(ExamplesMargin, Matmul) {
  Example example("matmul", {{"M", 32}, {"N", 48}, {"K", 1024}});
  EXPECT_LT(example.error({}, kDraws), kMargin);
  EXPECT_LT(example.error({{"KC", "512"}, {"VEC", "8"}}, kDraws), kMargin);
}

}  // namespace
}  // namespace kernelpro
