// SPDX-License-Identifier: Apache-2.0
#include "core/requirements.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include "base/text.h"

namespace kernelpro {

namespace {

// Operators that are longer come before their beginnings. C++'s words stand for the same.
struct Token {
  std::string_view text;
  std::string_view same_as;
};
constexpr Token kOperators[] = {
    {"<=", ""}, {">=", ""}, {"==", ""}, {"!=", ""}, {"&&", ""}, {"||", ""}, {"<", ""}, {">", ""},
    {"!", ""},  {"+", ""},  {"-", ""},  {"*", ""},  {"/", ""},  {"%", ""},  {"(", ""}, {")", ""}};
constexpr Token kWords[] = {{"and", "&&"}, {"or", "||"}, {"not", "!"}};

constexpr std::size_t kMostSteps = 1000;
constexpr int kMostNesting = 100;

std::optional<std::int64_t> integer(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  // A suffix of an unsigned or long integer means the same number.
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || end == text.data()) return std::nullopt;
  while (!rest.empty() && contains("uUlL", std::string(1, rest[0]))) rest.remove_prefix(1);
  if (!rest.empty()) return std::nullopt;
  return value;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

// Recursive descent by precedence.
class Requirements::Reader {
 public:
  Reader(std::string_view text, const std::vector<Knob>& knobs) : rest_(text), knobs_(knobs) {
    advance();
  }

  // What is wrong, or "".
  std::string read(std::vector<Step>* steps) {
    steps_ = steps;
    binary(0);
    if (problem_.empty() && !token_.empty()) problem_ = "\"" + printable(token_) + "\" is too much";
    if (problem_.empty() && steps->size() > kMostSteps) problem_ = "it is too long";
    return problem_;
  }

 private:
  void advance() {
    rest_ = trim(rest_);
    std::size_t length = std::min<std::size_t>(rest_.size(), 1);
    while (length > 0 && length < rest_.size() && is_word(rest_[0]) && is_word(rest_[length])) {
      ++length;
    }
    for (const Token& each : kOperators) {
      if (!rest_.starts_with(each.text)) continue;
      length = each.text.size();
      break;
    }
    token_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
    for (const Token& each : kWords) {
      if (token_ == each.text) token_ = each.same_as;
    }
  }

  void binary(std::size_t level) {
    struct Operator {
      std::string_view text;
      Op op;
    };
    static const std::vector<std::vector<Operator>> levels = {
        {{"||", Op::kOr}},
        {{"&&", Op::kAnd}},
        {{"==", Op::kEqual}, {"!=", Op::kUnequal}},
        {{"<", Op::kLess}, {"<=", Op::kAtMost}, {">", Op::kGreater}, {">=", Op::kAtLeast}},
        {{"+", Op::kAdd}, {"-", Op::kSubtract}},
        {{"*", Op::kMultiply}, {"/", Op::kDivide}, {"%", Op::kModulo}}};
    if (level == levels.size()) return unary();
    binary(level + 1);
    while (problem_.empty()) {
      const auto& here = levels[level];
      const auto found = std::find_if(here.begin(), here.end(),
                                      [&](const Operator& each) { return each.text == token_; });
      if (found == here.end()) return;
      advance();
      binary(level + 1);
      steps_->push_back({found->op, 0});
    }
  }

  void unary() {
    if (++nesting_ > kMostNesting) problem_ = "it is nested too deeply";
    if (!problem_.empty()) return;
    if (token_ == "!" || token_ == "-") {
      const Op op = token_ == "!" ? Op::kNot : Op::kMinus;
      advance();
      unary();
      steps_->push_back({op, 0});
    } else if (token_ == "(") {
      advance();
      binary(0);
      if (problem_.empty() && token_ != ")") problem_ = "a ) is missing";
      advance();
    } else {
      operand();
    }
    --nesting_;
  }

  void operand() {
    if (token_.empty()) {
      problem_ = "it ends where a knob or a number belongs";
      return;
    }
    if (const auto number = integer(token_)) {
      steps_->push_back({Op::kNumber, *number});
      return advance();
    }
    const auto knob = std::find_if(knobs_.begin(), knobs_.end(),
                                   [&](const Knob& each) { return each.name == token_; });
    if (knob == knobs_.end()) {
      problem_ = "\"" + printable(token_) + "\" is neither a knob nor an integer";
      return;
    }
    for (const std::string& value : knob->values) {
      if (integer(value)) continue;
      problem_ = "the knob " + knob->name + " has the value " + value + ", which is no integer";
      return;
    }
    steps_->push_back({Op::kKnob, knob - knobs_.begin()});
    advance();
  }

