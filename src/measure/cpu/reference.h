// SPDX-License-Identifier: Apache-2.0
// The source of one case's inputs and expected results on the cpu target: the task's generator and
// reference.cpp in a worker process, or a PyTorch module.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/evaluation/evaluation.h"
#include "core/evaluation/label.h"
#include "core/plan/binary.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "core/task/policy.h"
#include "core/task/task.h"
#include "measure/cpu/buffers.h"
#include "measure/judge/probe_shapes.h"
#include "measure/judge/probes.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// Inputs and the reference's results for them.
struct InputSet {
  int named = -1;                         // the tensor that a probe is about (ProbePlan::tensor)
  bool varied = false;                    // its weights differ slightly from the module's
  std::vector<std::vector<char>> inputs;  // by tensor; empty for outputs
  std::vector<Expected> expected;         // by tensor; empty for inputs
  std::vector<Deviation> nudged;          // by tensor: of sparse probes, and where shows_norm
                                          // (measure/judge/probes.h); may be empty
};

struct ProbeSet {
  DrawKind kind = DrawKind::kCentred;
  InputSet set;
};

struct SetRequest {
  kp::Key key{};                      // kernelbench's tensors: of the trial number
  const ProbePlan* probe = nullptr;   // null: as given
  DrawKind kind = DrawKind::kGiven;   // without a probe
  std::vector<kp::ShapeSpec> shapes;  // by tensor, applied to what was drawn; may be empty
  bool twice = false;                 // check that the reference agrees with itself
  bool vary_weights = false;          // modules: change non-constant parameters by up to
                                      // 1/64, so that values cached in another call are wrong
};

// One thread at a time.
class CpuReference {
 public:
  virtual ~CpuReference() = default;
  // nullopt: a probe that changes nothing here or is inconclusive (measure/judge/probes.h). Fails
  // with kTask on a reference that crashes, hangs, or disagrees with itself.
  Result<std::optional<InputSet>> make_set(const SetRequest& request);
  // Computations so far, and the processor seconds that the fastest of them took, with drawing and
  // comparing: about what one takes on a machine that does nothing else. Infinite before the first.
  int runs() const { return runs_; }
  double fastest_s() const { return fastest_s_; }
  // How many inputs a result depends on (measure/judge/precision.h), where that was measured.
  double reach() const { return reach_; }
  // Labels that apply to the sets made so far.
  const std::vector<std::string>& labels() const { return labels_; }
  bool has_float64() const {
    return std::find(labels_.begin(), labels_.end(), label_name(Label::kNoFloat64)) ==
           labels_.end();
  }

 protected:
  virtual Result<std::optional<InputSet>> compute_set(const SetRequest& request) = 0;
  // Processor seconds of the thread that did most of a computation.
  void add_work(double seconds) { work_s_ += seconds; }
  // Remembers how many results on the task's own inputs are not finite.
  void note_given(const std::vector<Shaped>& tensors, const InputSet& set);
  std::vector<std::int64_t> not_finite_;  // by tensor, at most
  double reach_ = 0;                      // 0: not yet known
  int runs_ = 0;
  std::vector<std::string> labels_;

 private:
  double work_s_ = 0;
  double fastest_s_ = std::numeric_limits<double>::infinity();
};

struct CpuReferenceSettings {
  Policy policy = Policy::kContract;
  std::string worker;  // path of kernelpro-worker
  double timeout_s = 30;
};

// `task`, `c` and `module` must outlive the result.
Result<std::unique_ptr<CpuReference>> make_native_reference(const Task& task, const Case& c,
                                                            const Binary& reference,
                                                            const CpuReferenceSettings& settings);
Result<std::unique_ptr<CpuReference>> make_module_reference(const Task& task, const Case& c,
                                                            ModuleReference& module,
                                                            const CpuReferenceSettings& settings);

// Shared by references.
bool is_output(const Shaped& tensor);
// Size of an output as a reference writes it: doubles for floating types.
std::int64_t reference_bytes(const Shaped& tensor);
// Buffers for the inputs, and for outputs as a reference writes them.
Result<CpuBuffers> reference_buffers(const std::vector<Shaped>& tensors);
// How many of an output's expected values are not finite, or beyond its type.
std::int64_t out_of_range(const Shaped& output, const Expected& expected);
// Whether each output's type can hold all expected values of a probe, but for as many as are not
// finite in `given`, by tensor: results on the task's own inputs; may be empty.
bool representable(const std::vector<Shaped>& tensors, const InputSet& set,
                   const std::vector<std::int64_t>& given);
// Whether rounding leaves so much of a probe's output that comparing it is conclusive.
bool conclusive(const Shaped& output, const Admitted& admitted, const Rule& rule);
// Raises the scale of a probe's output to the least of its kind.
void make_room(DrawKind kind, Expected* expected);
// A copy of the inputs, nudged (measure/judge/probe_shapes.h).
std::vector<std::vector<char>> nudged_inputs(const Task& task, const std::vector<Shaped>& tensors,
                                             const InputSet& set, double by = 1);
// A copy of the inputs after these changes.
std::vector<std::vector<char>> changed_inputs(const std::vector<kp::ShapeSpec>& specs,
                                              const InputSet& set);
// Whether the norm of honest errors is to be known for what a request asks for.
bool wants_norm(const Task& task, Policy policy, const SetRequest& request);
// The same where few elements decide: none is known.
Deviation steady(const Shaped& output, const Deviation& nudged, const Expected& expected);

}  // namespace kernelpro
