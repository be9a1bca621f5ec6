// SPDX-License-Identifier: Apache-2.0
#include "write/knowledge/rank.h"

#include <sqlite3.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

namespace kernelpro {

// symbol, path, doc, signature, body
const Ranking kChunkRanking{"chunk_text", {6.0, 2.0, 3.0, 2.0, 1.0}, 0.4, 5.0, 5000, 120};
// symbol, path, intro, doc, body
const Ranking kFileRanking{"file_text", {2.5, 5.0, 4.0, 1.5, 1.0}, 0.5, 1.5, 6000, 120};

namespace {

// Upper limit for the weight of a rare word: plain words that are rare in sources are often chance.
// Identifiers have their own table of symbols.
constexpr double kMostRare = 6;

// One phrase of the MATCH expression.
struct Term {
  std::size_t idea = 0;  // index of its concept
  double gain = 0;       // weight times inverse document frequency
  std::int64_t rows = 0;
  std::string match;
};

struct Plan {
  const Ranking* ranking = nullptr;
  std::vector<Term> terms;
  std::vector<double> best;  // by concept, for the current row
  std::vector<double> most;  // by concept, its maximum
  std::vector<double> frequency;
  double average_length = 1;
};

// The plan of the query running on this thread: FTS5 passes its functions no pointer of ours.
thread_local Plan* current = nullptr;

void score_row(const Fts5ExtensionApi* api, Fts5Context* fts, sqlite3_context* context, int,
               sqlite3_value**) {
  Plan& plan = *current;
  std::fill(plan.best.begin(), plan.best.end(), 0.0);
  std::fill(plan.frequency.begin(), plan.frequency.end(), 0.0);
  int count = 0;
  int code = api->xInstCount(fts, &count);
  for (int i = 0; i < count && code == SQLITE_OK; ++i) {
    int phrase = 0;
    int column = 0;
    int offset = 0;
    code = api->xInst(fts, i, &phrase, &column, &offset);
    if (code == SQLITE_OK && phrase < static_cast<int>(plan.terms.size())) {
      plan.frequency[phrase] += plan.ranking->weights[column];
    }
  }
  int length = 0;
  if (code == SQLITE_OK) code = api->xColumnSize(fts, 4, &length);
  if (code != SQLITE_OK) return sqlite3_result_error_code(context, code);
  const double b = plan.ranking->length_share;
  const double k = plan.ranking->saturation * (1 - b + b * length / plan.average_length);
  for (std::size_t i = 0; i < plan.terms.size(); ++i) {
    const double f = plan.frequency[i];
    if (f == 0) continue;
    double& best = plan.best[plan.terms[i].idea];
    best = std::max(best, plan.terms[i].gain * f * (1 + plan.ranking->saturation) / (f + k));
  }
  double sum = 0;
  double covered = 0;
  double all = 0;
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    sum += plan.best[i];
    all += plan.most[i];
    if (plan.best[i] > 0) covered += plan.most[i];
  }
  // Some of everything beats a lot of one part.
  sqlite3_result_double(context, sum * (0.6 + 0.4 * covered / std::max(all, 1e-9)));
}

Result<void> fault(Database* database, int code) {
  Error error = database->explain(code, "search the index");
  error.next = "index the library again: kernelpro knowledge remove NAME, then add";
  return tl::unexpected<Error>(std::move(error));
}

Result<void> register_score(Database* database) {
  fts5_api* api = nullptr;
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(database->handle(), "SELECT fts5(?1)", -1, &statement, nullptr);
  if (code == SQLITE_OK) {
    sqlite3_bind_pointer(statement, 1, static_cast<void*>(&api), "fts5_api_ptr", nullptr);
    sqlite3_step(statement);
  }
  sqlite3_finalize(statement);
  if (api == nullptr) {
    return fail(ErrorKind::kEnvironment, "this SQLite has no full-text search (FTS5)",
                "build KernelPro with an SQLite that has it, as Debian's has");
  }
  code = api->xCreateFunction(api, "kernelpro_score", nullptr, score_row, nullptr);
  return code == SQLITE_OK ? Result<void>() : fault(database, code);
}

bool is_chunks(const Ranking& ranking) { return ranking.table[0] == 'c'; }

// Number of rows that contain a word; names share words, so each is looked up once.
class Frequencies {
 public:
  Frequencies(Database* database, bool chunks)
      : db_(database),
        sql_(chunks ? "SELECT doc FROM chunk_words WHERE term = ?"
                    : "SELECT doc FROM file_words WHERE term = ?") {}

