// SPDX-License-Identifier: Apache-2.0
// The judge's buffers for one case: several input sets, each with outputs and the expected results,
// and one workspace. All physical memory is created here; workers map what they are handed, and
// never the expected results. One thread, current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/protocol.h"
#include "core/task/deviation.h"
#include "core/task/mismatch.h"
#include "core/task/shapes.h"
#include "measure/worker/cuda/graph.h"
#include "measure/worker/cuda/kernels.h"
#include "measure/worker/cuda/memory.h"

namespace kernelpro {

// Result of a comparison, per output.
struct OutputComparison {
  std::uint64_t bad = 0, not_a_number = 0, unwritten = 0;
  std::uint64_t first = 0, last = 0;  // wrong elements
  double worst = 0;                   // core/task/policy.h's error; may be infinite
};

// Words or elements that changed although the candidate must not write them.
struct Intrusion {
  int slot = 0;      // of the layout: a tensor, or the workspace
  std::string what;  // "input", "before", "after"
  std::uint64_t count = 0;
  std::uint64_t where = 0;  // element index, or bytes from the tensor's start or end
  bool where_known = true;  // false: only the fact of a change is known
};

struct SetFindings {
  std::vector<OutputComparison> outputs;
  std::vector<Intrusion> intrusions;
};

struct ExpectedSummary {
  double rms = 0, low = 0, high = 0;
  std::uint64_t not_finite = 0;
  std::uint64_t seal = 0;  // of all its bytes
};

// Inverse of ordered() in judge.cu.
inline double from_ordered(std::uint64_t bits) {
  bits = bits >> 63 ? bits & ~(1ull << 63) : ~bits;
  return std::bit_cast<double>(bits);
}

class JudgeCase {
 public:
  // The first `sharing` sets have their parameters in common (equal in all of them); all sets share
  // one workspace. kBadInput when it does not fit.
  static Result<JudgeCase> open(const CudaDriver& cu, const CudaContext& context,
                                TrustedKernels& kernels, std::vector<JudgeTensor> tensors,
                                std::uint64_t workspace, int sets, int sharing);

  const AddressLayout& layout() const { return layout_; }
  const AddressLayout& reference_layout() const { return reference_layout_; }
  int sets() const { return count_; }
  const std::vector<JudgeTensor>& tensors() const { return tensors_; }
  // Descriptors of some of a set's slots, or of the expected results of some tensors.
  Result<std::vector<Fd>> share(int set, const std::vector<int>& slots, bool expected) const;
  // Whether this slot of this set has its own memory, not that of set 0.
  bool own_memory(int set, std::size_t slot) const;

  // A stage is the memory of one set for a process that runs a module: it sees no other. The
  // contents of a set are there only while a call is timed.
  static constexpr int kStages = 2;
  Result<void> open_stage(int stage);
  bool has_stage(int stage) const;
  Result<std::vector<Fd>> share_stage(int stage, const std::vector<int>& slots) const;
  // Poisons all of it, with a new key; its outputs as those of `set` are (-1: none).
  Result<void> clear_stage(int stage, int set);
  // The inputs and parameters of a set onto the stage, and the stage's outputs into the set.
  // Enqueued only.
  Result<void> reveal(int stage, int set);
  Result<void> collect(int stage, int set);
  // What else was changed on the stage since the set was revealed.
  Result<std::vector<Intrusion>> stage_intrusions(int stage, int set);

  // Draws inputs and parameters, each by its spec; one spec per tensor.
  Result<void> draw(int set, const kp::Key& key, const std::vector<kp::DrawSpec>& specs);
  // Runs the reference on a set's inputs; its results become the expected ones. With `again`, runs
  // twice over different poison: false when the results differ.
  Result<bool> run_reference(int set, const std::string& cubin, const LaunchPlan& plan, bool again);
  // Call after inputs and expected results are written: seals the inputs and summarizes the
  // results. `typical`: whether to use core/task/policy.h's scale for them, or their root mean
  // square.
  Result<std::vector<ExpectedSummary>> seal(int set, bool typical);
  // Changes floating parameters that are not constant to values near their own.
  Result<void> vary(int set, const kp::Key& key);
  // Changes the last digits of fp32 inputs (core/device/draw.h, lean_bits).
  Result<void> lean(int set, const kp::Key& key);
  // Changes inputs and parameters by the probes' shapes (core/task/shapes.h); one spec per tensor.
  // Whether any of them applies to the values.
  Result<bool> reshape(int set, std::uint64_t seed, const std::vector<kp::ShapeSpec>& specs);
  // Floating expected results into the outputs, in the outputs' types.
  Result<void> narrow(int set);
  // Of the outputs from the sealed expected results; by output. Zero for types without doubles.
  // `shapes`: of the outputs, for means along axes; may be empty.
  Result<std::vector<Deviation>> deviations(int set,
                                            const std::vector<std::vector<std::int64_t>>& shapes);
  // Replaces those given to `open`; by tensor.
  void set_tolerances(const std::vector<double>& tolerances);
  // A set's outputs hold another result of the reference: raises the set's scales until that result
  // passes (core/task/mismatch.h). By output. `seal` resets the scales.
  Result<std::vector<Admitted>> admit(int set);
  // The same from the result of `admit` for a set with contents of the same kind; by output.
  void set_least(int set, const std::vector<double>& least);
  // Sets whose inputs changed since they were sealed.
  Result<std::vector<int>> broken_seals();
  // Covers outputs and workspace; with `slack`, also the memory around every tensor.
  Result<void> poison(const std::vector<std::pair<int, std::uint64_t>>& keys, bool slack);
  // Compares the outputs of sets; with `intrusions`, also inputs and slack.
  Result<std::vector<SetFindings>> verify(const std::vector<int>& sets, bool intrusions);
  // Around a failure: which of `count` elements from `first` are wrong, actual and expected values.
  Result<void> window(int set, int output, std::uint64_t first, std::uint64_t count,
                      std::vector<unsigned char>* bad, std::vector<double>* got,
                      std::vector<double>* expected);
  // Bytes of a tensor in its own type; expected results of floating types always as doubles.
  Result<std::string> fetch(int set, int slot, bool expected);
  // Replaces `count` elements of an input from `first` by large values (floating types) or by those
  // from `other`; `restore` undoes the last change.
  Result<void> disturb(int set, int tensor, std::uint64_t first, std::uint64_t other,
                       std::uint64_t count, float large);
  Result<void> restore();

