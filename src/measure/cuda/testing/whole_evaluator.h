// SPDX-License-Identifier: Apache-2.0
// The whole cuda evaluator without a GPU: judge and workers are real processes over a fake CUDA
// driver (measure/worker/testing/fake_worker.cc), which also names the candidates.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/process/subprocess.h"
#include "measure/cuda/evaluator.h"

namespace kernelpro::testing {

inline constexpr double kHonestUs = 40;  // as in fake_worker.cc

inline PlanNode call(const std::string& name) {
  PlanNode node;
  node.kind = PlanNode::Kind::kKernel;
  node.function = name;
  node.grid = {16, 1, 1};
  node.block = {256, 1, 1};
  for (const int index : {0, 1}) {
    PlanParameter tensor;
    tensor.kind = PlanParameter::Kind::kTensor;
    tensor.index = index;
    node.parameters.push_back(tensor);
  }
  return node;
}

class WholeEvaluator : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer needs the addresses of the launch plan";
#endif
    const std::string worker = join(executable_dir(), "../fake_driver/fake_worker");
    ASSERT_TRUE(exists(worker)) << "build fake_worker";
    ::setenv("KERNELPRO_WORKER", worker.c_str(), 1);
    ::setenv("KERNELPRO_PYTHON", worker.c_str(), 1);
    ::setenv("KERNELPRO_CACHE", folder_.path().c_str(), 1);
    ::setenv("KERNELPRO_LEASES", folder_.path().c_str(), 1);
    Command images;
    images.argv = {worker, "images", folder_.path()};
    const auto written = run(images);
    ASSERT_TRUE(written) << written.error().text();
    if (!written->ok()) GTEST_SKIP() << "no NVRTC here";
    task_.name = "twice";
    task_.tensors = {{"x", Role::kInput, DType::kFp32, {"N"}, {}, 0},
                     {"y", Role::kOutput, DType::kFp32, {"N"}, {}, 0}};
    task_.cases = {{"only", {{"N", 4093}}, true, {}}};
    task_.reference_cu = "given";
    machine_.target = target_name(TargetKind::kCuda);
    machine_.arch = "sm_90a";
    settings_.timeout_s = 20;
    settings_.samples = 20;
    settings_.probes = false;
    settings_.row_s = 0;
  }
  void TearDown() override {
    evaluator_.reset();
    for (const char* name :
         {"KERNELPRO_WORKER", "KERNELPRO_CACHE", "KERNELPRO_LEASES", "KERNELPRO_PYTHON",
          "KERNELPRO_FAKE_SAMPLING", "KERNELPRO_FAKE_NO_READ_ONLY"}) {
      ::unsetenv(name);
    }
  }

  // The image of a kernel lies in the folder under its name.
  Binary binary(const std::string& name) const {
    Binary made;
    made.form = Binary::Form::kPlanForm;
    made.case_name = task_.cases[0].name;
    made.hash = name;
    made.cubin = join(folder_.path(), name);
    made.plan.nodes = {call(name)};
    return made;
  }
  Subject subject(const std::string& name) const { return {name, {binary(name)}}; }
  // A host form with that kernel; outside of a capture it computes what `outside` does.
  Subject host_form_of(const std::string& name, const std::string& outside) const {
    Binary made = binary(name);
    made.form = Binary::Form::kHostForm;
    made.hash = "host form of " + name + " and " + outside;
    made.shared_object = join(folder_.path(), name + "," + outside);
    made.plan = {};
    return {made.hash, {made}};
  }
  // A PyTorch candidate, whose file the fake Python only takes the name of.
  Subject module(const std::string& name) const {
    Binary made;
    made.form = Binary::Form::kModule;
    made.case_name = task_.cases[0].name;
    made.hash = "module " + name;
    made.module = join(folder_.path(), name);
    return {made.hash, {made}};
  }
  Evaluation evaluate(const std::string& name, const std::string& incumbent = "") {
    const Subject against = subject(incumbent);
    return evaluate(subject(name), incumbent.empty() ? nullptr : &against);
  }
  Evaluation evaluate(const Subject& candidate, const Subject* incumbent) {
    if (!evaluator_) {
      auto made = make_cuda_evaluator(task_, machine_, settings_);
      if (made) evaluator_ = std::move(*made);
      const auto given = std::exchange(task_.module, std::nullopt);  // its reference is native
      References references;
      references.binaries.assign(task_.cases.size(), binary(reference_));
      const auto ready = evaluator_ ? evaluator_->prepare(references) : Result<void>();
      if (!ready) ADD_FAILURE() << ready.error().text();
      if (!evaluator_ || !ready) return {};
      task_.module = given;
    }
    const bool module = candidate.binaries[0].form == Binary::Form::kModule;
    if (module && !task_.module) {  // the reference stays the native one
      task_.module = Module{};
      task_.module->path = join(folder_.path(), "task.py");  // beside what fake processes read
    }
    auto evaluation = evaluator_->evaluate(candidate, incumbent);
    if (evaluation) return std::move(*evaluation);
    ADD_FAILURE() << evaluation.error().text();
    return {};
  }
  static std::string said(const Evaluation& e) { return outcome_summary(e.outcome); }

  std::string reference_ = "reference";
  TempDir folder_;
  Task task_;
  Machine machine_;
  EvaluateSettings settings_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace kernelpro::testing
