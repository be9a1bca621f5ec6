// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/search.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "write/knowledge/rank.h"
#include "write/knowledge/scan.h"
#include "write/knowledge/scan_parts.h"
#include "write/knowledge/tokens.h"
#include "write/knowledge/tree.h"

namespace kernelpro {

namespace {

// Weight of a file's best chunk, relative to the file as a whole.
constexpr double kChunkShare = 1.3;
// Bonus for the chunk that defines an identifier of the question.
constexpr double kDefined = 14;
constexpr double kDeclared = 5;
// Bonus for widely included files: among equals, they are the likely target.
constexpr double kIncluded = 0.35;
constexpr double kTextShare = 0.6;  // build scripts and the like
// Files of another language than the one asked for.
constexpr double kOtherLanguage = 0.4;
// A shorter definition that equals another is no copy: too many look like it.
constexpr int kLinesOfCopy = 6;
constexpr int kNamesOfBlock = 4;
// Sketches have this many parts; this many equal ones make a near-copy.
constexpr double kShapeParts = 16;
constexpr int kNearCopy = 14;
// Penalties on the remaining hits: for an equal shape, and for the same folder.
constexpr double kLikeness = 0.25;
constexpr double kSameFolder = 0.04;
constexpr std::size_t kShapeDigits = 8;
constexpr int kExcerptLines = 8;
constexpr std::size_t kExcerptColumns = 160;

struct Ranked {
  std::int64_t chunk = 0;
  double chunk_score = 0;
  std::int64_t file = 0;
  double score = 0;
  std::int64_t fold = 0;
  std::string shape;
  Hit hit;
};

class Search {
 public:
  Search(Database* database, const Question& question, const SearchSettings& settings)
      : db_(database), question_(question), settings_(settings) {}

  Result<std::vector<Hit>> run() {
    KP_ASSIGN(const auto files, rank_rows(db_, question_, kFileRanking));
    KP_ASSIGN(const auto chunks, rank_rows(db_, question_, kChunkRanking));
    for (const Scored& file : files) file_scores_[file.row] = file.score;
    std::unordered_set<std::int64_t> listed;
    for (const Scored& chunk : chunks) add_chunk(chunk.row, chunk.score);
    add_definitions();
    for (const Ranked& candidate : candidates_) listed.insert(candidate.file);
    for (const Scored& file : files) {
      if (listed.count(file.row) == 0) add_head(file.row);
    }
    for (Ranked& candidate : candidates_) judge(&candidate);
    std::stable_sort(candidates_.begin(), candidates_.end(),
                     [](const Ranked& a, const Ranked& b) { return a.score > b.score; });
    return folded();
  }

 private:
  void take_row(Statement& row, double score) {
    Ranked candidate;
    candidate.chunk = row.integer(0);
    candidate.file = row.integer(1);
    candidate.chunk_score = score;
    candidate.hit.first = static_cast<int>(row.integer(2));
    candidate.hit.last = static_cast<int>(row.integer(3));
    candidate.hit.kind = row.text(4);
    candidate.hit.symbol = row.text(5);
    candidate.hit.doc = row.text(6);
    candidate.hit.signature = row.text(7);
    candidate.fold = row.integer(8);
    by_chunk_[candidate.chunk] = candidates_.size();
    candidates_.push_back(std::move(candidate));
  }

  void add_chunk(std::int64_t id, double score) {
    if (by_chunk_.count(id) != 0) return;
    Statement row = db_->prepare(
        "SELECT id, file, first, last, kind, symbol, doc, signature, fold FROM chunks "
        "WHERE id = ?");
    if (row.bind(0, id).step() == SQLITE_ROW) take_row(row, score);
  }

  void add_head(std::int64_t file) {
    Statement row = db_->prepare(
        "SELECT id, file, first, last, kind, symbol, doc, signature, fold FROM chunks "
        "WHERE file = ? ORDER BY id LIMIT 1");
    if (row.bind(0, file).step() == SQLITE_ROW) take_row(row, 0);
  }

