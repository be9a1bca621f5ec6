// SPDX-License-Identifier: Apache-2.0
// Observations about a candidate, under the metric registry's names, each with its source. Whatever
// could not be observed is listed with the reason; it is never a silent zero.
//
// A call may launch several kernels. The evidence's own items describe the whole call (task,
// ceilings, timing, plan.*, trace.*); items about one kernel (launch__*, ptxas.*, sass.*, hardware
// counters) are in `kernels`, the longest-running first. Evidence without `kernels` is about a call
// with one kernel and holds all items together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kernelpro {

// From best to worst: a finding states the weakest level that it relies on.
enum class Level { kCounters, kStatic, kTiming };
std::string_view level_name(Level level);

struct Observation {
  double value = 0;
  Level level = Level::kTiming;
  std::string source;  // "ptxas", "nvdisasm", "objdump", "timing", "task", "ceilings"
};

struct Missing {
  std::string what;    // "SASS instruction mix"
  std::string reason;  // "nvdisasm was not found"
  std::string next;    // "install the CUDA toolkit's nvdisasm"
};

struct KernelEvidence;

class Evidence {
 public:
  // REQUIRES: `name` is registered and `value` is finite.
  void set(const std::string& name, double value, Level level, std::string source);
  std::optional<double> get(const std::string& name) const;
  const Observation* find(const std::string& name) const;
  void note_missing(Missing missing) { missing_.push_back(std::move(missing)); }

  // Texts that tools may quote, such as hot-loop disassembly by kernel.
  std::map<std::string, std::string> texts;
  std::vector<KernelEvidence> kernels;

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

std::string evidence_to_json(const Evidence& evidence);
std::optional<Evidence> evidence_from_json(const std::string& json);

}  // namespace kernelpro
