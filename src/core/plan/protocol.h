// SPDX-License-Identifier: Apache-2.0
// Parts of the worker protocol that both ends of the cuda target's channels share. Messages are
// JSON objects, one per frame (base/process/channel.h), with a member "do"; answers have "ok", or
// "error" (a text) and, for a broken rule, "rule". Descriptors of physical memory travel with
// frames. Commands may be pipelined: they are answered in order.
//
// Verbs of a worker that runs launch plans (measure/worker/cuda/worker.cc). CASE is a case's name,
// SET counts from 0, SUBJECT is "candidate" or "incumbent"; sizes and addresses are in bytes.
//
//   {"do":"hello"} -> {}
//   {"do":"open","cases":[{"case":CASE,"layout":LAYOUT,"sets":N,"inputs":[BOOL,...],
//                          "dims":{NAME:VALUE,...},
//                          "tensors":[{"name","label","role","dtype","shape"},...]},...],
//    "writable":BOOL} -> {}
//       Clears all earlier state. LAYOUT is layout_to_json's: one slot per tensor, in order, then
//       the workspace if "has_workspace"; "inputs": per slot, whether the candidate only reads it:
//       unless "writable", the memory is mapped read-only where the driver can do that. Tensors use
//       the terms of core/task/task.h: role "input", "parameter" or "output", dtype "fp32" ...;
//       "label": PyTorch's name of a parameter ("conv.weight"), "" if there is none.
//   {"do":"memory","case":CASE,"set":SET,"slots":[I,...]} + descriptors -> {}
//       One descriptor per listed slot: physical memory of the slot's "mapping_bytes", in which the
//       tensor starts at address - mapping. A set's slots may come in several frames. Slots that a
//       set never gets are those of set 0 (parameters that all sets share).
//   {"do":"load","case":CASE,"subject":SUBJECT,"cubin":PATH,"plan":PLAN} -> {"facts":{...}}
//       With "images":[PATH,...] in place of "cubin" where the plan has several.
//       Loads a subject for a case, replacing what was loaded under that case and name. "facts":
//       by metric name, what only the driver knows, about the launch with the most threads.
//   {"do":"run","case":CASE,"subject":SUBJECT,"steps":[{"set":SET,"key":K},...]}
//                                                                     -> {"reordered":[SET,...]}
//       For each step: maps the set's memory at the case's addresses, reloads the subject (fresh
//       globals), overwrites shared and local memory with noise from K, makes a call and waits.
//       "reordered": the sets on which the plan's steps ran one after another, in an order that its
//       edges allow; two of three, where they leave one open.
//   {"do":"time","case":CASE,"key":K,"reload":[SUBJECT,...],
//    "steps":[{"subject":SUBJECT,"set":SET,"timed":BOOL},...]} -> {"times":[US or null,...]}
//       Reloads the named subjects, rewrites the flush buffer from K, then for each step: maps the
//       set's memory at the addresses, flushes L2 by reading, makes a call and waits. Answers its
//       time by device events in microseconds where "timed".
//   {"do":"burn","case":CASE,"gpu":UUID,"subjects":[SUBJECT,...],"preheat":S,"window":S}
//                                        -> {"us":US,"watts":W,"window":S,"calls":N}
//       Calls the subjects in turn, repeatedly, while the board's energy counter runs: time per
//       call and power. Set 0.
//   {"do":"idle","gpu":UUID,"window":S} -> {"watts":W}
//
// Verbs of a worker that runs a PyTorch candidate in host form, on a stage that holds one set at a
// time (measure/cuda/host_side.h, python/kernelpro_torch/candidate.py):
//
//   {"do":"imported"} -> {}       As soon as it has imported PyTorch. Its context is created with
//                                 the first other command.
//   {"do":"hello"} -> {}
//   {"do":"gate"} + the descriptor of a gate (base/process/gate.h) -> {}
//   {"do":"open","cases":[...]} -> {}
//       As above; "sets" and "inputs" do not matter to it.
//   {"do":"memory","case":CASE,"slots":[I,...]} + descriptors of the stage's slots -> {}
//   {"do":"load","case":CASE,"subject":SUBJECT,"module":PATH,"task_source":TEXT,"task_path":PATH,
//    "precision":"fp32"|"tf32"|"fp16"|"bf16","policy":"contract"|"kernelbench"}
//                                                                    -> {"facts":{...}}
//   {"do":"call","case":CASE,"subject":SUBJECT,"turn":N} -> {}
//       Gives the sign that it is ready for turn N, waits for the order, calls the module on what
//       the stage then holds, copies the results to the stage, waits for the GPU and gives the sign
//       of its answer. After a failure no sign, but an error.
//   {"do":"ping","case":CASE,"turn":N} -> {"us":US}
//       The same without a call: twice a little work; how long the second took. Only asked before
//       anything was loaded.
//
// Verbs of the process that collects hardware counters (measure/worker/cuda/profiler.cc): hello,
// answered by {"chip":NAME}; open, memory and load as above (cubins and plans only), and
//   {"do":"prepare","metrics":[NAME,...]} -> {"passes":N,"phases_ms":{...}}
//       Schedules metrics (registry names) and does the one-time work of a first collection.
//   {"do":"profile","case":CASE,"subject":SUBJECT,"set":SET,"metrics":[NAME,...]}
//                                                  -> {"answers":{...}} (core/evidence/counters.h)
//       Runs the plan's nodes one by one over the set's memory, L2 cold, once and then once per
//       pass. Overwrites outputs and workspace.
//   {"do":"release"} -> {}
//       Gives the GPU's counters back until they are wanted again.
// Rules from this process: "unavailable": no counters can be collected here; "forbidden": this user
// may not collect any, with any program.
//
// Verbs of the process that collects program-counter samples (measure/worker/cuda/sampler.cc):
// hello, open, memory and load as above, and
//   {"do":"sample","case":CASE,"subject":SUBJECT,"set":SET} -> {"answers":{...}}
//   (core/evidence/samples.h)
//       Runs the plan's nodes one by one over the set's memory, twice unsampled, then once sampled
//       with L2 cold at the start. Overwrites outputs and workspace.
// Rule "busy": another process holds the hardware; "unavailable": no samples can be had here.
//
// Refusals by rule (core/plan/refusal.h): "plan" (the plan does not fit its cubin); module workers
// add their own ("not-a-tensor" ...), which become Rejected; without a rule: the candidate crashed
// with this text. Rule "environment": the machine's fault, which only a process that runs no host
// code of candidates may claim.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/launch_plan.h"
#include "core/task/inputs.h"
#include "core/task/policy.h"
#include "core/task/task.h"

