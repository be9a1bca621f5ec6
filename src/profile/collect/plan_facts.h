// SPDX-License-Identifier: Apache-2.0
// What the launch plan of a call says before anything runs: how many nodes, how they depend on each
// other, and what they hand to each other through memory. Pure.
//
// Which bytes a kernel may touch is guessed from its parameters: every address of the layout in
// them, from there to the next address that any node of the plan names. It reads inputs and what
// its mangled name says is const, and may read and write the rest.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/launch_plan.h"
#include "core/task.h"

namespace kernelpro {

struct PlanMemory {
  AddressLayout layout;      // that the plan's addresses are of
  std::vector<bool> inputs;  // by slot: kernels must not write it. Empty: not known
  // Bytes that one launch can have written at most, by mangled name, where known (written.h).
  std::map<std::string, double> written;
};

// For plans whose parameters name tensors instead of addresses (plan form), and as the base of
// others: slots in the order of the task's tensors.
PlanMemory plan_memory(const Task& task, const Case& c);

struct PlanFacts {
  std::map<std::string, double> call;  // plan.*
  // By mangled name: kernel.launches, kernel.concurrent.
  std::map<std::string, std::map<std::string, double>> kernels;
};

// A plan that has a problem() gives no facts. Facts about memory are left out where too little is
// known: no layout, or a graph of many thousand nodes.
PlanFacts plan_facts(const LaunchPlan& plan, const PlanMemory& memory);

}  // namespace kernelpro
