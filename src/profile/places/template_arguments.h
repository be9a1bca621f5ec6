// SPDX-License-Identifier: Apache-2.0
// Where the arguments of templates are chosen: `Stages` of `template <int Stages> struct Ring` at
// `using Hot = Ring<2>`. Read by the look of the text, without a compiler: one may be missing, and
// which of several is in use is not known. Pure; any tokens are safe.
#pragma once

#include <string_view>
#include <vector>

#include "profile/places/source_text.h"

namespace kernelpro {

struct TemplateArgument {
  int line = 0;
  std::vector<std::string_view> uses;  // the names in it
  bool single = false;                 // it is one name and nothing else
};

// `tokens` must outlive it.
class TemplateArguments {
 public:
  explicit TemplateArguments(const std::vector<SourceToken>& tokens);
  explicit TemplateArguments(std::vector<SourceToken>&&) = delete;
  // Of a name at a line, if a template around that line has such a parameter: through templates
  // that pass it on, in the order of lines; at most kMost.
  std::vector<TemplateArgument> chosen(std::string_view name, int line) const;
  static constexpr std::size_t kMost = 4;

 private:
  struct Instance {
    int line = 0;
    std::vector<TemplateArgument> arguments;
  };
  struct Template {
    std::string_view name;
    int first = 0, last = 0;  // lines
    std::vector<std::string_view> parameters;
    std::vector<TemplateArgument> defaults;  // of parameters without one: line 0
    std::vector<Instance> instances;
  };

  void declare(std::size_t k);
  void find_instances();
  TemplateArgument argument(std::size_t from, std::size_t to, int line) const;
  // The token after the list that opens at `open`, with what lies between its commas; 0: no list.
  std::size_t list(std::size_t open, std::vector<std::pair<std::size_t, std::size_t>>* parts) const;
  void add(std::string_view name, int line, int depth, int* left,
           std::vector<TemplateArgument>* all) const;
  bool is(std::size_t k, std::string_view text) const { return is_token(tokens_, k, text); }
  bool is_name(std::size_t k) const {
    return k < tokens_.size() && tokens_[k].kind == SourceToken::Kind::kName;
  }

  const std::vector<SourceToken>& tokens_;
  std::vector<Template> templates_;
};

}  // namespace kernelpro
