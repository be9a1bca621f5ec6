// SPDX-License-Identifier: Apache-2.0
// Small pieces of HTML and SVG. All text from outside goes through `escape`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/finding/change.h"
#include "report/replayed.h"
#include "report/view.h"

namespace kernelpro {

// Safe inside elements and double-quoted attributes; unprintable bytes become '?'.
std::string escape(std::string_view text);
// Fixed decimals, for coordinates.
std::string coordinate(double value);
// CSS class for a candidate's color: "correct", "best", "start", or the failure's name.
std::string outcome_class(const StoredCandidate& candidate, const Story& story);
// Whether to draw it larger than others: the best and the start.
bool stands_out(const StoredCandidate& candidate, const Story& story);

std::string svg_line(const char* css, double x1, double y1, double x2, double y2);
std::string svg_label(const char* css, double x, double y, const std::string& text);
// 1, 2 or 5 times a power of ten, such that about `count` steps cover the range.
double nice_step(double range, int count);

// Best-so-far over time.
std::string progress_chart(const RunView& view, const Story& story);
// Candidates and their parents, left to right.
std::string search_tree(const RunView& view, const Story& story);
// Start and winner relative to the measured ceiling.
std::string ceiling_bar(const Story& story);
// Diff of the winner against the start.
std::string changes(const Story& story);
// All candidates, sortable, with their findings.
std::string candidate_table(const RunView& view, const Story& story);
// The findings of one diagnosis in full.
std::string findings_list(const Diagnosis& diagnosis);
// The outcome of every tool, folded.
std::string tool_runs(const Diagnosis& diagnosis);
// The recorded results beside the new ones.
std::string replayed_table(const RunView& view, const std::vector<Replayed>& rows);
// Time against energy with the Pareto front; "" when no energy was measured.
std::string energy_section(const RunView& view, const Story& story);
// Results of the winner on held-out cases; "" when there are none.
std::string held_out_section(const RunView& view);
// What a candidate's change did, against its parent; nullopt without both times.
std::optional<WhatChanged> change_of(const StoredCandidate& candidate, const Story& story);
std::string change_html(const WhatChanged& change);
// The same for each change on the path to the winner, as HTML and as text; "" when there are none.
std::string path_changes(const Story& story);
std::string path_changes_text(const Story& story);
// Promised and actual gain of each finding.
std::string tool_step_table(const RunView& view);

}  // namespace kernelpro
