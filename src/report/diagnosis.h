// SPDX-License-Identifier: Apache-2.0
// A diagnosis for a person on a terminal. Pure.
#pragma once

#include <string>

#include "core/evidence.h"
#include "core/finding.h"

namespace kernelpro {

struct DiagnosisStyle {
  int width = 80;      // columns
  bool color = false;  // escape sequences
  bool all = false;    // also every tool with what became of it, every number, everything missing
  std::string more;    // what tells the rest: "--all"; "" = nothing does
};

// Findings first, numbered, their gains aligned; then what could not be looked at. Bytes that are
// not printable become '?'.
std::string diagnosis_for_terminal(const Diagnosis& diagnosis, const Evidence& evidence,
                                   const DiagnosisStyle& style);

// "hardware counters", "machine code", "timing": what a level rests on, in words.
std::string level_words(Level level);

// Words broken over lines of at most `width` columns, each behind `indent` blanks.
std::string wrapped(const std::string& text, int width, int indent);

}  // namespace kernelpro
