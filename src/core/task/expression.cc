// SPDX-License-Identifier: Apache-2.0
#include "core/task/expression.h"

#include <cctype>

namespace kernelpro {

namespace {

// Recursive descent; the first error stops parsing.
class Parser {
 public:
  Parser(std::string_view text, const std::map<std::string, std::int64_t>& names)
      : text_(text), names_(names) {}

  Result<std::int64_t> parse() {
    const std::int64_t value = sum();
    skip();
    if (error_.empty() && at_ < text_.size()) set(std::string("unexpected '") + text_[at_] + "'");
    if (error_.empty()) return value;
    return fail(ErrorKind::kBadInput,
                "the expression \"" + std::string(text_) + "\" is wrong: " + error_,
                "use integers, the case's dimension names, + - * / % and parentheses");
  }

 private:
  void set(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  std::int64_t too_big() {
    set("a value does not fit 64 bits");
    return 0;
  }

  std::int64_t sum() {
    std::int64_t value = product();
    while (error_.empty()) {
      std::int64_t result = 0;
      if (take('+')) {
        const std::int64_t right = product();
        value = __builtin_add_overflow(value, right, &result) ? too_big() : result;
      } else if (take('-')) {
        const std::int64_t right = product();
        value = __builtin_sub_overflow(value, right, &result) ? too_big() : result;
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t product() {
    std::int64_t value = atom();
    while (error_.empty()) {
      if (take('*')) {
        std::int64_t result = 0;
        const std::int64_t right = atom();
        value = __builtin_mul_overflow(value, right, &result) ? too_big() : result;
      } else if (take('/') || take('%')) {
        const bool divide = text_[at_ - 1] == '/';
        const std::int64_t right = atom();
        if (right == 0) {
          set("division by zero");
          return 0;
        }
        if (right == -1 && value == INT64_MIN) return too_big();
        value = divide ? value / right : value % right;
      } else {
        break;
      }
    }
    return value;
  }

  std::int64_t atom() {
    if (++depth_ > 100) set("too deeply nested");
    if (!error_.empty()) return 0;
    std::int64_t value = 0;
    if (take('(')) {
      value = sum();
      if (!take(')')) set("a ')' is missing");
    } else if (take('-')) {
      const std::int64_t inner = atom();
      value = inner == INT64_MIN ? too_big() : -inner;
    } else {
      value = leaf();
    }
    --depth_;
    return value;
  }

  std::int64_t leaf() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) {
      ++at_;
    }
    const std::string word(text_.substr(begin, at_ - begin));
    if (word.empty()) {
      set(at_ < text_.size() ? std::string("unexpected '") + text_[at_] + "'"
                             : "it ends too early");
      return 0;
    }
    if (!std::isdigit(static_cast<unsigned char>(word[0]))) {
      const auto it = names_.find(word);
      if (it == names_.end()) {
        set("the dimension " + word + " is not given by the case");
        return 0;
      }
      return it->second;
    }
    std::int64_t value = 0;
    for (const char c : word) {
      if (!std::isdigit(static_cast<unsigned char>(c))) {
        set("\"" + word + "\" is not an integer");
        return 0;
      }
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{c - '0'}, &value)) {
        set("a value does not fit 64 bits");
        return 0;
      }
    }
    return value;
  }

  std::string_view text_;
  const std::map<std::string, std::int64_t>& names_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string error_;
};

}  // namespace

Result<std::int64_t> evaluate_expression(std::string_view text,
                                         const std::map<std::string, std::int64_t>& names) {
  return Parser(text, names).parse();
}

}  // namespace kernelpro