 private:
  struct Buffer {
    PhysicalMemory memory;
    std::uint64_t at = 0;          // our mapping of it
    std::uint64_t poison_key = 0;  // contents of its slack, and of the tensor unless it was written
  };
  struct Set {
    std::vector<std::shared_ptr<Buffer>> slots;
    std::vector<std::shared_ptr<Buffer>> expected;  // by tensor; null for inputs
    std::vector<double> rms, scale, least;          // by tensor, outputs
    bool typical = true;                            // false: errors are measured by `rms`
    std::vector<std::uint64_t> seals;               // by tensor, inputs
    std::vector<kp::DrawSpec> specs;                // as drawn here; empty if drawn elsewhere
    kp::Key key{};
    struct Known {
      std::vector<std::uint64_t> seals;  // of outputs that compared right
      std::vector<double> worst;
    };
    std::vector<Known> known;
  };
  struct Found {
    std::uint64_t count = 0, first_complement = 0;
  };

  Set& set_at(int set) { return sets_[static_cast<std::size_t>(set)]; }
  const Set& set_at(int set) const { return sets_[static_cast<std::size_t>(set)]; }
  bool is_input(std::size_t slot) const { return slot < tensors_.size() && !tensors_[slot].output; }
  std::uint64_t data_at(const Set& set, std::size_t slot) const;
  std::uint64_t expected_at(const Set& set, std::size_t tensor) const;
  Result<std::shared_ptr<Buffer>> make_buffer(std::uint64_t bytes);
  Result<void> make_sets(int sets, int sharing);
  Set& stage_at(int stage) { return set_at(count_ + stage); }
  const Set& stage_at(int stage) const { return set_at(count_ + stage); }
  Result<void> seal_data(std::uint64_t at, std::uint64_t bytes, std::uint64_t result);
  Result<std::vector<std::uint64_t>> input_seals(const std::vector<int>& sets);
  Result<std::vector<std::uint64_t>> expected_seals(const Set& set);
  Result<Surveyed> survey(const Set& set, std::size_t tensor);
  Result<double> scale_of_expected(const Set& set, std::size_t tensor);
  Result<void> add_means(const Set& set, std::size_t tensor, const std::vector<MeanAxis>& axes,
                         Deviation* found);
  Result<void> poison_buffer(Buffer* buffer, std::size_t slot, std::uint64_t key, bool slack);
  Result<void> compare_set(Set* set, const std::vector<std::uint64_t>& seals, SetFindings* found);
  Result<void> find_intrusions(const std::vector<int>& sets, std::vector<SetFindings>* all);
  Result<Intrusion> locate(const Set& set, std::size_t tensor);
  // The rule in the form of judge.cu's RuleSpec.
  struct RuleSpec {
    int dtype, floating, wide, allclose;
    double tolerance, absolute, relative, scale;
  };
  RuleSpec rule_spec(const Set& set, std::size_t tensor) const;

  // Results of kernels: zeroed before, read after. Offsets are into the scratch buffer.
  Result<void> zero_results(std::uint64_t bytes);
  template <class T>
  Result<std::vector<T>> results(std::size_t count) {
    std::vector<T> values(count);
    if (count > 0) KP_CUDA_TRY(cu_->MemcpyDtoH(values.data(), scratch_, count * sizeof(T)));
    return values;
  }

  const CudaDriver* cu_ = nullptr;
  TrustedKernels* kernels_ = nullptr;
  CUdevice device_ = 0;
  std::vector<JudgeTensor> tensors_;
  AddressLayout layout_;
  AddressLayout reference_layout_;
  std::uint64_t seal_key_ = 0;
  std::vector<Set> sets_;  // `count_` sets, then the stages
  int count_ = 0;
  PhysicalMemory scratch_memory_;
  AddressRange own_;  // our own mappings of everything; unmapped before the memory is released
  std::uint64_t own_next_ = 0;
  std::uint64_t scratch_ = 0;  // small device buffer for results
  std::uint64_t scratch_bytes_ = 0;
  std::string disturbed_bytes_;
  std::uint64_t disturbed_at_ = 0;
};

}  // namespace kernelpro

#endif
