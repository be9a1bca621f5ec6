// SPDX-License-Identifier: Apache-2.0
// Pieces of the worker protocol that both sides of the cuda target's channels share. Messages are
// JSON objects, one per frame (base/process/channel.h), with a member "do"; answers have "ok", or
// "error" (a text) and, where a rule was broken, "rule". Descriptors of physical memory travel with
// frames. Commands may be sent ahead: they are answered in order.
//
// The verbs of a worker that runs candidates (measure/worker/cuda/worker.cc; for PyTorch candidates
// python/kernelpro_torch/candidate.py). CASE is a case's name, SET counts from 0, SUBJECT is
// "candidate" or "incumbent"; sizes and addresses are bytes.
//
//   {"do":"hello"} -> {}
//   {"do":"open","cases":[{"case":CASE,"layout":LAYOUT,"sets":N,"inputs":[BOOL,...],
//                          "dims":{NAME:VALUE,...},
//                          "tensors":[{"name","label","role","dtype","shape"},...]},...]} -> {}
//       Forgets everything before. LAYOUT is layout_to_json's; one slot per tensor, in order, then
//       the workspace if "has_workspace"; "inputs": by slot, whether the candidate only reads it
//       (facts about the plan rest on it). Tensors are core/task.h's words: role "input",
//       "parameter" or "output", dtype "fp32" ...; "label": PyTorch's name of a parameter
//       ("conv.weight"), "" where there is none.
//   {"do":"memory","case":CASE,"set":SET,"slots":[I,...]} + descriptors -> {}
//       One descriptor per slot named: physical memory of the slot's "mapping_bytes", in which the
//       tensor starts at address - mapping. Several frames may give one set's slots. Slots of a set
//       that never come are those of set 0 (parameters that all sets share).
//   {"do":"load","case":CASE,"subject":SUBJECT,"cubin":PATH,"plan":PLAN} -> {"facts":{...}}
//   {"do":"load","case":CASE,"subject":SUBJECT,"module":PATH,"task_source":TEXT,"task_path":PATH,
//    "precision":"fp32"|"tf32"|"fp16"|"bf16","policy":"contract"|"kernelbench"}
//                                                                    -> {"facts":{...}}
//       Takes a subject in for a case; what was loaded under that case and name is forgotten.
//   {"do":"run","case":CASE,"subject":SUBJECT,"steps":[{"set":SET,"key":K},...]} -> {}
//       For each step: the set's memory behind the case's addresses, the subject loaded anew (fresh
//       globals), shared and local memory overwritten with noise from K, one call, waited for.
//   {"do":"time","case":CASE,"key":K,"reload":[SUBJECT,...],
//    "steps":[{"subject":SUBJECT,"set":SET,"timed":BOOL},...]} -> {"times":[US or null,...]}
//       Loads the named subjects anew, rewrites the flush buffer from K, then for each step: the
//       set's memory behind the addresses, L2 flushed by reading, one call, waited for; its time by
//       device events in microseconds where "timed".
//   {"do":"loop","case":CASE,"subject":SUBJECT,"sets":[SET,...]} -> {"submitted_us":US}
//       One call on each set, one after the other, outputs into the set's memory, waited for once:
//       the supervisor's own clock is the only one that looks. Subject "": all but the calls, for
//       which an answer is {}. Module workers only.
//   {"do":"burn","case":CASE,"gpu":UUID,"subjects":[SUBJECT,...],"preheat":S,"window":S}
//                                        -> {"us":US,"watts":W,"window":S,"calls":N}
//       Calls the subjects in turn, over and over, while the board's energy counter runs: time of a
//       call and power meanwhile. Set 0. Not for module workers.
//   {"do":"idle","gpu":UUID,"window":S} -> {"watts":W}
//
// The verbs of the process that collects hardware counters (measure/worker/cuda/profiler.cc):
// hello, which answers {"chip":NAME}; open, memory and load as above (cubins and plans only), and
//   {"do":"prepare","metrics":[NAME,...]} -> {"passes":N,"phases_ms":{...}}
//       Schedules metrics (names of the registry) and does what a first collection does only once.
//   {"do":"profile","case":CASE,"subject":SUBJECT,"set":SET,"metrics":[NAME,...]}
//                                                  -> {"answers":{...}} (core/counters.h)
//       Runs the plan's nodes one by one over the set's memory, L2 cold, once and then once per
//       pass. Outputs and workspace are overwritten.
// Its rule "unavailable": counters cannot be had here at all.
//
// Refusals by rule: "plan" (the plan does not fit its cubin); module workers add their own names
// ("stream-escape", "not-a-tensor" ...), which become Rejected; no rule: the candidate crashed with
// this text. Rule "environment": the machine's fault.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/inputs.h"
#include "core/launch_plan.h"
#include "core/policy.h"
#include "core/task.h"

namespace kernelpro {

std::string layout_to_json(const AddressLayout& layout);
std::optional<AddressLayout> layout_from_json(const std::string& json);

// A tensor as the judge needs it: sizes, how it is drawn, how it is compared.
struct JudgeTensor {
  std::string name;
  Role role = Role::kInput;
  bool output = false;
  DType dtype = DType::kFp32;
  std::int64_t elements = 0;
  std::uint64_t bytes = 0;
  kp::DrawSpec draw{};  // inputs of native tasks
  Rule rule;            // outputs
  bool wide = true;     // floating outputs: the expected result lies as doubles
  // Bytes of the reference's result: 8 per element for floating types when wide.
  std::uint64_t expected_bytes() const;
};

std::vector<JudgeTensor> judge_tensors(const Task& task, const Case& c, Policy policy, bool wide);
std::string judge_tensors_to_json(const std::vector<JudgeTensor>& tensors);
std::optional<std::vector<JudgeTensor>> judge_tensors_from_json(const std::string& json);

// [kind, a, b, low, range] of each tensor: how a set is drawn.
std::string draw_specs_to_json(const std::vector<kp::DrawSpec>& specs);
// Takes types from `tensors`; nullopt when the text is not one spec per tensor.
std::optional<std::vector<kp::DrawSpec>> draw_specs_from_json(
    const std::string& json, const std::vector<JudgeTensor>& tensors);

}  // namespace kernelpro
