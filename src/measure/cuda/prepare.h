// SPDX-License-Identifier: Apache-2.0
// What must hold before candidates are judged on the cuda target: the task's cases are open at the
// judge, their input sets are filled, references agree with themselves and each other, and no
// output is degenerate. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/cuda/case.h"
#include "measure/cuda/reference.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

class CudaPreparation {
 public:
  // All must outlive the object.
  CudaPreparation(const Task& task, const EvaluateSettings& settings, CudaLink& judge,
                  CudaReference& reference, std::vector<CudaCase>& cases)
      : task_(task), settings_(settings), judge_(judge), reference_(reference), cases_(cases) {}

  // Fills `cases`. Fails with kTask for a task that cannot be judged, with kBadInput when a case
  // does not fit into the GPU memory that is free. REQUIRES: references of a native task.
  Result<void> prepare(const References& references, const GpuRoom& room, double granularity);
  // New contents for every set.
  Result<void> redraw();
  // Of every verdict on the task. Valid after `prepare`.
  const std::vector<std::string>& labels() const { return labels_; }

 private:
  Result<void> open_cases(const GpuRoom& room, double granularity);
  Result<void> fill_case(CudaCase& state);
  Result<void> widen_tolerances(CudaCase& state);
  Result<void> tell_rules(const CudaCase& state);
  Result<void> cross_check(const Binary& host);
  void find_labels();
  bool contract() const { return settings_.policy == Policy::kContract; }

  const Task& task_;
  const EvaluateSettings& settings_;
  CudaLink& judge_;
  CudaReference& reference_;
  std::vector<CudaCase>& cases_;
  std::vector<std::string> labels_;
};

}  // namespace kernelpro
