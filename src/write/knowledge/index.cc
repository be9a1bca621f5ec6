// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/index.h"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/clock.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/text.h"
#include "write/knowledge/scan.h"
#include "write/knowledge/scan_parts.h"
#include "write/knowledge/tokens.h"
#include "write/knowledge/tree.h"

namespace kernelpro {

namespace {

constexpr const char* kSchema = R"(
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE files(id INTEGER PRIMARY KEY, path TEXT UNIQUE, language TEXT, size INTEGER,
  hash TEXT, lines INTEGER, doc TEXT, shape TEXT, included INTEGER DEFAULT 0);
CREATE TABLE chunks(id INTEGER PRIMARY KEY, file INTEGER, first INTEGER, last INTEGER, kind TEXT,
  symbol TEXT, doc TEXT, signature TEXT, fold INTEGER);
CREATE INDEX chunks_of_file ON chunks(file);
CREATE TABLE symbols(name TEXT, file INTEGER, line INTEGER, kind TEXT);
CREATE INDEX symbols_by_name ON symbols(name);
CREATE INDEX symbols_of_file ON symbols(file);
CREATE TABLE includes(file INTEGER, target TEXT);
CREATE INDEX includes_of_file ON includes(file);
CREATE VIRTUAL TABLE chunk_text USING fts5(symbol, path, doc, signature, body, content='',
  tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE file_text USING fts5(symbol, path, intro, doc, body, content='',
  tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE chunk_words USING fts5vocab(chunk_text, row);
CREATE VIRTUAL TABLE file_words USING fts5vocab(file_text, row);
)";

// Rows of deleted files stay in the full-text tables (only words, never found); above this share
// the index is rebuilt.
constexpr double kMostDead = 0.25;
constexpr std::size_t kLongestLine = 4000;
constexpr std::size_t kFolds = 4;
constexpr std::size_t kShapes = 16;

std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 31;
  x *= 0x9e3779b97f4a7c15ULL;
  x ^= x >> 29;
  x *= 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 32);
}

// MinHash over runs of four words, in N classes: nearly equal texts give equal values. Digits are
// ignored, so that variants of one instruction are near-copies.
template <std::size_t N>
class Sketch {
 public:
  Sketch() { least_.fill(~std::uint64_t{0}); }
  void add(std::uint64_t shingle) {
    std::uint64_t& least = least_[shingle % N];
    least = std::min(least, shingle);
  }
  std::uint64_t folded() const {
    std::uint64_t all = 0;
    for (const std::uint64_t v : least_) all = mix(all * 31 + v);
    return all;
  }
  std::string text() const {
    std::string out;
    for (const std::uint64_t v : least_) {
      char digits[12];
      std::snprintf(digits, sizeof digits, "%08x", static_cast<unsigned>(v >> 32));
      out += digits;
    }
    return out;
  }

 private:
  std::array<std::uint64_t, N> least_;
};

// Counts words; yields each with a logarithmic repeat count.
class Counts {
 public:
  void add(std::uint32_t word) {
    if (word >= counts_.size()) counts_.resize(word + 1024);
    if (counts_[word]++ == 0) seen_.push_back(word);
  }
  std::string take(const Words& words) {
    std::string text;
    for (const std::uint32_t word : seen_) {
      const int times = 1 + static_cast<int>(std::log2(counts_[word]));
      for (int i = 0; i < times; ++i) {
        text += words.text(word);
        text += ' ';
      }
      counts_[word] = 0;
    }
    seen_.clear();
    return text;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::vector<std::uint32_t> seen_;
};

class Indexer {
 public:
  Indexer(Database* database, const std::string& root) : db_(database), root_(root) {}

  Result<IndexReport> update() {
    const double began = real_clock().now_s();
    KP_ASSIGN(auto files, files_below(root_));
    KP_TRY(done(db_->execute("BEGIN IMMEDIATE")));
    auto result = inside(files);
    if (!result) {
      db_->execute("ROLLBACK");
      return tl::unexpected<Error>(std::move(result.error()));
    }
    KP_TRY(done(db_->execute("COMMIT")));
    report_.seconds = real_clock().now_s() - began;
    return report_;
  }

 private:
  struct Known {
    std::int64_t id = 0;
    std::string hash;
  };

