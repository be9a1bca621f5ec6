// SPDX-License-Identifier: Apache-2.0
// Energy per call of a native candidate, compared with the incumbent, by the board's energy
// counter. Speed is judged elsewhere (measure/cuda/trial.h): here calls run back to back, long
// enough for the counter's resolution, over several sets of buffers that together exceed L2, all
// mapped at once, so that nothing is flushed or mapped in between.
#pragma once

#include <string>
#include <variant>

#include "core/evaluation/evaluation.h"
#include "measure/cuda/trial.h"
#include "measure/judge/evaluator.h"

namespace kernelpro {

// Addresses of `copies` sets of a case's buffers, one after the other: slot i of copy r is slot r *
// n + i. The workspace is a slot like the others.
AddressLayout copies_layout(const AddressLayout& one, int copies);
// The part of copies_layout that belongs to one copy, as a separate layout.
AddressLayout copy_layout(const AddressLayout& one, int copies, int copy);
// A plan-form plan for copy `copy` of copies_layout: its tensors are that copy's slots.
LaunchPlan plan_for_copy(const LaunchPlan& plan, const AddressLayout& one, int copy);

// How many sets of `set_bytes` exceed twice an L2, out of `sets`.
int copies_wanted(double set_bytes, double l2_bytes, int sets);

// The timed case that moves most bytes; cases.size() if none is timed.
std::size_t largest_timed_case(const Task& task, const std::vector<CudaCase>& cases);

// REQUIRES: fresh workers; `incumbents` may be null without an incumbent. `gpu`: UUID. An Outcome
// is the candidate's fault: outputs are compared after each window. Fails with kEnvironment where
// the energy cannot be read, and with kBadInput for PyTorch candidates, whose process is not ours.
Result<std::variant<Energy, Outcome>> measure_energy(CudaShop& shop, CudaWorker& worker,
                                                     CudaWorker* incumbents, const std::string& gpu,
                                                     std::size_t at, const Subject& subject,
                                                     const Subject* incumbent,
                                                     const EnergyPlan& plan);

}  // namespace kernelpro
