// SPDX-License-Identifier: Apache-2.0
// The diagnosis of a candidate: an expert's reading of the evidence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/candidate/candidate.h"
#include "core/evidence/evidence.h"
#include "core/finding/account.h"

namespace kernelpro {

// A change to make. Knobs name its tag after their colon, so the tuner knows which knob serves
// which prescription; core/candidate/tags.h lists the tags.
struct Prescription {
  std::string tag;
  std::string text;      // what to do, in terms of the code
  std::string not_when;  // when not to; "": always fine
};

// A line that a finding names, and why. Sites of one group answer the same question, such as where
// the instructions stand, where they are called, or what the launch decides.
struct FindingSite {
  SourceLine line;   // no file: a store of an earlier version has all places in words, as the role
  std::string role;  // "called at", "`tile` declared at"; "": the instructions stand there
  int group = 0;     // 0, 1, ... in the order of the sites
};
using FindingSites = std::vector<FindingSite>;
// "kernel.cu:41 `x = a[i];`, kernel.cu:44, called at kernel.cu:65; launched at kernel.cu:150". One
// line, for people only: a file's name may hold any of these characters.
std::string sites_text(const FindingSites& sites);

enum class Severity { kInfo, kWarning, kCritical };
std::string_view severity_name(Severity severity);

struct Finding {
  std::string tool;
  std::string kernel;  // the kernel concerned; "": the call, or its only kernel
  Severity severity = Severity::kInfo;
  std::string cause;                 // one sentence, with numbers
  FindingSites sites;                // empty: unknown
  std::vector<std::string> metrics;  // names of the metrics that show it
  std::vector<Prescription> prescriptions;
  double likely_speedup = 1;  // of the whole task; 1: none
  double upper_speedup = 1;
  Level level = Level::kTiming;
  bool stop = false;          // nothing left to win: at a ceiling
  bool another_unit = false;  // its gains go beyond the ceiling of the unit in use
  // The places among `sites` that the kernel's samples or machine code have, and the fraction of
  // the call's time that is spent there; 0: unknown.
  std::vector<CostlyPlace> places = {};
  double share = 0;
};

enum class Bound { kMemory, kCompute, kLatency, kLaunch, kMixed, kUnknown };
std::string_view bound_name(Bound bound);                     // "memory"
Bound bound_from_name(std::string_view name);                 // kUnknown for any other name
std::optional<Bound> bound_from_number(std::int64_t number);  // nullopt: there is none

// The runner's result for one tool; shown to the user.
struct ToolRun {
  std::string tool;
  enum class State { kFired, kSilent, kNotEvaluable, kFilteredOut } state = State::kSilent;
  std::string reason;
};

struct Diagnosis {
  Bound bound = Bound::kUnknown;
  double floor_us = 0;             // theory: the larger of bytes over bandwidth and FLOPs over rate
  double fraction_of_ceiling = 0;  // floor over measured time
  std::string summary;             // one sentence
  Account account;                 // where the time goes; not known() without a time
  std::vector<Finding> findings;   // largest gain first
  std::vector<ToolRun> tools;
  // The record of earlier findings that the ranking used: ToolRecord::hash(); "": none.
  std::string record;
};

std::string diagnosis_to_json(const Diagnosis& diagnosis);
std::optional<Diagnosis> diagnosis_from_json(const std::string& json);
// The diagnosis as given to a kernel writer: short, no raw counters. Markdown.
std::string diagnosis_to_text(const Diagnosis& diagnosis);
// The finding that `answers` names: of the tool's findings the first, so the one that promises
// most, among those with the prescription if one is named; null: none.
const Finding* answered(const Diagnosis& diagnosis, const FindingRef& answers);
// Instead of findings, where there are none. One sentence.
std::string nothing_found(const Diagnosis& diagnosis);

}  // namespace kernelpro