  Result<void> done(int code) const {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return {};
    Error error = db_->explain(code, "write the index of " + root_);
    error.next = "make space, and index it again: kernelpro knowledge add NAME " + root_;
    return tl::unexpected<Error>(std::move(error));
  }

  Result<void> inside(const std::vector<std::string>& files) {
    std::unordered_map<std::string, Known> known;
    {
      Statement all = db_->prepare("SELECT id, path, hash FROM files");
      while (all.step() == SQLITE_ROW) known[all.text(1)] = {all.integer(0), all.text(2)};
    }
    KP_TRY(begin_anew_if_sparse(&known));
    for (const std::string& path : files) {
      const auto text = read_below(root_, path);
      if (!text || is_binary(*text)) {
        ++report_.skipped;
        continue;  // an earlier version stays in `known` and is removed
      }
      const std::string hash = hash_hex(*text);
      ++report_.files;
      report_.bytes += static_cast<std::int64_t>(text->size());
      const auto found = known.find(path);
      if (found != known.end() && found->second.hash == hash) {
        known.erase(found);
        ++report_.unchanged;
        continue;
      }
      if (found != known.end()) {
        KP_TRY(forget(found->second.id));
        known.erase(found);
      }
      KP_TRY(add(path, *text, hash));
      ++report_.read;
    }
    for (const auto& [path, file] : known) {
      KP_TRY(forget(file.id));
      ++report_.removed;
    }
    if (report_.read + report_.removed > 0) KP_TRY(finish());
    return write_meta();
  }

  Result<void> begin_anew_if_sparse(std::unordered_map<std::string, Known>* known) {
    std::int64_t live = 0;
    std::int64_t highest = 0;
    db_->query_integer("SELECT count(*) FROM chunks", &live);
    db_->query_integer("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'highest'", &highest);
    next_chunk_ = highest + 1;
    db_->query_integer("SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'highest_file'",
                       &next_file_);
    ++next_file_;
    if (highest == 0 ||
        static_cast<double>(highest - live) < kMostDead * static_cast<double>(highest))
      return {};
    known->clear();
    next_chunk_ = next_file_ = 1;
    return done(db_->execute(
        "DELETE FROM files; DELETE FROM chunks; DELETE FROM symbols; DELETE FROM includes;"
        "INSERT INTO chunk_text(chunk_text) VALUES('delete-all');"
        "INSERT INTO file_text(file_text) VALUES('delete-all')"));
  }

  Result<void> forget(std::int64_t id) {
    for (const char* sql :
         {"DELETE FROM chunks WHERE file = ?", "DELETE FROM symbols WHERE file = ?",
          "DELETE FROM includes WHERE file = ?", "DELETE FROM files WHERE id = ?"}) {
      KP_TRY(done(db_->prepare(sql).bind(0, id).step()));
    }
    return {};
  }

  std::string words_of(std::string_view text) {
    std::string out;
    words_.each(text, [&](std::uint32_t word) {
      out += words_.text(word);
      out += ' ';
    });
    return out;
  }

  static std::int64_t count_words(const std::string& text) {
    return std::count(text.begin(), text.end(), ' ');
  }

  // A word without its digits.
  std::uint64_t shape_of(std::uint32_t word) {
    while (shapes_.size() <= word) {
      std::uint64_t hash = 14695981039346656037ULL;
      for (char c : words_.text(static_cast<std::uint32_t>(shapes_.size()))) {
        if (c >= '0' && c <= '9') c = '#';
        hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
      }
      shapes_.push_back(mix(hash));
    }
    return shapes_[word];
  }

