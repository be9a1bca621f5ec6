// SPDX-License-Identifier: Apache-2.0
// C++ and CUDA by braces: at namespace and type level, a declaration is the text between two of { }
// and ;, and function bodies are skipped.
#include <algorithm>
#include <cctype>
#include <utility>

#include "base/text.h"
#include "write/knowledge/scan_declaration.h"
#include "write/knowledge/scan_parts.h"

namespace kernelpro {

namespace {

// A shorter definition inside a type belongs to the type's chunk, not its own.
constexpr int kSmallMember = 4;
constexpr std::size_t kLongestHead = 20000;
// Limits on rescanning from the same place, or over the whole text: they keep the time linear.
constexpr int kMostReadings = 32;
constexpr int kMostUnclosed = 16;

class CppScanner {
 public:
  CppScanner(std::string_view text, ScannedFile* file) : text_(text), file_(file) {}

  void run() {
    while (at_ < text_.size()) step();
    while (!scopes_.empty()) close_scope();
    for (const auto& [begin, end] : file_comments_) {
      append_doc(&file_->doc, clean_doc(text_.substr(begin, end - begin)));
    }
  }

 private:
  struct Scope {
    bool type = false;
    int chunk = -1;  // in file_->chunks
  };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
  void advance() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  void advance_to(std::size_t end) {
    end = std::min(end, text_.size());
    line_ += static_cast<int>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    at_ = end;
  }

  bool at_line_start() const {
    std::size_t i = at_;
    while (i > 0 && (text_[i - 1] == ' ' || text_[i - 1] == '\t')) --i;
    return i == 0 || text_[i - 1] == '\n';
  }

  // Skips a comment, string, character or directive; false when there is none here.
  bool skip_quiet(bool in_body) {
    const char c = peek();
    if (c == '/' && peek(1) == '/') {
      line_comment();
    } else if (c == '/' && peek(1) == '*') {
      const std::size_t end = text_.find("*/", at_ + 2);
      comment(end == std::string_view::npos ? text_.size() : end + 2);
    } else if (c == '#' && at_line_start()) {
      directive(in_body);
    } else if (c == '"') {
      string();
    } else if (c == '\'') {
      character();
    } else {
      return false;
    }
    return true;
  }

  void line_comment() { comment(std::min(text_.find('\n', at_), text_.size())); }

  void comment(std::size_t end) {
    const int first = line_;
    const std::size_t begin = at_;
    advance_to(end);
    if (head_ != std::string_view::npos) return;
    // Comments on consecutive lines are one.
    if (comment_end_ != begin && first > comment_last_ + 1) comment_begin_ = std::string_view::npos;
    if (comment_begin_ == std::string_view::npos) {
      comment_begin_ = begin;
      comment_first_ = first;
    }
    comment_end_ = end;
    comment_last_ = line_;
    if (seen_code_ || depth_ > 0) return;
    // One block at a time: a license in line comments is recognized by its first lines.
    if (comment_begin_ == begin) file_comments_.push_back({begin, end});
    file_comments_.back().second = end;
  }

  void string() {
    // R"delimiter( ... )delimiter"
    if (at_ > 0 && text_[at_ - 1] == 'R') {
      const std::size_t open = text_.substr(at_, 18).find('(');
      if (open != std::string_view::npos && unclosed_ < kMostUnclosed) {
        const std::string close = ")" + std::string(text_.substr(at_ + 1, open - 1)) + "\"";
        const std::size_t end = text_.find(close, at_ + open);
        if (end != std::string_view::npos) return advance_to(end + close.size());
        ++unclosed_;
      }
    }
    quoted('"');
  }

  void character() {
    // 1'000'000
    if (at_ > 0 && std::isdigit(static_cast<unsigned char>(text_[at_ - 1])) != 0) return advance();
    quoted('\'');
  }

  void quoted(char quote) {
    begin_head();
    advance();
    while (at_ < text_.size() && peek() != quote && peek() != '\n') {
      if (peek() == '\\' && at_ + 1 < text_.size()) advance();
      advance();
    }
    if (peek() == quote) advance();
  }

