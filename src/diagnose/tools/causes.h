// SPDX-License-Identifier: Apache-2.0
// Where in the source the cause of a finding stands: the lines of its instructions, what calls
// them, and what the source decides elsewhere (a launch, bounds, a declaration). Pure.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/tools/tool.h"

namespace kernelpro {

// "kernel.cu:41, kernel.cu:44, called at kernel.cu:65": of the first metric that has lines, those
// at which the kernel waits most first, at most three, and at most two calls. Empty: none.
FindingSites line_of(const Facts& facts, std::initializer_list<const char*> metrics);

// "launched at kernel.cu:150": of the first kind that has a site; at most two of it. Empty: none.
FindingSites site_of(const Facts& facts, std::initializer_list<SiteKind> kinds,
                     bool (*is)(const SourceSite& site) = nullptr);
// Where a kernel of the call is launched: "launched at kernel.cu:150"; at most two.
FindingSites launches_of(const KernelEvidence& kernel);
// The array that one of the lines names: "`tile` declared at kernel.cu:40". Empty: none.
FindingSites array_of(const Facts& facts, SiteKind kind,
                      std::initializer_list<const char*> metrics);
// The innermost loop around the first of the metric's lines: "in the loop at kernel.cu:39".
FindingSites loop_of(const Facts& facts, std::initializer_list<const char*> metrics);
// The lines at which instructions wait for which `is` holds, the costliest first.
FindingSites waits_at(const Facts& facts, bool (*is)(std::string_view instruction));
// Constants of the source (SiteKind::kDepth) with one of these parts in their names, in lower case.
FindingSites depth_of(const Facts& facts, std::initializer_list<const char*> parts);
// Variables that stand for what a site of that kind declares: `book` of `auto& book = c_codes;`.
FindingSites aliases_of(const Facts& facts, SiteKind kind);
// What the names at these sites' lines stand for: "`kPitch` at kernel.cu:23". Constants, macros and
// short functions, also those that they and variables are made of; the nearest first, at most
// three, none whose line is among the sites.
// As a group of their own.
FindingSites definitions_of(const Facts& facts, const FindingSites& sites);
bool has_site(const Facts& facts, SiteKind kind, std::string_view name = {});

// These lines as one group, each once, at most `most` of them; without those of no file.
FindingSites sites_at(const std::vector<SourceLine>& lines, std::size_t most);
// One after the other, each as a group.
FindingSites joined(std::initializer_list<FindingSites> groups);

// Exposed waits by their causes, as fractions of the kernel's time with warps: those for which
// `is` holds of the producer, or of the instruction itself where no producer is known, or where it
// waits for room in its unit's queue. 0 without places.
double exposed_by(const Facts& facts, bool (*is)(std::string_view instruction));
// The fraction of the kernel's time with warps that goes into the lines at these sites, by samples:
// issuing what they and what they call run, and waiting there. 0: not sampled.
double time_at(const Facts& facts, const FindingSites& sites);
// Whether warps wait at barriers for most of their waiting, though barriers are rare: some of a
// block's warps have more to do between two of them than others. Never of a tree's short steps.
bool waits_for_others(const Facts& facts);
// Exposed waits with that reason; nullopt: unknown.
std::optional<double> exposed(const Facts& facts, std::initializer_list<Stall> stalls);

// How fp32 products become products of parts on matrix units.
std::vector<Prescription> advice_to_split();

}  // namespace kernelpro