  std::string_view rest_, token_;
  const std::vector<Knob>& knobs_;
  std::vector<Step>* steps_ = nullptr;
  std::string problem_;
  int nesting_ = 0;
};

Result<Requirements> Requirements::parse(std::string_view source, const std::vector<Knob>& knobs) {
  Requirements requirements;
  for (const Annotation& each : annotations(source, "@require")) {
    Requirement requirement;
    requirement.text = each.text;
    const std::string problem = Reader(requirement.text, knobs).read(&requirement.steps);
    if (!problem.empty()) {
      return fail(ErrorKind::kBadInput,
                  "line " + std::to_string(each.line) + ": `@require " + printable(each.text) +
                      "` cannot be read: " + problem,
                  "write a condition on the source's knobs, such as `// @require TILE % WARPS == "
                  "0`; a condition on dimensions is for static_assert");
    }
    requirements.all_.push_back(std::move(requirement));
  }
  if (requirements.all_.empty()) return requirements;
  for (const Knob& knob : knobs) {
    requirements.names_.push_back(knob.name);
    auto& values = requirements.values_.emplace_back();
    for (const std::string& value : knob.values) values.push_back(integer(value).value_or(0));
  }
  return requirements;
}

bool Requirements::hold(const std::vector<std::uint16_t>& at) const {
  if (all_.empty()) return true;
  std::vector<std::int64_t> values;
  for (std::size_t k = 0; k < values_.size(); ++k) values.push_back(values_[k].at(at.at(k)));
  return std::all_of(all_.begin(), all_.end(),
                     [&](const Requirement& each) { return holds(each, values); });
}

std::string Requirements::broken(const KnobValues& values) const {
  std::vector<std::int64_t> numbers;
  std::vector<bool> known;
  for (const std::string& name : names_) {
    const auto found = values.find(name);
    const auto number = found == values.end() ? std::nullopt : integer(found->second);
    numbers.push_back(number.value_or(0));
    known.push_back(number.has_value());
  }
  for (const Requirement& each : all_) {
    const bool complete = std::all_of(each.steps.begin(), each.steps.end(), [&](const Step& step) {
      return step.op != Op::kKnob || known[static_cast<std::size_t>(step.number)];
    });
    if (!complete || !holds(each, numbers)) return each.text;
  }
  return "";
}

namespace {

// In unsigned arithmetic, which wraps around instead of being undefined.
std::int64_t wrapped(std::uint64_t value) { return static_cast<std::int64_t>(value); }

}  // namespace

bool Requirements::holds(const Requirement& requirement, const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> stack;
  for (const Step& step : requirement.steps) {
    if (step.op == Op::kNumber || step.op == Op::kKnob) {
      stack.push_back(step.op == Op::kNumber ? step.number
                                             : values[static_cast<std::size_t>(step.number)]);
      continue;
    }
    const std::int64_t b = stack.back();
    if (step.op == Op::kNot || step.op == Op::kMinus) {
      stack.back() = step.op == Op::kNot ? static_cast<std::int64_t>(b == 0)
                                         : wrapped(0 - static_cast<std::uint64_t>(b));
      continue;
    }
    stack.pop_back();
    const std::int64_t a = stack.back();
    const auto ua = static_cast<std::uint64_t>(a), ub = static_cast<std::uint64_t>(b);
    const bool divides = step.op == Op::kDivide || step.op == Op::kModulo;
    if (divides && (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min()))) {
      return false;
    }
    std::int64_t& result = stack.back();
    switch (step.op) {
      case Op::kMultiply:
        result = wrapped(ua * ub);
        break;
      case Op::kDivide:
        result = a / b;
        break;
      case Op::kModulo:
        result = a % b;
        break;
      case Op::kAdd:
        result = wrapped(ua + ub);
        break;
      case Op::kSubtract:
        result = wrapped(ua - ub);
        break;
      case Op::kLess:
        result = a < b;
        break;
      case Op::kAtMost:
        result = a <= b;
        break;
      case Op::kGreater:
        result = a > b;
        break;
      case Op::kAtLeast:
        result = a >= b;
        break;
      case Op::kEqual:
        result = a == b;
        break;
      case Op::kUnequal:
        result = a != b;
        break;
      case Op::kAnd:
        result = a != 0 && b != 0;
        break;
      case Op::kOr:
        result = a != 0 || b != 0;
        break;
      default:
        break;
    }
  }
  return stack.back() != 0;
}

}  // namespace kernelpro