  // The end of a logical line: a backslash at the line end continues it.
  std::size_t logical_end() const {
    std::size_t end = at_;
    for (;;) {
      end = text_.find('\n', end);
      if (end == std::string_view::npos) return text_.size();
      std::size_t last = end;
      if (last > at_ && text_[last - 1] == '\r') --last;
      if (last == at_ || text_[last - 1] != '\\') return end;
      ++end;
    }
  }

  void directive(bool in_body) {
    const int first = line_;
    const std::size_t end = logical_end();
    const std::string_view whole = text_.substr(at_, end - at_);
    std::string_view rest = trim(whole.substr(1));
    std::size_t n = 0;
    while (n < rest.size() && std::isalpha(static_cast<unsigned char>(rest[n])) != 0) ++n;
    const std::string_view word = rest.substr(0, n);
    rest = trim(rest.substr(n));
    advance_to(end);
    if (word == "include") {
      include(rest);
    } else if (word == "define") {
      if (!in_body) macro(rest, whole, first);
    } else if (word == "if" || word == "ifdef" || word == "ifndef") {
      if (conditions_.size() < kDeepest) conditions_.push_back(body_depth_);
    } else if (word == "else" || word == "elif") {
      // Every branch starts at the depth of the first.
      if (in_body && !conditions_.empty()) body_depth_ = conditions_.back();
    } else if (word == "endif" && !conditions_.empty()) {
      conditions_.pop_back();
    }
  }

  void include(std::string_view rest) {
    if (rest.size() < 3) return;
    const char close = rest[0] == '<' ? '>' : '"';
    const std::size_t end = rest.find(close, 1);
    if (end == std::string_view::npos || end > 300) return;
    file_->includes.emplace_back(rest.substr(1, end - 1));
    seen_code_ = true;
    comment_begin_ = std::string_view::npos;
  }

  void macro(std::string_view rest, std::string_view whole, int first) {
    const std::string name(identifier_at(rest, 0));
    if (name.empty()) return;
    file_->symbols.push_back({name, "macro", first});
    if (line_ - first < 2 && !has_comment_above(first)) return;
    if (depth_ > 0 || head_ != std::string_view::npos) return;
    Chunk chunk;
    chunk.kind = "macro";
    chunk.symbol = name;
    chunk.signature = one_line(line_views(whole)[0], kSignatureBytes);
    place(&chunk, first);
    chunk.last = line_;
    file_->chunks.push_back(std::move(chunk));
  }

  bool has_comment_above(int first) const {
    return comment_begin_ != std::string_view::npos && comment_last_ >= first - 2;
  }

  // The comment above belongs to the chunk.
  void place(Chunk* chunk, int first) {
    chunk->first = first;
    if (has_comment_above(first)) {
      chunk->doc = clean_doc(text_.substr(comment_begin_, comment_end_ - comment_begin_));
      if (!chunk->doc.empty()) chunk->first = comment_first_;
    }
    comment_begin_ = std::string_view::npos;
  }

  void begin_head() {
    if (head_ != std::string_view::npos || depth_ > 0) return;
    head_ = at_;
    head_line_ = line_;
    parens_ = 0;
    readings_ = 0;
    seen_code_ = true;
  }

  void end_head() {
    head_ = std::string_view::npos;
    comment_begin_ = std::string_view::npos;
  }

  void step() {
    if (skip_quiet(false)) return;
    const char c = peek();
    if (std::isspace(static_cast<unsigned char>(c)) != 0) return advance();
    if (c == '{') return open_brace();
    if (c == '}') {
      advance();
      end_head();
      return close_scope();
    }
    if (c == ';' && parens_ <= 0) return declaration();
    begin_head();
    if (c == '(') ++parens_;
    if (c == ')') --parens_;
    if (c == ':' && peek(1) != ':' && is_access(text_.substr(head_, at_ - head_))) end_head();
    advance();
    // No declaration is that long: this was something else.
    if (head_ != std::string_view::npos && at_ - head_ > kLongestHead) end_head();
  }

  static bool is_access(std::string_view head) {
    head = trim(head);
    return head == "public" || head == "private" || head == "protected";
  }

