// SPDX-License-Identifier: Apache-2.0
// Which measured ceiling applies to a task's arithmetic, how long the task takes at the ceilings,
// and evidence as seen at them.
#pragma once

#include "core/evidence/evidence.h"
#include "core/machine/machine.h"
#include "core/task/task.h"

namespace kernelpro {

// Matrix units run TF32 at half the rate of 16-bit types (NVIDIA's figures for Ampere and Hopper;
// an H200 measured 400 and 790 TFLOP/s).
inline constexpr double kTf32Rate = 0.5;

// Products of fp32 operands on matrix units, which is another ceiling than matmul_rate's: each in
// three bf16 parts, whose 24 bits are all of its own, and six of the nine products of parts (the
// others are below an fp32 product's last digit). Henry, Tang, Heinecke: Leveraging the bfloat16
// artificial intelligence datatype for higher-precision computations, ARITH 2019.
inline constexpr double kProductsOfParts = 6;
// Two fp16 parts, scaled so that the low part keeps its digits, need three products and keep 22
// bits: the fewest that a contract of fp32 can be met with. Ootomo, Yokota: Recovering single
// precision accuracy from tensor cores while surpassing the FP32 theoretical peak, 2022.
inline constexpr double kFewestProducts = 3;
// What is likely: the geometric middle of the two, as kernels differ in which they choose.
inline constexpr double kLikelyProducts = 4.24;

// Whether a kernel's machine code has matrix instructions that are faster than multiply-adds: those
// in double precision are not. False if unknown.
bool has_matrix_products(const Evidence& kernel);
// Whether some of the candidate's kernels have.
bool uses_matrix_units(const Evidence& evidence);
// Whether it multiplies operands in parts on them: the contract asks for fp32.
bool multiplies_in_parts(const Evidence& evidence);

// The fewest 16-bit products on matrix units that meet the contract for each of the task's, with
// inputs that are not half precision: kFewestProducts for fp32; for TF32 one, since fp16 has its 10
// bits if a power of two scales the operands. A TF32 product takes as long as two fp16 ones.
double fewest_products(Precision precision);
double fewest_products(const Evidence& evidence);

// Whether every floating-point input is fp16 or bf16, so that matrix units multiply it exactly.
bool has_half_inputs(const Task& task);

// Peak FLOP/s for matrix products under the task's contract: the matrix units' rate for half
// inputs, kTf32Rate of it where TF32 is allowed, else that of fp32 multiply-adds. 0: unknown.
// Of a candidate that uses matrix units: theirs over fewest_products(), if that is more.
double matmul_rate(const Evidence& evidence);
double matmul_rate(const Task& task, const Ceilings& ceilings);

// The least time of one call at the measured ceilings, in microseconds; 0: unknown.
struct Floors {
  double memory_us = 0;   // compulsory bytes over the copy bandwidth
  double compute_us = 0;  // matrix products over matmul_rate, other operations over the fma rate
};
Floors floors(const Evidence& evidence);
Floors floors(const Task& task, const Case& c, const Ceilings& ceilings);
// The compute floor with the fewest 16-bit products on matrix units that meet the contract (see
// fewest_products); 0: unknown, or no less than Floors::compute_us.
double floor_in_halves_us(const Task& task, const Case& c, const Ceilings& ceilings);

// Evidence of a candidate holds what was observed of it. The machine's ceilings, which may be
// measured again, stay with the machine; whoever diagnoses or shows the evidence puts them in:
// ceiling.*, machine.parallel_units, the task's floors, and what is missing of these
// (Family::kCeilings). Replaces earlier ones.
void set_ceilings(const Machine& machine, Evidence* evidence);
Evidence at_ceilings(const Machine& machine, Evidence evidence);

}  // namespace kernelpro
