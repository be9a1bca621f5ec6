// SPDX-License-Identifier: Apache-2.0
// Tunable constants that a source declares in comments:
//     // @knob TILE 16 32 64 : tile-size
// The first value is the default. Tags after the colon link a knob to prescriptions
// (core/finding/finding.h); text of other words there is a remark. A knob is set as text,
// `#define TILE 32`, after the source's header block.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/candidate/candidate.h"
#include "core/candidate/knob.h"

namespace kernelpro {

// Why a knob, dimension or tensor may not have this name ("C++, the CUDA headers or task.h already
// use it"), else "".
std::string name_problem(std::string_view name);

// All knobs of a source, in order. Fails with kBadInput (naming the line) on a knob without values,
// a name that was declared with other values, a value listed twice, a name that is not an
// identifier or that task.h, C++ or the CUDA headers already use (`reserved`: the case's dimension
// names), and on a requirement (core/candidate/requirements.h) that does not parse or that the
// first values break.
Result<std::vector<Knob>> parse_knobs(std::string_view source,
                                      const std::vector<std::string>& reserved = {});

// The first value of each knob.
KnobValues default_values(const std::vector<Knob>& knobs);

// A source as a candidate: its knobs, if its language has them, have their first values, but for
// those in `chosen`. Fails with kBadInput as parse_knobs does, and on values of `chosen` that the
// source does not declare or allow.
Result<Candidate> candidate_of(const Task& task, Language language, std::string source,
                               Origin origin, const KnobValues& chosen = {});

// The offset after a source's header block: leading comments, blank lines and preprocessor lines up
// to the last leading #include. 0: it has none.
std::size_t header_block_end(std::string_view source);

// The source with one #define per knob after its header block, then a #line so that compiler
// messages keep the user's line numbers. `separator` (such as "#pragma nv_hdrstop") goes before the
// defines.
std::string apply_knobs(std::string_view source, const KnobValues& values,
                        std::string_view separator = "");

}  // namespace kernelpro
