// SPDX-License-Identifier: Apache-2.0
#include "measure/cuda/forms.h"

#include <algorithm>
#include <utility>

#include "core/task/key.h"

namespace kernelpro {

namespace {

constexpr double kBuildTimeout = 180;  // a PyTorch candidate may compile extensions

std::string form_key(const Binary& binary) { return binary.hash + "/" + binary.case_name; }

}  // namespace

bool is_module(const Subject& subject) { return subject.binaries[0].form == Binary::Form::kModule; }

const ModulePlan* ModuleForms::plan_of(const Binary& binary) const {
  const auto known = forms_.find(form_key(binary));
  return known == forms_.end() ? nullptr : std::get_if<ModulePlan>(&known->second);
}

bool ModuleForms::to_capture(const Subject& subject) const {
  const auto known = [&](const Binary& binary) { return forms_.count(form_key(binary)) != 0; };
  return is_module(subject) &&
         !std::all_of(subject.binaries.begin(), subject.binaries.end(), known);
}

Subject ModuleForms::planned(const Subject& subject, CudaLink* capture) {
  if (!is_module(subject)) return subject;
  // All cases of a worker lie at one place.
  std::uint64_t place = fresh_secret();
  for (const Binary& binary : subject.binaries) {
    if (const ModulePlan* made = plan_of(binary)) place = made->place;
  }
  Subject result = subject;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Binary& source = subject.binaries[i];
    if (forms_.count(form_key(source)) == 0 && capture != nullptr) {
      forms_[form_key(source)] = capture_module(*capture, cases_[i], place, task_, settings_.policy,
                                                source, kBuildTimeout);
    }
    const ModulePlan* made = plan_of(source);
    if (made == nullptr) return subject;
    Binary& binary = result.binaries[i];
    binary.form = Binary::Form::kPlanForm;
    binary.plan = made->plan;
    binary.place = made->place;
    binary.images = made->images;
  }
  return result;
}

void ModuleForms::refuse(const Subject& subject, const std::string& reason) {
  for (const Binary& binary : subject.binaries) forms_[form_key(binary)] = HostForm{reason};
}

void ModuleForms::trust(const Subject& subject) { sound_.insert(form_key(subject.binaries[0])); }

bool ModuleForms::in_doubt(const Subject& subject, const Subject& form) const {
  return is_module(subject) && !is_module(form) && sound_.count(form_key(subject.binaries[0])) == 0;
}

const ModulePlan* ModuleForms::plan_in_use(const Subject& subject, std::size_t at) const {
  for (const Binary& binary : subject.binaries) {
    if (plan_of(binary) == nullptr) return nullptr;
  }
  const bool sound = sound_.count(form_key(subject.binaries[0])) != 0;
  return sound && at < subject.binaries.size() ? plan_of(subject.binaries[at]) : nullptr;
}

const std::string& ModuleForms::why_host_form(const Subject& subject) const {
  for (const Binary& binary : subject.binaries) {
    const auto known = forms_.find(form_key(binary));
    const auto* form = known == forms_.end() ? nullptr : std::get_if<HostForm>(&known->second);
    if (form != nullptr) return form->reason;
  }
  static const std::string kUnknown = "it was not captured";
  return kUnknown;
}

double ModuleForms::late_s(const Subject& subject) const {
  double late = 0;
  for (const Binary& binary : subject.binaries) {
    const auto known = forms_.find(form_key(binary));
    const auto* form = known == forms_.end() ? nullptr : std::get_if<HostForm>(&known->second);
    if (form != nullptr) late = std::max(late, form->late_s);
  }
  return late;
}

std::vector<std::string> ModuleForms::notes(const Subject& subject) const {
  std::vector<std::string> all;
  for (const Binary& binary : subject.binaries) {
    if (const ModulePlan* made = plan_of(binary)) {
      all.insert(all.end(), made->notes.begin(), made->notes.end());
    }
  }
  return all;
}

}  // namespace kernelpro