  void declaration() {
    if (head_ != std::string_view::npos) {
      const Declaration found = read_declaration(text_.substr(head_, at_ - head_), ';');
      if (!found.name.empty()) {
        file_->symbols.push_back({found.name, found.alias ? "alias" : "declaration", head_line_});
      }
    }
    advance();
    end_head();
  }

  void open_brace() {
    if (head_ == std::string_view::npos || parens_ > 0) return skip_braces();
    if (++readings_ > kMostReadings) {
      end_head();
      return skip_braces();
    }
    const std::string_view head = text_.substr(head_, at_ - head_);
    const Declaration found = read_declaration(head, '{');
    switch (found.what) {
      case Declaration::kNamespace:
        advance();
        end_head();
        scopes_.push_back({false, -1});
        return;
      case Declaration::kType:
        return type(head, found);
      case Declaration::kFunction:
        return function(head, found);
      case Declaration::kOther:
        return skip_braces();  // an initializer: the head continues
    }
  }

  bool inside_type() const { return !scopes_.empty() && scopes_.back().type; }

  void type(std::string_view head, const Declaration& found) {
    if (scopes_.size() >= kDeepest) return skip_braces();
    Chunk chunk = begin_chunk("type", head, found);
    if (found.enumeration) {
      skip_braces();
      chunk.last = line_;
      end_head();
      keep(std::move(chunk));
      return;
    }
    advance();
    end_head();
    name(chunk);
    file_->chunks.push_back(std::move(chunk));
    scopes_.push_back({true, static_cast<int>(file_->chunks.size()) - 1});
  }

  void function(std::string_view head, const Declaration& found) {
    Chunk chunk = begin_chunk("function", head, found);
    skip_braces();
    chunk.last = line_;
    end_head();
    keep(std::move(chunk));
  }

  Chunk begin_chunk(const char* kind, std::string_view head, const Declaration& found) {
    Chunk chunk;
    chunk.kind = kind;
    chunk.symbol = found.name;
    chunk.signature = one_line(head, kSignatureBytes);
    place(&chunk, head_line_);
    return chunk;
  }

  // A type may have no name.
  void name(const Chunk& chunk) {
    if (!chunk.symbol.empty()) file_->symbols.push_back({chunk.symbol, chunk.kind, head_line_});
  }

  void keep(Chunk chunk) {
    name(chunk);
    if (inside_type() && chunk.last - chunk.first < kSmallMember) return;
    file_->chunks.push_back(std::move(chunk));
  }

  void close_scope() {
    if (scopes_.empty()) return;
    const Scope scope = scopes_.back();
    scopes_.pop_back();
    if (scope.chunk >= 0) file_->chunks[scope.chunk].last = line_;
  }

  // From a { to past its }. A namespace in the first column inside it means that the braces do not
  // match (they come from macros): the body ends there.
  void skip_braces() {
    const int before = body_depth_;
    body_depth_ = 0;
    ++depth_;
    do {
      if (skip_quiet(true)) continue;
      const char c = peek();
      if (c == 'n' && at_ > 0 && text_[at_ - 1] == '\n' && starts("namespace ")) break;
      if (c == '{') ++body_depth_;
      if (c == '}') --body_depth_;
      advance();
    } while (at_ < text_.size() && body_depth_ > 0);
    --depth_;
    body_depth_ = before;
  }

  std::string_view text_;
  ScannedFile* file_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Scope> scopes_;
  std::size_t head_ = std::string_view::npos;
  int head_line_ = 1;
  int parens_ = 0;
  int readings_ = 0;    // of the current head
  int unclosed_ = 0;    // unterminated raw strings
  int depth_ = 0;       // inside a skipped body
  int body_depth_ = 0;  // its open braces
  std::vector<int> conditions_;
  bool seen_code_ = false;
  std::vector<std::pair<std::size_t, std::size_t>> file_comments_;
  std::size_t comment_begin_ = std::string_view::npos;
  std::size_t comment_end_ = 0;
  int comment_first_ = 0;
  int comment_last_ = -10;
};

}  // namespace

void scan_cpp(std::string_view text, ScannedFile* file) { CppScanner(text, file).run(); }

}  // namespace kernelpro