  // Adds chunks that define an identifier of the question, whatever else they hold.
  void add_definitions() {
    for (const std::string& name : question_.identifiers) {
      std::vector<std::pair<std::int64_t, std::int64_t>> places;
      std::vector<double> gains;
      {
        Statement rows =
            db_->prepare("SELECT file, line, kind FROM symbols WHERE name = ? LIMIT 200");
        rows.bind(0, name);
        while (rows.step() == SQLITE_ROW) {
          const std::string kind = rows.text(2);
          places.emplace_back(rows.integer(0), rows.integer(1));
          gains.push_back(kind == "alias" || kind == "declaration" ? kDeclared : kDefined);
        }
      }
      // A name defined in many places means little.
      const double share = 1 / std::sqrt(1 + static_cast<double>(places.size()) / 8);
      for (std::size_t i = 0; i < places.size(); ++i) {
        std::int64_t id = 0;
        {
          Statement row = db_->prepare(
              "SELECT id FROM chunks WHERE file = ? AND first <= ? AND last >= ? "
              "ORDER BY kind = 'file', last - first LIMIT 1");
          row.bind(0, places[i].first).bind(1, places[i].second).bind(2, places[i].second);
          if (row.step() == SQLITE_ROW) id = row.integer(0);
        }
        if (id == 0) continue;
        add_chunk(id, 0);
        double& gain = defined_[id];
        gain = std::max(gain, gains[i] * share);
      }
    }
  }

  void judge(Ranked* candidate) {
    Statement row = db_->prepare("SELECT path, language, shape, included FROM files WHERE id = ?");
    if (row.bind(0, candidate->file).step() != SQLITE_ROW) return;
    candidate->hit.path = row.text(0);
    candidate->shape = row.text(2);
    const auto file = file_scores_.find(candidate->file);
    double score = kChunkShare * candidate->chunk_score;
    if (file != file_scores_.end()) score += file->second;
    const auto defined = defined_.find(candidate->chunk);
    if (defined != defined_.end()) score += defined->second;
    score += kIncluded * std::log1p(static_cast<double>(row.integer(3)));
    const std::string language = row.text(1);
    if (language == "text") score *= kTextShare;
    if (is_other_language(language)) score *= kOtherLanguage;
    candidate->score = candidate->hit.score = score;
  }

  // Pages and build scripts are of no family.
  bool is_other_language(const std::string& language) const {
    if (settings_.language.empty() || language == "text" || language == "markdown") return false;
    const std::string_view python = source_kind_name(SourceKind::kPython);
    return (language == python) != (settings_.language == python);
  }

  // What surrounds a hit, and what a block declares.
  void name_surroundings(Ranked* candidate) {
    Hit& hit = candidate->hit;
    if (hit.kind != "block" && hit.kind != "file") {
      Statement row = db_->prepare(
          "SELECT symbol FROM chunks WHERE file = ? AND first <= ? AND last >= ? AND id != ? "
          "AND kind IN ('type', 'function') ORDER BY last - first LIMIT 1");
      row.bind(0, candidate->file).bind(1, std::int64_t{hit.first}).bind(2, std::int64_t{hit.last});
      if (row.bind(3, candidate->chunk).step() == SQLITE_ROW) hit.scope = row.text(0);
      return;
    }
    Statement rows = db_->prepare(
        "SELECT DISTINCT name FROM symbols WHERE file = ? AND line BETWEEN ? AND ? "
        "ORDER BY line LIMIT ?");
    rows.bind(0, candidate->file).bind(1, std::int64_t{hit.first}).bind(2, std::int64_t{hit.last});
    rows.bind(3, std::int64_t{kNamesOfBlock});
    while (rows.step() == SQLITE_ROW) {
      hit.symbol += (hit.symbol.empty() ? "" : ", ") + rows.text(0);
    }
  }

  // Number of equal parts of two sketches.
  static int alike(const std::string& a, const std::string& b) {
    if (a.size() != b.size()) return 0;
    int same = 0;
    for (std::size_t i = 0; i < a.size(); i += kShapeDigits) {
      same += a.compare(i, kShapeDigits, b, i, kShapeDigits) == 0 ? 1 : 0;
    }
    return same;
  }

  static std::string_view folder(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return std::string_view(path).substr(0, slash == std::string::npos ? 0 : slash);
  }

