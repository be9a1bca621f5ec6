// SPDX-License-Identifier: Apache-2.0
// The judge's side of one case of the cuda target, as the supervisor drives it: buffers, input
// sets, poison, comparisons. The judge is a separate process (measure/worker/cuda/judge.cc).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/evaluation/evaluation.h"
#include "core/plan/binary.h"
#include "core/plan/protocol.h"
#include "core/task/deviation.h"
#include "core/task/key.h"
#include "core/task/mismatch.h"
#include "measure/cuda/link.h"
#include "measure/cuda/memory_plan.h"
#include "measure/judge/short_sums.h"
#include "task/reference/module_reference.h"

namespace kernelpro {

// Identifies the inputs and expected results of a set.
struct SetContent {
  kp::Key key{};
  DrawKind kind = DrawKind::kGiven;
  bool operator==(const SetContent&) const = default;
};

// Its kind, and the tensor that it names (measure/judge/probe_shapes.h); -1: none.
std::pair<DrawKind, int> named_kind(const SetContent& content, const Task& task);

// Summary of one output's expected result.
struct ExpectedLook {
  double rms = 0, low = 0, high = 0;
  std::uint64_t not_finite = 0;
  std::uint64_t seal = 0;  // equal contents have equal seals
};

struct CudaCase {
  const Case* c = nullptr;
  std::vector<Shaped> tensors;
  std::vector<std::string> labels;  // by tensor, PyTorch's parameter names; may be empty
  std::vector<JudgeTensor> judged;
  AddressLayout layout;
  AddressLayout reference_layout;
  MemoryPlan plan;  // sets [0, plan.rotation) rotate; the others are for probes and fresh contents
  // By set: slot and descriptor of memory that it does not share with set 0.
  std::vector<std::vector<std::pair<int, Fd>>> memory;
  // By stage: descriptors of its slots' memory (measure/cuda/host_side.h).
  std::vector<std::vector<std::pair<int, Fd>>> stages;
  std::vector<std::optional<SetContent>> contents;  // by set; nullopt: unknown, must be filled
  std::vector<std::vector<ExpectedLook>> looks;     // by set, by output

  Binary reference;                        // native tasks
  LaunchPlan reference_plan;               // of it
  Numerics numerics = Numerics::kFloat64;  // of a module's results
  std::vector<char> lesser;                // by set: results in strict fp32, for lack of memory
  std::map<DrawKind, std::vector<Admitted>> admitted;  // what rounding needs, by output
  std::set<DrawKind> idle;                             // probes that change nothing here
  // Of kinds, and the tensors that they name: the level that shows something, or the last one
  // (measure/judge/probe_shapes.h). The first where there is none.
  std::map<std::pair<DrawKind, int>, int> levels;
  std::vector<std::uint64_t> not_finite;   // results on the task's own inputs, by output, at most
  std::optional<std::vector<int>> linear;  // inputs in which the results are linear; once known
  bool addend = false;                     // something else is added to those results
  std::vector<Contraction> contractions;   // among those
  std::map<DrawKind, std::vector<Deviation>> nudged;  // of kinds that show products, by output
  // Of kinds, and the tensors that they name; by output: of the reference with rounded operands,
  // where shows_norm; empty: not known.
  std::map<std::pair<DrawKind, int>, std::vector<Deviation>> norms;
  std::map<std::pair<DrawKind, int>, std::vector<Deviation>> lost;  // likewise, where shows_lost
  double reach = 0;           // inputs that a result depends on (measure/judge/precision.h); 0: ?
  bool multiplies = false;    // matrix products: means of errors along axes tell
  bool self_checked = false;  // the reference agreed with itself
  double reference_s = 0;     // of the quickest draw and computation so far, as given

  int sets() const { return plan.sets(); }
  // The set whose contents change: an extra one, or the last of the rotation.
  int spare() const { return plan.extra > 0 ? plan.rotation : plan.rotation - 1; }
  // The set for the kind of probe at place `number`: where there is memory for it, one that it
  // shares with few other kinds and that keeps its contents.
  int probe_set(std::size_t number) const {
    return plan.extra > kProbeSets
               ? plan.rotation + 1 + static_cast<int>(number % static_cast<std::size_t>(kProbeSets))
               : spare();
  }
  // Whether a set has its parameters in common with others, which must not change.
  bool shares_parameters(int set) const { return plan.share_parameters && set < plan.rotation; }
};

// Opens a planned case at the judge: memory, layouts, descriptors.
Result<CudaCase> open_case(CudaLink& judge, const Task& task, const Case& c, Policy policy,
                           const MemoryPlan& plan);

using SetKeys = std::vector<std::pair<int, std::uint64_t>>;

// Varied poison over outputs and workspace; with `slack` also around every tensor.
Result<void> poison(CudaLink& judge, const CudaCase& state, const SetKeys& keys, bool slack);

struct SetVerdict {
  int set = 0;
  Outcome outcome;  // WrongResult, or Rejected for an intrusion
};

// The first set, in the given order, whose outputs are wrong, or nullopt. `intrusions` also checks
// whether inputs or memory around tensors changed. If all is right, poisons the sets of
// `then_poison` anew. Raises `max_error` to the largest error over its allowance.
Result<std::optional<SetVerdict>> verify(CudaLink& judge, const CudaCase& state,
                                         const std::vector<int>& sets, bool intrusions,
                                         const SetKeys& then_poison, double* max_error);

// How far a set's outputs are from its expected results, by output. Only with a wide plan.
Result<std::vector<Deviation>> deviations(CudaLink& judge, const CudaCase& state, int set);

// The fault in what a candidate changed, as the judge found it; nullopt: nothing.
std::optional<Outcome> intrusion_outcome(const CudaCase& state, const Json& intrusions);

// Forgets the contents of sets whose inputs were modified. True if there were any.
Result<bool> forget_broken_sets(CudaLink& judge, CudaCase& state);

// Bytes of a tensor, or of its expected result (floating types as doubles), through a file.
Result<std::string> fetch_tensor(CudaLink& judge, const CudaCase& state, int set, int tensor,
                                 bool expected);

// A message about a set of a case.
Json about(const CudaCase& state, const char* what, int set);

inline constexpr double kJudgeTimeout = 120;

}  // namespace kernelpro