  Result<void> add(const std::string& path, const std::string& text, const std::string& hash) {
    const SourceKind language = source_kind_of(path);
    const ScannedFile file = scan(language, text);
    const std::vector<int> owner = owners(file);
    const std::vector<std::string_view> lines = line_views(text);
    // The lines of each chunk that no inner chunk has.
    std::vector<std::vector<int>> own(file.chunks.size());
    for (std::size_t i = 0; i < owner.size(); ++i) {
      if (owner[i] >= 0) own[owner[i]].push_back(static_cast<int>(i));
    }
    const std::int64_t id = next_file_++;
    const std::string path_words = words_of(path);
    std::string all_docs;
    Sketch<kShapes> shape;
    std::unordered_set<std::uint64_t> folds;
    for (std::size_t i = 0; i < file.chunks.size(); ++i) {
      const Chunk& chunk = file.chunks[i];
      if (chunk.last < chunk.first) continue;
      Sketch<kFolds> sketch;
      std::uint64_t a = 0, b = 0, c = 0;
      for (const int line : own[i]) {
        words_.each(lines[line].substr(0, kLongestLine), [&](std::uint32_t word) {
          body_.add(word);
          whole_.add(word);
          const std::uint64_t d = shape_of(word);
          const std::uint64_t shingle = mix(a * 3 + b * 5 + c * 7 + d);
          a = b;
          b = c;
          c = d;
          sketch.add(shingle);
          shape.add(shingle);
        });
      }
      const std::string body = body_.take(words_);
      const bool copy = own[i].size() >= 4 && !folds.insert(sketch.folded()).second;
      if (i > 0) all_docs += chunk.doc + "\n";
      KP_TRY(add_chunk(id, chunk, sketch.folded(), path_words, copy ? "" : body));
    }
    KP_TRY(add_file(id, path, language, file, text, hash, shape.text()));
    return add_file_text(id, file, path_words, all_docs);
  }

  Result<void> add_chunk(std::int64_t file, const Chunk& chunk, std::uint64_t fold,
                         const std::string& path_words, const std::string& body) {
    const std::int64_t id = next_chunk_++;
    const std::string doc = one_line(chunk.doc, 400);
    KP_TRY(done(db_->prepare("INSERT INTO chunks VALUES(?,?,?,?,?,?,?,?,?)")
                    .bind(0, id)
                    .bind(1, file)
                    .bind(2, std::int64_t{chunk.first})
                    .bind(3, std::int64_t{chunk.last})
                    .bind(4, chunk.kind)
                    .bind(5, chunk.symbol)
                    .bind(6, doc)
                    .bind(7, chunk.signature)
                    .bind(8, static_cast<std::int64_t>(fold))
                    .step()));
    if (!body.empty()) {
      ++bodies_;
      chunk_words_ += count_words(body);
    }
    const std::string symbol = words_of(chunk.symbol);
    const std::string docs = words_of(chunk.doc);
    const std::string signature = words_of(chunk.signature);
    return done(db_->prepare("INSERT INTO chunk_text(rowid,symbol,path,doc,signature,body) "
                             "VALUES(?,?,?,?,?,?)")
                    .bind(0, id)
                    .bind(1, symbol)
                    .bind(2, path_words)
                    .bind(3, docs)
                    .bind(4, signature)
                    .bind(5, body)
                    .step());
  }

  Result<void> add_file(std::int64_t id, const std::string& path, SourceKind language,
                        const ScannedFile& file, const std::string& text, const std::string& hash,
                        const std::string& shape) {
    const std::string doc = one_line(file.doc, 400);
    KP_TRY(done(db_->prepare("INSERT INTO files VALUES(?,?,?,?,?,?,?,?,0)")
                    .bind(0, id)
                    .bind(1, path)
                    .bind(2, source_kind_name(language))
                    .bind(3, static_cast<std::int64_t>(text.size()))
                    .bind(4, hash)
                    .bind(5, std::int64_t{file.lines})
                    .bind(6, doc)
                    .bind(7, shape)
                    .step()));
    for (const NamedLine& symbol : file.symbols) {
      KP_TRY(done(db_->prepare("INSERT INTO symbols VALUES(?,?,?,?)")
                      .bind(0, symbol.name)
                      .bind(1, id)
                      .bind(2, std::int64_t{symbol.line})
                      .bind(3, symbol.kind)
                      .step()));
    }
    for (const std::string& target : file.includes) {
      KP_TRY(done(
          db_->prepare("INSERT INTO includes VALUES(?,?)").bind(0, id).bind(1, target).step()));
    }
    return {};
  }

