// SPDX-License-Identifier: Apache-2.0
// search_code, read_code and list_code over the indexed libraries, as tools for a model. Answers
// are short: every round pays again for the whole conversation. Any thread.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "core/candidate/language.h"
#include "write/knowledge/knowledge_base.h"
#include "write/model/chat.h"

namespace kernelpro {

class CodeTools {
 public:
  // `folder` holds the indexes; offers the libraries that exist now.
  explicit CodeTools(const std::string& folder);

  // If empty, no tools are offered.
  const std::vector<std::string>& libraries() const { return libraries_; }
  const std::vector<ToolSpec>& specs() const { return specs_; }

  struct Answered {
    std::string text;
    bool failed = false;   // the text explains why, for the model
    bool unknown = false;  // no such tool
  };
  // `arguments`: JSON from a model; accepts any bytes. `language`: the task's, which search
  // prefers.
  Answered call(const std::string& name, const std::string& arguments, Language language);

 private:
  std::mutex mutex_;
  KnowledgeBase base_;  // used by one thread at a time
  std::vector<std::string> libraries_;
  std::vector<ToolSpec> specs_;
};

}  // namespace kernelpro
