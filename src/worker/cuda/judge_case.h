// SPDX-License-Identifier: Apache-2.0
// The judge's buffers for one case: several input sets, each with outputs and the expected results,
// and one workspace. All physical memory is created here; workers map what they are handed, and
// never the expected results. One thread, current context.
#pragma once

#if KERNELPRO_HAVE_CUDA

#include <cstdint>
#include <string>
#include <vector>

#include "core/protocol.h"
#include "worker/cuda/graph.h"
#include "worker/cuda/kernels.h"
#include "worker/cuda/memory.h"

namespace kernelpro {

// What a comparison found, per output. Mirrors struct Comparison of judge.cu.
struct OutputComparison {
  std::uint64_t bad = 0, not_a_number = 0, unwritten = 0;
  std::uint64_t first = ~0ull, last = 0;
  std::uint64_t worst_bits = 0;
};

// Words or elements that changed although nobody may write them.
struct Intrusion {
  int slot = 0;      // of the layout: a tensor, or the workspace
  std::string what;  // "input", "before", "after"
  std::uint64_t count = 0;
  std::uint64_t where = 0;  // element index, or bytes from the tensor's start or end
};

struct ExpectedSummary {
  double rms = 0, low = 0, high = 0;
  std::uint64_t not_finite = 0;
};

class JudgeCase {
 public:
  static Result<JudgeCase> open(const CudaDriver& cu, const CudaContext& context,
                                TrustedKernels& kernels, std::vector<JudgeTensor> tensors,
                                std::uint64_t workspace, int sets);

  const AddressLayout& layout() const { return layout_; }
  const AddressLayout& reference_layout() const { return reference_layout_; }
  int sets() const { return static_cast<int>(sets_.size()); }
  const std::vector<JudgeTensor>& tensors() const { return tensors_; }
  // Descriptors of a set's slots in the layout's order.
  Result<std::vector<Fd>> share(int set) const;

  Result<void> draw(int set, std::uint64_t seed);
  // Runs the reference on a set's inputs; its results become the expected ones. With `again`, runs
  // twice over different poison and counts the 32-bit words that differ.
  Result<std::uint64_t> run_reference(int set, const std::string& cubin, const LaunchPlan& plan,
                                      bool again);
  Result<std::vector<ExpectedSummary>> summarize(int set);
  // Covers outputs, workspace and the slack around every tensor.
  Result<void> poison(int set, std::uint64_t key);
  Result<std::vector<OutputComparison>> compare(int set);
  Result<std::vector<Intrusion>> intrusions(int set);
  // Around a failure: which of `count` elements from `first` are wrong, what is there, what should.
  Result<void> window(int set, int output, std::uint64_t first, std::uint64_t count,
                      std::vector<unsigned char>* bad, std::vector<double>* got,
                      std::vector<double>* expected);
  // Raw bytes of a tensor, or of its expected result.
  Result<std::string> fetch(int set, int slot, bool expected);

 private:
  struct Set {
    std::vector<PhysicalMemory> memory;    // by slot; the workspace's is shared by all sets
    std::vector<PhysicalMemory> expected;  // by tensor; empty for inputs
    std::vector<std::uint64_t> at;         // where we have mapped each slot's memory
    std::vector<std::uint64_t> expected_at;
    std::vector<double> rms;
    std::uint64_t seed = 0;
    std::uint64_t poison_key = 0;
  };

  std::uint64_t data_at(const Set& set, std::size_t slot) const;
  std::uint64_t expected_data_at(const Set& set, std::size_t tensor) const;
  Result<void> map_own(Set* set);
  Result<void> slack_intrusions(const Set& set, std::size_t slot, std::vector<Intrusion>* out);
  Result<void> run_counter(std::uint64_t* changed, std::uint64_t* where);
  Result<void> reset_counter();

  const CudaDriver* cu_ = nullptr;
  TrustedKernels* kernels_ = nullptr;
  CUdevice device_ = 0;
  std::vector<JudgeTensor> tensors_;
  std::uint64_t workspace_ = 0;
  AddressLayout layout_;
  AddressLayout reference_layout_;
  std::vector<Set> sets_;
  AddressRange own_;  // our own mappings of everything
  std::uint64_t own_next_ = 0;
  PhysicalMemory scratch_memory_;
  std::uint64_t scratch_ = 0;  // small device buffer for results
};

}  // namespace kernelpro

#endif