  Result<void> add_file_text(std::int64_t id, const ScannedFile& file,
                             const std::string& path_words, const std::string& all_docs) {
    for (const NamedLine& symbol : file.symbols) {
      words_.each(symbol.name, [&](std::uint32_t word) { body_.add(word); });
    }
    const std::string symbols = body_.take(words_);
    words_.each(all_docs, [&](std::uint32_t word) { body_.add(word); });
    const std::string docs = body_.take(words_);
    const std::string intro = words_of(file.doc);
    const std::string body = whole_.take(words_);
    file_words_ += count_words(body);
    return done(db_->prepare("INSERT INTO file_text(rowid,symbol,path,intro,doc,body) "
                             "VALUES(?,?,?,?,?,?)")
                    .bind(0, id)
                    .bind(1, symbols)
                    .bind(2, path_words)
                    .bind(3, intro)
                    .bind(4, docs)
                    .bind(5, body)
                    .step());
  }

  // Counts the files that include a file: an include matches when exactly one path ends with it.
  Result<void> finish() {
    std::unordered_map<std::string, std::int64_t> by_ending;
    {
      Statement all = db_->prepare("SELECT id, path FROM files");
      while (all.step() == SQLITE_ROW) {
        const std::string path = all.text(1);
        for (std::size_t at = 0;;) {
          const auto [found, added] = by_ending.emplace(path.substr(at), all.integer(0));
          if (!added) found->second = 0;
          const std::size_t slash = path.find('/', at);
          if (slash == std::string::npos) break;
          at = slash + 1;
        }
      }
    }
    std::unordered_map<std::int64_t, std::int64_t> counts;
    {
      Statement all = db_->prepare("SELECT target, count(*) FROM includes GROUP BY target");
      while (all.step() == SQLITE_ROW) {
        const auto found = by_ending.find(all.text(0));
        if (found != by_ending.end() && found->second != 0) counts[found->second] += all.integer(1);
      }
    }
    KP_TRY(done(db_->execute("UPDATE files SET included = 0")));
    for (const auto& [id, count] : counts) {
      KP_TRY(done(db_->prepare("UPDATE files SET included = ? WHERE id = ?")
                      .bind(0, count)
                      .bind(1, id)
                      .step()));
    }
    return done(
        db_->execute("INSERT INTO chunk_text(chunk_text) VALUES('optimize');"
                     "INSERT INTO file_text(file_text) VALUES('optimize')"));
  }

  // Average body length in words; an update of a few files leaves it unchanged.
  Result<void> write_lengths() {
    if (report_.read < report_.unchanged || bodies_ == 0 || report_.read == 0) return {};
    KP_TRY(
        write("chunk_length", std::to_string(std::max<std::int64_t>(1, chunk_words_ / bodies_))));
    return write("file_length",
                 std::to_string(std::max<std::int64_t>(1, file_words_ / report_.read)));
  }

  Result<void> write(const char* key, const std::string& value) {
    return done(
        db_->prepare("INSERT OR REPLACE INTO meta VALUES(?,?)").bind(0, key).bind(1, value).step());
  }

  Result<void> write_meta() {
    db_->query_integer("SELECT count(*) FROM chunks", &report_.chunks);
    KP_TRY(write_lengths());
    KP_TRY(write("updated", utc_now()));
    KP_TRY(write("highest", std::to_string(next_chunk_ - 1)));
    return write("highest_file", std::to_string(next_file_ - 1));
  }

  Database* db_;
  std::string root_;
  IndexReport report_;
  Words words_;
  Counts body_;
  Counts whole_;
  std::vector<std::uint64_t> shapes_;
  std::int64_t bodies_ = 0;
  std::int64_t chunk_words_ = 0;
  std::int64_t file_words_ = 0;
  std::int64_t next_chunk_ = 1;
  std::int64_t next_file_ = 0;
};

}  // namespace

Result<void> create_index(Database* database, const std::string& root) {
  int code = database->execute(kSchema);
  const std::string version = std::to_string(kIndexVersion);
  if (code == SQLITE_OK) {
    code = database->prepare("INSERT INTO meta VALUES('version', ?), ('root', ?)")
               .bind(0, version)
               .bind(1, root)
               .step();
  }
  if (code == SQLITE_OK || code == SQLITE_DONE) return {};
  return tl::unexpected<Error>(database->explain(code, "make the index of " + root));
}

Result<IndexReport> update_index(Database* database, const std::string& root) {
  return Indexer(database, root).update();
}

}  // namespace kernelpro