  std::int64_t rows_with(const std::string& word) {
    const auto [known, added] = known_.emplace(word, 0);
    if (!added) return known->second;
    Statement find = db_->prepare(sql_);
    if (find.bind(0, word).step() == SQLITE_ROW) known->second = find.integer(0);
    return known->second;
  }

 private:
  Database* db_;
  const char* sql_;
  std::unordered_map<std::string, std::int64_t> known_;
};

double average_length(Database* database, bool chunks) {
  std::int64_t length = 0;
  database->query_integer(chunks
                              ? "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'chunk_length'"
                              : "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'file_length'",
                          &length);
  return static_cast<double>(std::max<std::int64_t>(length, 1));
}

// The terms, rare ones first, up to the row budget.
void make_terms(Database* database, const Question& question, double total, Plan* plan) {
  Frequencies frequencies(database, is_chunks(*plan->ranking));
  for (std::size_t i = 0; i < question.concepts.size(); ++i) {
    for (const Form& form : question.concepts[i].forms) {
      Term term;
      term.idea = i;
      std::int64_t rows = static_cast<std::int64_t>(total);
      for (const std::string& word : form.words) {
        rows = std::min(rows, frequencies.rows_with(word));
        term.match += (term.match.empty() ? "\"" : " ") + word;
      }
      term.match += '"';
      if (rows == 0 || form.words.empty()) continue;
      // An adjacent pair is rarer than its rarest word.
      if (form.words.size() > 1) rows = std::max<std::int64_t>(1, rows / 2);
      term.rows = rows;
      const double n = static_cast<double>(rows);
      term.gain = question.concepts[i].weight * form.weight *
                  std::min(kMostRare, std::log(1 + (total - n + 0.5) / (n + 0.5)));
      plan->terms.push_back(std::move(term));
    }
  }
  std::stable_sort(plan->terms.begin(), plan->terms.end(),
                   [](const Term& a, const Term& b) { return a.rows < b.rows; });
  std::int64_t sum = 0;
  std::size_t kept = 0;
  while (kept < plan->terms.size() && kept < 64) {
    sum += plan->terms[kept].rows;
    if (kept >= 2 && sum > plan->ranking->most_rows) break;
    ++kept;
  }
  plan->terms.resize(kept);
  for (const Term& term : plan->terms) {
    plan->most[term.idea] = std::max(plan->most[term.idea], term.gain);
  }
}

}  // namespace

Result<std::vector<Scored>> rank_rows(Database* database, const Question& question,
                                      const Ranking& ranking) {
  KP_TRY(register_score(database));
  std::int64_t total = 0;
  const bool chunks = is_chunks(ranking);
  database->query_integer(chunks ? "SELECT max(id) FROM chunks" : "SELECT max(id) FROM files",
                          &total);
  Plan plan;
  plan.ranking = &ranking;
  plan.best.resize(question.concepts.size());
  plan.most.resize(question.concepts.size());
  plan.average_length = average_length(database, chunks);
  make_terms(database, question, static_cast<double>(std::max<std::int64_t>(total, 1)), &plan);
  std::vector<Scored> found;
  if (plan.terms.empty()) return found;
  plan.frequency.resize(plan.terms.size());
  std::string match;
  for (const Term& term : plan.terms) {
    if (!match.empty()) match += " OR ";
    match += term.match;
  }
  Statement rows =
      database->prepare(chunks ? "SELECT rowid, kernelpro_score(chunk_text) AS s FROM chunk_text "
                                 "WHERE chunk_text MATCH ? ORDER BY s DESC, rowid LIMIT ?"
                               : "SELECT rowid, kernelpro_score(file_text) AS s FROM file_text "
                                 "WHERE file_text MATCH ? ORDER BY s DESC, rowid LIMIT ?");
  rows.bind(0, match).bind(1, std::int64_t{ranking.limit});
  current = &plan;
  int code = SQLITE_ROW;
  while ((code = rows.step()) == SQLITE_ROW) found.push_back({rows.integer(0), rows.real(1)});
  current = nullptr;
  if (code != SQLITE_DONE) {
    return tl::unexpected<Error>(fault(database, code).error());
  }
  return found;
}

}  // namespace kernelpro
