// SPDX-License-Identifier: Apache-2.0
// What to compute: named tensors, a reference, a precision contract and one or more cases.
// Plain values; loaders live in task/.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/task/dtype.h"

namespace kernelpro {

enum class TargetKind { kCpu, kCuda };
std::string_view target_name(TargetKind target);  // "cpu", "cuda"
std::optional<TargetKind> target_from_name(std::string_view name);

enum class Role { kInput, kParameter, kOutput };  // a parameter is an input that is a weight
std::string_view role_name(Role role);
std::optional<Role> role_from_name(std::string_view name);

// How an input is drawn; core/device/draw.h defines each draw exactly, bit-equal on CPU and GPU.
struct Init {
  enum class Kind { kUniform, kNormal, kIntegers, kBernoulli, kConstant, kModule };
  Kind kind = Kind::kNormal;
  //   uniform: [a, b); normal: mean a, standard deviation b; integers: a..b inclusive;
  //   bernoulli: probability a of one; constant: a; module: the PyTorch module's own get_inputs or
  //   state (only tasks with a Module).
  double a = 0;
  double b = 1;
};
std::string_view init_name(Init::Kind kind);
std::optional<Init::Kind> init_from_name(std::string_view name);

// The precision that a task's result must have; decides which units and baselines are fair.
//   fp32: every product and sum in fp32 or better (no TF32, no half);
//   tf32: fp32 tensors, operands of products may be rounded to TF32's 10 bits, also where a kernel
//         stores them between products; sums in fp32;
//   fp16, bf16: storage and products in that type, sums in fp32.
enum class Precision { kFp32, kTf32, kFp16, kBf16 };
std::string_view precision_name(Precision precision);  // "fp32", "tf32", "fp16", "bf16"
std::optional<Precision> precision_from_name(std::string_view name);

struct Tensor {
  std::string name;  // a C identifier
  Role role = Role::kInput;
  DType dtype = DType::kFp32;
  std::vector<std::string>
      shape;             // expressions over the case's dimensions (core/task/expression.h)
  Init init;             // inputs and parameters only
  double tolerance = 0;  // outputs only; see Task
};

struct Case {
  std::string name;
  std::map<std::string, std::int64_t> dims;
  bool timed = false;               // counts for speed; every case counts for correctness
  std::vector<TargetKind> targets;  // empty: all
  // Tasks with a Module: the shape of every tensor, in order of Task::tensors, as the module
  // reports it under `dims` (here: values for integers at the top level of the module's file).
  // Empty for native tasks, which use their tensors' own expressions.
  std::vector<std::vector<std::int64_t>> shapes = {};
  // Tasks with a Module: the other arguments of forward, as C literals; floating-point operations
  // per call, and how many of them are in matrix products and convolutions (0: unknown); bytes of
  // scratch memory for candidates.
  std::map<std::string, std::string> constants = {};
  double flops = 0;
  double matmul_flops = 0;
  std::int64_t workspace = 0;
};

// A PyTorch file with `Model`, `get_inputs` and `get_init_inputs` (KernelBench's form): the
// reference of a task, run by python/ (task/reference/module_reference.h).
struct Module {
  std::string path;    // absolute path of the file
  std::string source;  // its text
  std::string note;    // for writers: "training mode; running statistics are ignored"
};

struct Task {
  std::string name;
  std::string summary;
  std::string folder;           // where it was loaded from, absolute
  std::vector<Tensor> tensors;  // in the order of Args
  std::vector<Case> cases;      // checked in this order: small ones first
  // Sizes hidden from searches and writers: the result is measured on them at the end
  // (run/store/held_out.h). All are timed.
  std::vector<Case> held_out;
  std::string flops;         // expression: floating-point operations of one call; "" = 0
  std::string matmul_flops;  // expression: how many of them are matrix products; "" = 0
  std::string workspace;     // expression: bytes of scratch memory for candidates; "" = 0
  // Source texts; "" where the task has none.
  std::string reference_cpp;
  std::string reference_cu;
  std::string kernel_cpp;
  std::string kernel_cu;
  // Starting kernels in other languages, by the extension of their files: "py".
  std::map<std::string, std::string> other_kernels;
  std::optional<Module> module;  // then the references above are empty
  Precision precision = Precision::kFp32;

  // Hash of everything above as canonical JSON: tasks with equal content are the same task.
  std::string content_hash() const;
};

// A tensor with its shape evaluated for one case.
struct Shaped {
  const Tensor* tensor = nullptr;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

// REQUIRES: the task passed its loader, so every expression evaluates.
std::vector<Shaped> shaped_tensors(const Task& task, const Case& c);
std::int64_t workspace_bytes(const Task& task, const Case& c);
// Every input read once and every output written once.
double compulsory_bytes(const Task& task, const Case& c);
double task_flops(const Task& task, const Case& c);
double task_matmul_flops(const Task& task, const Case& c);
// The cases that apply to a target, in order.
std::vector<const Case*> cases_for(const Task& task, TargetKind target);
// The timed one of them that moves the most bytes, which stands for the task where one has to.
// Null: none is timed.
const Case* largest_timed(const Task& task, TargetKind target);

// The held-out cases that apply to a target, each as a separate task, in order.
std::vector<Task> held_out_tasks(const Task& task, TargetKind target);

// Names that a candidate's knobs may not take: the cases' dimensions and the tensors.
std::vector<std::string> reserved_names(const Task& task);

// The tolerance in force for an output: its own, else the default for its type and the task's
// precision. The contract: with r = the higher-precision reference and s = root mean square of r
// over the tensor, every element must satisfy |out - r| <= tolerance * max(|r|, s); integers and
// bools must be equal.
double tolerance_of(const Tensor& tensor, Precision precision = Precision::kFp32);

std::string task_to_json(const Task& task);
// Reads the output of task_to_json (the store's copy). nullopt when it is damaged.
std::optional<Task> task_from_json(const std::string& json);

}  // namespace kernelpro
