// SPDX-License-Identifier: Apache-2.0
// A diagnosis as terminal text. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/evidence/evidence.h"
#include "core/finding/finding.h"

namespace kernelpro {

struct DiagnosisStyle {
  int width = 80;      // columns
  bool color = false;  // escape sequences
  bool all = false;    // also the outcome of every tool, every number, everything missing
  std::string more;    // option that shows the rest: "--all"; "" = there is none
};

// Numbered findings with aligned gains, then what could not be examined. Unprintable bytes become
// '?'.
std::string diagnosis_for_terminal(const Diagnosis& diagnosis, const Evidence& evidence,
                                   const DiagnosisStyle& style);

struct DiagnosedSubject {
  std::string name, basis;  // "gemm.ncu-rep", "based on hardware counters of Nsight Compute"
  std::vector<std::string> notes;
};
// The diagnosis as a page for a browser, which needs no other file.
std::string diagnosis_html(const DiagnosedSubject& subject, const Diagnosis& diagnosis,
                           const Evidence& evidence);

// Every number of the evidence and of its kernels, with unit and source, a line each.
std::string numbers_text(const Evidence& evidence);

// The evidence behind a level: "hardware counters", "machine code", "timing".
std::string level_words(Level level);

// "ran, found nothing".
const char* state_words(ToolRun::State state);

// Wraps words into lines of at most `width` columns, each indented by `indent` spaces.
std::string wrapped(const std::string& text, int width, int indent);

}  // namespace kernelpro
