// SPDX-License-Identifier: Apache-2.0
// A PyTorch module as the reference of a task: one persistent Python process (python/), which is
// trusted with the task's data but not with the machine (module_process.h). It describes the
// module, draws inputs with the module's get_inputs, and computes expected results, all in buffers
// owned by the judge: physical GPU memory (descriptors of CUDA virtual-memory handles) on the cuda
// target, shared memory on the cpu target. One thread at a time; calls block. The process ends with
// the object.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "core/task/module.h"
#include "core/task/task.h"
#include "task/reference/python_command.h"
#include "task/reference/shared_buffer.h"

namespace kernelpro {

struct ReferenceSettings {
  std::string python;  // interpreter; "" = $KERNELPRO_PYTHON, else python3
  TargetKind target = TargetKind::kCuda;
  std::string gpu;     // CUDA_VISIBLE_DEVICES for the process; "" inherits it
  std::string folder;  // of the module's file, which may import and read what lies there
  // For one command; a module that hangs is killed after it. KERNELPRO_MODULE_SECONDS wins.
  double timeout_s = 120;
  // Limit of the process; 0: KERNELPRO_MODULE_MEMORY, else a share of available memory.
  std::int64_t memory_bytes = 0;
};

// How a set's inputs and parameters are drawn. Probes change distributions, not shapes:
//   given:       get_inputs() under the set's seed, on the device; parameters as constructed;
//   centred:     floating inputs that never change sign are shifted by their mean; else as given;
//   scaled:      floating inputs times 64 (times 4 for half types); else as given;
//   filled:      rows, columns and channels of zeros in floating inputs get values of others;
//   parameters:  floating parameters that are constant (all ones, all zeros) get noise added;
//   kernelbench: exactly KernelBench's tensors for trial `seed` (drawn on the CPU, cast, moved).
// For the others the module draws as given, and the caller changes the values (measure/judge/
// probes.h; a row for each kind is in measure/judge/probe_rows.cc):
//   lowbits:     the last digits of fp32 inputs all round one way;
//   tiny, heavy, repeated, rows, top: floating inputs get small, heavy-tailed, repeated values,
//   rows
//                and channels of different size, rows full of near-maximum values;
//   sparse:      one fp32 input in which the results are linear is nearly all zero;
//   large parameters, tiny parameters: some floating parameters times a power of two;
//   ends, equal, ramp: integers at both ends of their range, all equal, sorted or all different;
//   constants:   constant inputs no longer are;
//   few inputs, few parameters: few elements change, as in all tensors but integers that differ;
//   fractions:   floating inputs that hold whole numbers get digits after the point;
//   outliers:    one element of many rows gets large or changes its sign;
//   short sums:  of two inputs that are multiplied and added up, either is negligible in one half
//                of the sums (measure/judge/short_sums.h);
//   dim sums:    likewise, but all that is not needed is only small, not negligible;
//   lone:        one of several floating inputs gets so large that it matters beside the others;
//   faint:       one that may be added to the results gets so small that it hides nothing;
//   zeros:       half of the elements of floating inputs are zero;
//   runs:        integers come in runs of equal ones;
//   few digits:  a few of the floating inputs that are whole numbers get digits after the point;
//   sparing:     few elements of the inputs count, since all others have one value beside which
//   they
//                decide the results.
enum class DrawKind {
  kGiven,
  kCentred,
  kScaled,
  kFilled,
  kParameters,
  kKernelBench,
  kLowBits,
  kTiny,
  kHeavy,
  kRepeated,
  kRows,
  kTop,
  kSparse,
  kShortSums,
  kDimSums,
  kLargeParameters,
  kTinyParameters,
  kEnds,
  kEqual,
  kRamp,
  kConstants,
  kFewInputs,
  kFewParameters,
  kFractions,
  kOutliers,
  kLone,
  kFaint,
  kSparing,
  kZeros,
  kRuns,
  kFewDigits,
  kKinds  // no kind: how many there are
};

// Arithmetic in which the module computes expected results:
//   float64:  module and inputs as float64;
//   strict:   declared dtypes with TF32 and reduced-precision reductions off;
//   kernelbench: declared dtypes, PyTorch's default flags, inputs cast as KernelBench casts them;
//   rounded:  float64 again, with every operator's operands rounded as the task's precision may
//             round them, in another way at each call (python/kernelpro_torch/rounding.py);
//   tight:    likewise, by as much as honest errors change the norm of the results.
enum class Numerics { kFloat64, kStrict, kKernelBench, kRounded, kTight };

struct DrawFacts {
  bool changed = true;  // false: the probe is the same as `given` for this module
};

struct ComputeFacts {
  double milliseconds = 0;  // of the computation, device time
  double processor_s = 0;   // of the thread that computes, with what it copies and draws
  // Two computations with different random states differ: dropout, noise, a random initial state.
  // Set only with `twice`; "" = they agree within rounding.
  std::string random;
};

class ModuleReference {
 public:
  // Starts the process, which imports torch in the background; returns at once.
  static Result<std::unique_ptr<ModuleReference>> start(const ReferenceSettings& settings);
  virtual ~ModuleReference() = default;

  // Loads a file. `dims` replaces integers at its top level. kTask if the file does not load, lacks
  // Model, get_inputs or get_init_inputs, or takes or returns values that a task cannot have; the
  // message has the end of the Python traceback.
  virtual Result<ModuleDescription> describe(const std::string& source, const std::string& path,
                                             const std::map<std::string, std::int64_t>& dims) = 0;

  // Shares one set's buffers with the process; describes `c` (its dims) first if needed.
  virtual Result<void> attach(const Task& task, const Case& c, int set,
                              const std::vector<SharedBuffer>& buffers) = 0;
  // Fills inputs and parameters of a set. Equal arguments give equal bits on one machine.
  virtual Result<DrawFacts> draw(const Case& c, int set, std::uint64_t seed, DrawKind kind) = 0;
  // Computes from the inputs and parameters in the set's buffers into its expected ones. Running
  // statistics are restored before each computation and discarded after it.
  virtual Result<ComputeFacts> compute(const Case& c, int set, Numerics numerics, bool twice) = 0;
  // Detaches a case's buffers, so that their memory can be released.
  virtual Result<void> detach(const Case& c) = 0;
  virtual std::string versions() const = 0;  // "PyTorch 2.11.0, CUDA 13.0"
};

// Starts a reference for a task opened earlier, from the source stored in the task; the file may be
// gone. `python`: as ReferenceSettings::python. REQUIRES: task.module.
Result<std::unique_ptr<ModuleReference>> restart_module(const Task& task, TargetKind target,
                                                        const std::string& gpu,
                                                        const std::string& python = "");

}  // namespace kernelpro
