// SPDX-License-Identifier: Apache-2.0
// Fills a kernel's places (core/evidence/places.h): where its time goes by line, for what its warps
// wait there, and which earlier lines made them wait. From program-counter samples where there are
// any, else estimated from machine code and weighted by the stall counters. Pure; any input is
// safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/evidence/evidence.h"
#include "core/evidence/samples.h"
#include "profile/places/line_text.h"
#include "profile/sass/program.h"

namespace kernelpro {

Places sampled_places(const SassFunction& kernel, const KernelSamples& samples,
                      const LineText& text);
// Of the samples that wait for a scoreboard: those at instructions that do wait for one. Far below
// 1 where samples belong to other code: CUPTI takes the kernels of a module to lie in the order in
// which they were first used, and gives places that are shifted where they do not (0.00 to 0.34 in
// five kernels of such modules on an H200; 0.90 to 1 in eight others). 1: unknown.
double places_fit(const SassFunction& kernel, const KernelSamples& samples);
inline constexpr double kLeastFit = 0.7;
// `facts`: of the kernel; its stall counters and occupancy are used if known.
Places estimated_places(const SassFunction& kernel, const Evidence& facts, const LineText& text);

// For every kernel in `kernels` whose code is in `functions` (both by mangled name). Adds the
// samples.* items and the texts of the lines that metrics name, and notes in `missing` why samples
// are missing.
void add_places(const std::map<std::string, SassFunction>& functions, const SampleAnswers& samples,
                const LineText& text, std::map<std::string, KernelEvidence>* kernels,
                std::vector<Missing>* missing);

}  // namespace kernelpro
