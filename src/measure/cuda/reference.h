// SPDX-License-Identifier: Apache-2.0
// Fills input sets of the cuda target: draws inputs and has the task's reference compute the
// expected results. A native reference runs in the judge's process, a PyTorch module in its own
// process on the judge's memory. Sets that already hold the requested contents are left alone.
#pragma once

#include <cstdint>
#include <string>

#include "measure/cuda/case.h"
#include "measure/judge/evaluator.h"
#include "measure/judge/probe_shapes.h"

namespace kernelpro {

// A module's name for the set whose expected results are another set's outputs.
inline constexpr int kRoundedSet = 1000;

class CudaReference {
 public:
  // All must outlive the object.
  CudaReference(CudaLink& judge, const Task& task, const EvaluateSettings& settings)
      : judge_(judge), task_(task), settings_(settings) {}

  // Captures the case's native reference, or hands the case's memory to the module's process. Fails
  // with kTask if the reference is not usable.
  Result<void> attach(CudaCase& state);

  struct Filled {
    bool changed = true;  // false: the probe equals the task's own inputs here
    bool usable = true;   // false: some expected values are not finite in the output's type, or
                          // rounding alone changes them too much, at every level of the probe
  };
  // Fails with kTask on a reference that crashes, is random or disagrees with itself.
  Result<Filled> fill(CudaCase& state, int set, const SetContent& content);
  // The inputs that may be made sparse: none unless the results are linear in each of them; those
  // that are factors, if any, else all (measure/judge/probe_shapes.h). Uses `set`.
  Result<std::vector<int>> linear_inputs(CudaCase& state, int set);
  // Recomputes whatever the set holds: for inputs that were changed on purpose. Draws nothing.
  Result<void> recompute(CudaCase& state, int set);
  // Milliseconds that the module has computed on the GPU so far, for all expected results.
  double module_ms() const { return module_ms_; }

 private:
  // One level of fill().
  Result<Filled> fill_once(CudaCase& state, int set, const SetContent& content);
  bool shows_something(const CudaCase& state, int set, DrawKind kind) const;
  int& level_of(CudaCase& state, const SetContent& content) const;
  Result<void> draw(CudaCase& state, int set, const SetContent& content, bool* changed);
  Result<void> lean(const CudaCase& state, int set, const kp::Key& key);
  Result<void> compute(CudaCase& state, int set);
  Result<ComputeFacts> ask_module(const CudaCase& state, int set, Numerics numerics, bool twice);
  Result<void> compute_module(CudaCase& state, int set, bool twice);
  Result<void> compute_native(CudaCase& state, int set, bool twice);
  Result<void> look(CudaCase& state, int set, bool typical);
  Result<void> admit_rounding(CudaCase& state, int set, const SetContent& content);
  Result<void> tell_least(CudaCase& state, int set, const std::vector<Admitted>& admitted);
  // `lost`: may be null.
  Result<void> measure_rounding(CudaCase& state, int set, std::vector<Deviation>* lost,
                                std::vector<Admitted>* admitted);
  Result<void> attach_outputs(CudaCase& state, int set);
  Result<std::vector<Admitted>> ask_admitted(const CudaCase& state, int set);
  bool wants_nudging(const CudaCase& state, DrawKind kind) const;
  Result<bool> compute_nudged(CudaCase& state, int set, const SetContent& content);
  Result<void> nudge_native(CudaCase& state, int set, const kp::Key& key, double by);
  Result<void> make_room(CudaCase& state, int set, DrawKind kind);
  Result<void> admit_nudged(CudaCase& state, int set, const SetContent& content);
  Result<bool> reshape(const CudaCase& state, int set, std::uint64_t seed,
                       const std::vector<kp::ShapeSpec>& specs);
  Result<void> shape_drawn(CudaCase& state, int set, const SetContent& content, bool* changed);
  bool wants_norm(const CudaCase& state, const SetContent& content) const;
  Result<void> measure_norm(CudaCase& state, int set, const SetContent& content);
  Result<void> measure_reach(CudaCase& state, int set, const SetContent& content);
  Result<bool> scales(CudaCase& state, int set, int tensor, bool* factor);
  Result<std::optional<std::vector<OutputLook>>> look_at_background(CudaCase& state, int set,
                                                                    const SetContent& content);
  Result<std::optional<std::vector<OutputLook>>> look_at(CudaCase& state, int set,
                                                         const SetContent& given,
                                                         const std::vector<kp::ShapeSpec>& specs);

  CudaLink& judge_;
  const Task& task_;
  const EvaluateSettings& settings_;
  double module_ms_ = 0;
};

// Of a set's expected results that are floating.
std::vector<OutputLook> floating_looks(const CudaCase& state, int set);
// Whether an output has so few elements that its rounding is to be measured several times.
bool few_elements(const CudaCase& state);
// Whether rounding changes so many elements of an output so much that comparing it is pointless.
bool is_noise(const JudgeTensor& output, const Admitted& needed);

// Why the task is degenerate as far as the sets of the rotation show, or "": an output that is
// constant, entirely NaN, or the same for different inputs.
std::string degenerate_output(const CudaCase& state);

}  // namespace kernelpro
