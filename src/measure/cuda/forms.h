// SPDX-License-Identifier: Apache-2.0
// The form in which a PyTorch candidate is evaluated: as launch plans, one for each case, or in
// host form (docs/launch-plan.md). Known per evaluator, from its capture on. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "measure/cuda/module_plan.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

bool is_module(const Subject& subject);

class ModuleForms {
 public:
  // All must outlive it. `cases` may be filled later.
  ModuleForms(const Task& task, const EvaluateSettings& settings,
              const std::vector<CudaCase>& cases)
      : task_(task), settings_(settings), cases_(cases) {}

  // Whether it is a PyTorch candidate that has not been captured.
  bool to_capture(const Subject& subject) const;
  // A PyTorch candidate with launch plans, if every case has one; any other subject as it is.
  // `capture`: a process for those that are not known yet; may be null.
  Subject planned(const Subject& subject, CudaLink* capture);
  // From now on it runs in host form.
  void refuse(const Subject& subject, const std::string& reason);
  // Its plan was found correct.
  void trust(const Subject& subject);
  // Whether `form`, the form of `subject`, is a plan that nobody has found correct.
  bool in_doubt(const Subject& subject, const Subject& form) const;
  // The plan of case number `at`, once it was found correct; null: it runs in host form.
  const ModulePlan* plan_in_use(const Subject& subject, std::size_t at) const;
  // How long its capture took until it was ended for that; 0: it was not.
  double late_s(const Subject& subject) const;
  // One sentence.
  const std::string& why_host_form(const Subject& subject) const;
  // Notes of its captures, for the verdict.
  std::vector<std::string> notes(const Subject& subject) const;

 private:
  const ModulePlan* plan_of(const Binary& binary) const;

  const Task& task_;
  const EvaluateSettings& settings_;
  const std::vector<CudaCase>& cases_;
  std::map<std::string, ModuleForm> forms_;  // by binary and case
  std::set<std::string> sound_;              // those whose plans were found correct
};

}  // namespace kernelpro
