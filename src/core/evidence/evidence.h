// SPDX-License-Identifier: Apache-2.0
// Observations about a candidate, under the metric registry's names, each with its source. Whatever
// could not be observed is listed by family with the reason; it is never a silent zero.
//
// A call may launch several kernels. Items with the scope of a kernel (core/evidence/metric.h) are
// then in `kernels`, the longest-running first; the evidence's own describe the whole call.
// Evidence without `kernels` is about a call with one kernel and holds all items together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/metric.h"
#include "core/evidence/missing.h"
#include "core/evidence/operators.h"
#include "core/evidence/places.h"

namespace kernelpro {

struct Observation {
  double value = 0;
  Level level = Level::kTiming;
  std::string source;  // "ptxas", "nvdisasm", "objdump", "timing", "task", "ceilings"
};

struct KernelEvidence;

class Evidence {
 public:
  // At the level of the metric's row. REQUIRES: `name` is registered and `value` is finite.
  void set(const std::string& name, double value, std::string source);
  // From a source that is not the usual one, at its level.
  void set(const std::string& name, double value, Level level, std::string source);
  std::optional<double> get(const std::string& name) const;
  const Observation* find(const std::string& name) const;
  void note_missing(Missing missing) { missing_.push_back(std::move(missing)); }
  // Its items, and what is noted as missing of it.
  void forget(Family family);

  // Texts that tools may quote, such as hot-loop disassembly by kernel.
  std::map<std::string, std::string> texts;
  std::vector<KernelEvidence> kernels;
  // Of a PyTorch module's call: the operators that launch something, in order; empty: unknown.
  std::vector<OperatorCall> operators;
  // Of a kernel: where its time goes. Scope and absence as for a kernel's items; why there are no
  // samples is under Family::kSamples.
  std::optional<Places> places;
  // Of a kernel: by metric of its machine code, the lines that contribute most.
  std::map<std::string, CodeLines> lines;
  // Of a kernel: what its source decides, in the order of the lines. Empty: the source was not at
  // hand.
  std::vector<SourceSite> sites;

  const std::map<std::string, Observation>& items() const { return items_; }
  const std::vector<Missing>& missing() const { return missing_; }

 private:
  std::map<std::string, Observation> items_;
  std::vector<Missing> missing_;
};

// All launches of one kernel within the call. `facts` has no kernels of its own and holds
// "kernel.share", this kernel's fraction of the summed kernel time, if known.
struct KernelEvidence {
  std::string name;  // demangled
  Evidence facts;
};

// Why `metric` was not observed, through its family; null: nothing tells. An entry that names the
// metric comes before one about the whole family.
const Missing* why_missing(const Evidence& evidence, std::string_view metric);

std::string evidence_to_json(const Evidence& evidence);
std::optional<Evidence> evidence_from_json(const std::string& json);

}  // namespace kernelpro
