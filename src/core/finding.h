// SPDX-License-Identifier: Apache-2.0
// What an expert would say about the evidence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/evidence.h"

namespace kernelpro {

// A change to make. Its tag is what knobs name after their colon, so that the tuner knows which
// knob answers which prescription; core/tags.h lists them.
struct Prescription {
  std::string tag;
  std::string text;      // what to do, in terms of the code
  std::string not_when;  // when not to; "" = always fine
};

enum class Severity { kInfo, kWarning, kCritical };
std::string_view severity_name(Severity severity);

struct Finding {
  std::string tool;
  std::string kernel;  // the kernel that it is about; "" = the call, or its only kernel
  Severity severity = Severity::kInfo;
  std::string cause;                 // one sentence with the numbers
  std::string where;                 // "kernel.cu:41", or several of them; "" = not known
  std::vector<std::string> metrics;  // the names of the numbers that show it
  std::vector<Prescription> prescriptions;
  double likely_speedup = 1;  // of the whole task; 1 = none
  double upper_speedup = 1;
  Level level = Level::kTiming;
  bool stop = false;  // nothing left to win: at a ceiling
};

enum class Bound { kMemory, kCompute, kLatency, kLaunch, kMixed, kUnknown };
std::string_view bound_name(Bound bound);

// What the runner did with one tool; shown to the user.
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
  std::vector<Finding> findings;   // largest gain first
  std::vector<ToolRun> tools;
  // Which record of earlier findings the ranking used: ToolRecord::hash(); "" = none.
  std::string record;
};

std::string diagnosis_to_json(const Diagnosis& diagnosis);
std::optional<Diagnosis> diagnosis_from_json(const std::string& json);
// The diagnosis as a writer of kernels reads it: short, no raw counters. Markdown.
std::string diagnosis_to_text(const Diagnosis& diagnosis);

}  // namespace kernelpro
