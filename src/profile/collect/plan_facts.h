// SPDX-License-Identifier: Apache-2.0
// Facts from a call's launch plan before anything runs: the number of nodes, their dependences, and
// what they pass to each other through memory. Pure.
//
// The bytes that a kernel may touch are guessed from its parameters: from each layout address in
// them to the next address that any node of the plan names. Inputs and parameters that are const in
// the mangled name are only read; the rest may be read and written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/plan/launch_plan.h"
#include "core/task/task.h"

namespace kernelpro {

struct PlanMemory {
  AddressLayout layout;      // layout of the plan's addresses
  std::vector<bool> inputs;  // by slot: kernels must not write it. Empty: unknown
  // The most bytes that one launch can have written, by mangled name, where known (written.h).
  std::map<std::string, double> written;
};

// For plans whose parameters name tensors instead of addresses (plan form), and as the starting
// point for others: slots in the order of the task's tensors.
PlanMemory plan_memory(const Task& task, const Case& c);

struct PlanFacts {
  std::map<std::string, double> call;  // plan.*
  // By mangled name: kernel.launches, kernel.concurrent, kernel.handed_bytes.
  std::map<std::string, std::map<std::string, double>> kernels;
};

// A plan that has a problem() gives no facts. Memory facts are omitted without a layout or for a
// graph of many thousand nodes.
PlanFacts plan_facts(const LaunchPlan& plan, const PlanMemory& memory);

}  // namespace kernelpro