namespace kernelpro {

std::string layout_to_json(const AddressLayout& layout);
std::optional<AddressLayout> layout_from_json(const std::string& json);

// A tensor as the judge needs it: sizes, generator, comparison rule.
struct JudgeTensor {
  std::string name;
  Role role = Role::kInput;
  bool output = false;
  DType dtype = DType::kFp32;
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
  kp::DrawSpec draw{};  // inputs of native tasks
  Rule rule;            // outputs
  bool wide = true;     // floating outputs: the expected result is in doubles
  // Bytes of the reference's result: 8 per element for floating types when wide.
  std::uint64_t expected_bytes() const;
};

std::vector<JudgeTensor> judge_tensors(const Task& task, const Case& c, Policy policy, bool wide);
std::string judge_tensors_to_json(const std::vector<JudgeTensor>& tensors);
std::optional<std::vector<JudgeTensor>> judge_tensors_from_json(const std::string& json);

// [kind, a, b, low, range, first, last] of each tensor: how a set is drawn.
std::string draw_specs_to_json(const std::vector<kp::DrawSpec>& specs);
// Types come from `tensors`; nullopt when the text is not one spec per tensor.
std::optional<std::vector<kp::DrawSpec>> draw_specs_from_json(
    const std::string& json, const std::vector<JudgeTensor>& tensors);

}  // namespace kernelpro
