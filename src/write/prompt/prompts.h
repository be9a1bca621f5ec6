// SPDX-License-Identifier: Apache-2.0
// The prompt texts, as templates with {{fields}}: the files of prompts/, compiled in; a folder of
// the user's may replace some. Immutable once made; any thread.
//
// prompts/roles/ has a text for each role of a writer, prompts/contract/ what every kernel must
// meet, prompts/craft/ advice on fast kernels. A craft text says in its front matter where it
// belongs:
//     ---
//     order: 20
//     when: target=cuda, kind=products|attention
//     ---
// All conditions must hold; each holds for any of its values. Keys: target (cpu, cuda), arch
// ("sm_90", whatever its suffix), kind (core/task/operator_family.h), limit (memory: memory traffic
// may limit the task). Adding a text: its file.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/machine/architecture.h"
#include "core/task/task.h"

namespace kernelpro {

using PromptFields = std::map<std::string, std::string>;

// What craft texts are selected by.
struct CraftSubject {
  TargetKind target = TargetKind::kCuda;
  std::optional<Architecture> arch;  // nullopt: not known
  std::vector<std::string> family;   // as operator_family gives it
  bool memory_limits = true;
};

class Prompts {
 public:
  // The embedded ones.
  Prompts();
  // Files in `directory` replace embedded ones with the same names, front matter included where
  // they have any; "" = none. Fails with kBadInput: the folder does not exist, has none of our
  // files, or uses an unknown name, field or condition.
  static Result<Prompts> load(const std::string& directory);

  // The template `name` ("coder") with the fields filled in; fields without a value become empty.
  // One pass: filled-in text is never scanned for fields.
  std::string fill(const std::string& name, const PromptFields& fields) const;

  // The names of the craft texts that apply, in their order.
  std::vector<std::string> craft_for(const CraftSubject& subject) const;

 private:
  struct Text {
    std::string body;
    bool craft = false;
    int order = 0;
    std::string when;
  };
  static Result<void> read_into(const std::string& source, Text* text);

  std::map<std::string, Text> texts_;
};

}  // namespace kernelpro
