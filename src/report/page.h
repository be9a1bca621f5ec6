// SPDX-License-Identifier: Apache-2.0
// A run as data for the page that draws it (src/report/page/*.js): the saved report has all of it
// inlined, the live page (serve/web) fetches the parts that it shows. docs/live-page.md describes
// the members. Pure functions of a view.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "report/view.h"

namespace kernelpro {

// Everything about the run as a whole, without candidates.
Json page_head(const RunView& view, const Story& story);
// A line for each evaluated candidate whose place in the order of evaluation is above `after`.
Json page_rows(const RunView& view, const Story& story, std::int64_t after);
// All that is known about one candidate; `parent` may be null. Its evidence may be left out.
Json page_candidate(const StoredCandidate& candidate, const StoredCandidate* parent);
// A diagnosis alone, with every number of its evidence: as a candidate's, without a source.
Json page_diagnosis(const Diagnosis& diagnosis, const Evidence& evidence);
// Adds the request to the writer and its answer, or the questions to models that led to it.
void put_writing(const Writing& writing, Json* candidate);
Json page_call(const ModelCall& call);

// The scripts that draw a run, and their style sheet.
std::string page_drawing();
std::string_view page_style();

// JSON that can stand inside of a <script> element.
std::string json_for_html(const Json& json);

}  // namespace kernelpro
