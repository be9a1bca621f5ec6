// SPDX-License-Identifier: Apache-2.0
// The texts that writers get, as templates with {{fields}}: the files of prompts/, compiled in, of
// which a folder of the user's may replace some. Immutable once made; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/error.h"

namespace kernelpro {

using PromptFields = std::map<std::string, std::string>;

class Prompts {
 public:
  // The embedded ones.
  Prompts();
  // With the files of `directory` in place of those with the same names; "" = none. Fails with
  // kBadInput: no such folder, nothing of ours in it, a name or a field that there is not.
  static Result<Prompts> load(const std::string& directory);

  // A template by its name ("coder") with the fields filled in; fields without a value are empty.
  // One pass, so that nothing in a filled-in text is taken for a field.
  std::string fill(const std::string& name, const PromptFields& fields) const;

 private:
  std::map<std::string, std::string> texts_;
};

}  // namespace kernelpro
