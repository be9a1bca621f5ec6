// SPDX-License-Identifier: Apache-2.0
// Evidence in, time account out (core/finding/account.h). Each part states its formula and its
// level; the parts of the call add up to its time and those of a kernel to the kernel's, exactly;
// what the evidence does not show is the part "unknown". Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/evidence/evidence.h"
#include "core/finding/account.h"
#include "diagnose/roofline/roofline.h"

namespace kernelpro {

// Kernels with a smaller share of the call's time have no account and are not diagnosed.
inline constexpr double kLeastShare = 0.1;
inline constexpr int kMostKernels = 4;

// Not known() without the time of the call.
Account make_account(const Evidence& evidence, const Roofline& roofline);

// What an operator needs by itself: its tensors' bytes at the copy bandwidth, or its products at
// the arithmetic rate, whichever is more; 0: the ceilings are unknown.
double operator_floor_us(const OperatorCall& call, const Evidence& evidence);

// Spends a time in parts: a part takes at most what is left, and the rest is unknown.
class Spending {
 public:
  explicit Spending(double us);
  double all() const { return all_; }
  double left() const { return left_; }
  // Returns what was taken; anything that is not a positive number takes nothing.
  double take(AccountPart part);
  // Ends with the unknown part, if anything is left. `why`: what evidence would tell.
  std::vector<AccountPart> close(std::string why);

 private:
  double all_, left_;
  std::vector<AccountPart> parts_;
};

// Bytes read from and written to device memory: of one kernel, and of all kernels of a call.
// nullopt: not counted, for the call in a tenth of the kernels' time or more.
std::optional<double> device_bytes(const Evidence& facts);
std::optional<double> device_bytes(std::span<const KernelEvidence> kernels);

// What a kernel needs of the call's floor, in microseconds of a call. 0: unknown.
struct KernelFloor {
  double us = 0;
  double memory_us = 0;  // of its bytes
};

// One kernel's account. `us`: its part of the call's time. `facts`: its own evidence, which is the
// call's when there is only one kernel.
KernelAccount kernel_account(const std::string& name, double us, const Evidence& evidence,
                             const Evidence& facts, const Roofline& roofline,
                             const KernelFloor& floor);

// The parts of a call on the CPU target.
std::vector<AccountPart> processor_parts(double us, const Evidence& evidence,
                                         const Roofline& roofline);

}  // namespace kernelpro