  // Whether a hit covers all of another; a near-copy is listed with it.
  static bool folds(Ranked* hit, const Ranked& other) {
    if (hit->file == other.file) return hit->fold == other.fold;
    const bool copied = hit->fold == other.fold && hit->hit.symbol == other.hit.symbol &&
                        hit->hit.last - hit->hit.first >= kLinesOfCopy;
    if (!copied && alike(hit->shape, other.shape) < kNearCopy) return false;
    if (hit->hit.copies.size() < 10) hit->hit.copies.push_back(other.hit.path);
    return true;
  }

  // Repeatedly takes the best of the rest, with a penalty for resembling earlier hits: five
  // variants of one thing would hide everything else.
  std::vector<Hit> folded() {
    std::vector<Ranked*> left;
    std::unordered_set<std::int64_t> files;
    for (Ranked& candidate : candidates_) {
      if (candidate.score <= 0) continue;
      if (settings_.one_per_file && !files.insert(candidate.file).second) continue;
      left.push_back(&candidate);
    }
    std::vector<Ranked*> kept;
    const auto limit = static_cast<std::size_t>(std::clamp(settings_.limit, 1, 100));
    while (!left.empty() && kept.size() < limit) {
      const auto best =
          std::max_element(left.begin(), left.end(),
                           [](const Ranked* a, const Ranked* b) { return a->score < b->score; });
      Ranked* hit = *best;
      left.erase(best);
      left.erase(std::remove_if(left.begin(), left.end(),
                                [&](const Ranked* other) { return folds(hit, *other); }),
                 left.end());
      hit->hit.score = hit->score;
      kept.push_back(hit);
      for (Ranked* other : left) {
        if (other->file == hit->file) continue;
        double like = kLikeness * alike(hit->shape, other->shape) / kShapeParts;
        if (folder(hit->hit.path) == folder(other->hit.path)) like += kSameFolder;
        other->score *= 1 - like;
      }
    }
    std::vector<Hit> hits;
    for (Ranked* candidate : kept) {
      name_surroundings(candidate);
      hits.push_back(std::move(candidate->hit));
    }
    return hits;
  }

  Database* db_;
  const Question& question_;
  const SearchSettings& settings_;
  std::unordered_map<std::int64_t, double> file_scores_;
  std::unordered_map<std::int64_t, double> defined_;        // by chunk
  std::unordered_map<std::int64_t, std::size_t> by_chunk_;  // in candidates_
  std::vector<Ranked> candidates_;
};

}  // namespace

Result<std::vector<Hit>> search_library(Database* database, const Question& question,
                                        const SearchSettings& settings) {
  // One transaction: one lock for hundreds of small statements, and one state of the index.
  database->execute("BEGIN");
  auto hits = Search(database, question, settings).run();
  database->execute("COMMIT");
  return hits;
}

void add_excerpt(const std::string& root, const Question& question, Hit* hit) {
  const auto text = read_below(root, hit->path);
  if (!text) return;
  const std::vector<std::string_view> lines = line_views(*text);
  const int last = std::min(hit->last, static_cast<int>(lines.size()));
  std::unordered_set<std::string> wanted;
  for (const Concept& idea : question.concepts) {
    for (const Form& form : idea.forms) wanted.insert(form.words.begin(), form.words.end());
  }
  Words words;
  std::vector<int> hits;
  for (int i = hit->first - 1; i < last && i < hit->first + 1500; ++i) {
    int count = 0;
    words.each(lines[i].substr(0, 400),
               [&](std::uint32_t word) { count += wanted.count(words.text(word)) != 0 ? 1 : 0; });
    hits.push_back(std::min(count, 4));
  }
  const int span = static_cast<int>(hits.size());
  int best = 0;
  int best_count = -1;
  for (int i = 0; i == 0 || i + kExcerptLines <= span; ++i) {
    int count = 0;
    for (int k = i; k < std::min(span, i + kExcerptLines); ++k) count += hits[k];
    if (count > best_count) {
      best_count = count;
      best = i;
    }
  }
  hit->excerpt_first = hit->first + best;
  for (int k = best; k < std::min(span, best + kExcerptLines); ++k) {
    hit->excerpt += printable(lines[hit->first - 1 + k].substr(0, kExcerptColumns)) + "\n";
  }
}

}  // namespace kernelpro
