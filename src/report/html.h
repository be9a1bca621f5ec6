// SPDX-License-Identifier: Apache-2.0
// Small pieces of HTML and SVG. Every text that comes from outside goes through `escape`.
#pragma once

#include <string>
#include <string_view>

#include "report/replayed.h"
#include "report/view.h"

namespace kernelpro {

// Safe inside elements and double-quoted attributes; bytes that are not printable become '?'.
std::string escape(std::string_view text);
// Fixed decimals, for coordinates.
std::string coordinate(double value);
// "correct", "best", "start", or the failure's name: the CSS class that colours it.
std::string outcome_class(const StoredCandidate& candidate, const Story& story);

std::string svg_line(const char* css, double x1, double y1, double x2, double y2);
std::string svg_label(const char* css, double x, double y, const std::string& text);
// 1, 2 or 5 times a power of ten: about `count` of them make the range.
double nice_step(double range, int count);

// Best-so-far over time.
std::string progress_chart(const RunView& view, const Story& story);
// Who came from whom, left to right.
std::string search_tree(const RunView& view, const Story& story);
// Where start and winner stand under the measured ceiling.
std::string ceiling_bar(const Story& story);
// The winner against the start.
std::string changes(const Story& story);
// All candidates, sortable, with their findings.
std::string candidate_table(const RunView& view, const Story& story);
// The findings of one diagnosis in full.
std::string findings_list(const Diagnosis& diagnosis);
// What became of every tool, folded.
std::string tool_runs(const Diagnosis& diagnosis);
// The recorded results beside the new ones.
std::string replayed_table(const RunView& view, const std::vector<Replayed>& rows);
// Time against energy, and who is not beaten in both; "" where no energy was measured.
std::string energy_section(const RunView& view, const Story& story);
// What became of the winner in cases that the search did not know; "" where there are none.
std::string held_out_section(const RunView& view);
// What findings promised and what came of them.
std::string tool_step_table(const RunView& view);

}  // namespace kernelpro
