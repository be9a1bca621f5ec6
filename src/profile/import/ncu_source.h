// SPDX-License-Identifier: Apache-2.0
// ncu's source page (`--page source --print-source sass --csv`): samples and machine code by
// instruction. Tolerant of versions: columns in any order, absent ones, addresses of the loaded
// code or of the function. Pure; any bytes are safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/evidence/samples.h"

namespace kernelpro {

struct NcuSourcePage {
  // `function` as the page names it, mangled or demangled. Launches of one kernel are added up.
  SampleAnswers samples;
  // The instructions, as cuobjdump prints them (profile/sass/sass.h), without control bits and line
  // information; "" if the page has none.
  std::string sass;
  std::vector<std::string> notes;  // sentences
};

bool is_ncu_source_page(std::string_view text);
// Without samples, `samples.missing` says why.
NcuSourcePage read_ncu_source_page(std::string_view text);

}  // namespace kernelpro
