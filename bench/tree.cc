// SPDX-License-Identifier: Apache-2.0
// The search in a tree of 100,000 nodes: microseconds per select-and-update, bytes per node with
// all its allocations, and the parts of a resume: opening the store, restoring ledger and search.
// Usage: bench_tree [NODES [STORED]]; STORED = 0 skips the store. The store is built in a temporary
// folder from candidates with the evaluation, evidence and diagnosis of a recorded one: 33 KB each,
// so 100,000 temporarily need 3.5 GB.
#include <malloc.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/files.h"
#include "run/bench.h"
#include "run/planted.h"
#include "run/store/store.h"
#include "search/mcts.h"

namespace {

std::int64_t live_bytes = 0;  // of the whole program, as rounded by the allocator

}  // namespace

// Not inlined: otherwise the compiler warns that malloc and delete do not match.
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* at = std::malloc(size);
  if (at == nullptr) throw std::bad_alloc();
  live_bytes += static_cast<std::int64_t>(malloc_usable_size(at) + sizeof(std::size_t));
  return at;
}
[[gnu::noinline]] void operator delete(void* at) noexcept {
  if (at == nullptr) return;
  live_bytes -= static_cast<std::int64_t>(malloc_usable_size(at) + sizeof(std::size_t));
  std::free(at);
}
void operator delete(void* at, std::size_t) noexcept { operator delete(at); }

namespace kernelpro {
namespace {

double now_us() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e6 * static_cast<double>(t.tv_sec) + 1e-3 * static_cast<double>(t.tv_nsec);
}

// A reproducible landscape: a child is its parent's time times a random factor; a third fails.
class Children {
 public:
  NodeResult next(double parent_us) {
    NodeResult result;
    result.correct = uniform() > 0.33;
    if (!result.correct) return result;
    result.time_us = std::max(1.0, parent_us * std::exp(0.25 * (uniform() + uniform() - 0.9)));
    result.fraction = 1 / result.time_us;
    result.likely = 1 + uniform();
    result.upper = 2 * result.likely;
    return result;
  }

 private:
  double uniform() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<double>(state_ >> 11) / static_cast<double>(1ull << 53);
  }
  std::uint64_t state_ = 1;
};

struct Step {
  std::int64_t parent;
  NodeResult result;
};

int depth_of(const std::vector<Step>& steps) {
  std::vector<int> depth(steps.size(), 0);
  int most = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    depth[i] = depth[static_cast<std::size_t>(steps[i].parent - 1)] + 1;
    most = std::max(most, depth[i]);
  }
  return most;
}

void print_row(const std::vector<Step>& steps, std::vector<double>* costs, double bytes) {
  std::sort(costs->begin(), costs->end());
  double sum = 0;
  for (const double cost : *costs) sum += cost;
  const auto size = costs->size();
  std::printf("%8zu %6d %10.2f %8.2f %8.2f %8.1f %8.0f\n", steps.size(), depth_of(steps),
              sum / static_cast<double>(size), (*costs)[size / 2], (*costs)[size * 99 / 100],
              costs->back(), bytes / static_cast<double>(steps.size()));
  costs->clear();
}

std::vector<Step> grow(std::size_t most, int in_flight) {
  std::vector<Step> steps;
  steps.reserve(most);
  Children children;
  const std::int64_t before = live_bytes;
  const auto tree = make_mcts();
  std::vector<double> costs;
  costs.reserve(most);
  steps.push_back({0, {true, 1000}});
  tree->add_root(1, steps[0].result);
  std::vector<std::int64_t> flying;
  std::size_t shown = 1000;
  std::printf("%d in flight\n%8s %6s %10s %8s %8s %8s %8s\n", in_flight, "nodes", "depth",
              "mean us", "median", "p99", "most", "bytes");
  const std::int64_t base = live_bytes - before;
  const double reserved = static_cast<double>(base);
  double selecting = 0;
  while (steps.size() < most) {
    double from = now_us();
    const auto turn = tree->start();
    selecting = now_us() - from;
    if (!turn) break;
    flying.push_back(turn->parent);
    if (static_cast<int>(flying.size()) < in_flight) continue;
    const std::int64_t done = flying.front();
    flying.erase(flying.begin());
    const Step step{done, children.next(steps[static_cast<std::size_t>(done - 1)].result.time_us)};
    const auto id = static_cast<std::int64_t>(steps.size()) + 1;
    from = now_us();
    tree->finalize(done, id, step.result);
    costs.push_back(selecting + now_us() - from);
    steps.push_back(step);
    if (steps.size() == shown || steps.size() == most) {
      print_row(steps, &costs, static_cast<double>(live_bytes - before) - reserved);
      shown *= 10;
    }
  }
  return steps;
}

double restore_us(const std::vector<Step>& steps) {
  const double from = now_us();
  const auto tree = make_mcts();
  tree->add_root(1, steps[0].result);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    tree->restore(steps[i].parent, static_cast<std::int64_t>(i) + 1, steps[i].result);
  }
  if (!tree->start()) std::abort();
  return now_us() - from;
}

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().text().c_str());
    std::exit(1);
  }
  return std::move(*result);
}

void must_run(sqlite3* db, const std::string& sql) {
  if (sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
  std::fprintf(stderr, "%s\n", sqlite3_errmsg(db));
  std::exit(1);
}

// Writes `steps` as candidates of a run in `run`, in one transaction. Each has the unchanged
// evaluation, evidence and diagnosis of a recorded one; the columns parent, outcome, score and
// promise come from its step. Every `sharing` candidates share one source of the recorded size.
void fill(const std::string& run, const RunHeader& header, const StoredCandidate& like,
          const std::vector<Step>& steps, int sharing) {
  {
    const auto store = must(Store::open(run, Store::Mode::kCreate, &header));
    Candidate first = like.known.candidate;
    first.origin.parent = 0;
    must(store->add({first}));
    if (!store->finish(1, like.known.evaluation, like.evidence, like.known.diagnosis, 1))
      std::exit(1);
  }
  sqlite3* db = nullptr;
  if (sqlite3_open(store_path(run).c_str(), &db) != SQLITE_OK) std::exit(1);
  must_run(db,
           "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN;"
           "CREATE TEMP TABLE step(id INTEGER PRIMARY KEY, parent, outcome, us, fraction, likely,"
           " upper)");
  sqlite3_stmt* row = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO step VALUES(?, ?, ?, ?, ?, ?, ?)", -1, &row, nullptr);
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const NodeResult& r = steps[i].result;
    sqlite3_bind_int64(row, 1, static_cast<std::int64_t>(i) + 1);
    sqlite3_bind_int64(row, 2, steps[i].parent);
    sqlite3_bind_text(row, 3, r.correct ? "correct" : "wrong-result", -1, SQLITE_STATIC);
    sqlite3_bind_double(row, 4, r.time_us);
    sqlite3_bind_double(row, 5, r.fraction);
    sqlite3_bind_double(row, 6, r.likely);
    sqlite3_bind_double(row, 7, r.upper);
    sqlite3_step(row);
    sqlite3_reset(row);
  }
  sqlite3_finalize(row);
  const std::string source = "printf('%032d', s.id / " + std::to_string(sharing) + ")";
  // Insert one candidate at a time, as a run does, so that its rows are adjacent.
  std::vector<sqlite3_stmt*> statements;
  for (const std::string& sql : {
           "INSERT OR IGNORE INTO sources SELECT " + source + ", x.text || '// ' || " + source +
               " FROM step s, (SELECT text FROM sources LIMIT 1) x WHERE s.id = ?1",
           "INSERT INTO candidates SELECT s.id, printf('%032d', s.id), c.language, " + source +
               ", json_set(c.knobs, '$.N', CAST(s.id AS TEXT)), 'tuner', s.parent, c.idea,"
               " c.answers FROM step s, candidates c WHERE s.id = ?1 AND c.id = 1",
           std::string("INSERT INTO evaluations SELECT s.id, s.id, s.outcome, s.us, s.id, e.json"
                       " FROM step s, evaluations e WHERE s.id = ?1 AND e.candidate = 1"),
           std::string("INSERT INTO evidence SELECT ?1, json FROM evidence WHERE candidate = 1"),
           std::string("INSERT INTO diagnosis SELECT ?1, json FROM diagnosis WHERE candidate = 1"),
           std::string("INSERT INTO outcomes SELECT s.id, s.id, s.id, s.outcome, s.us, o.incumbent,"
                       " o.ratio, o.low, o.high, o.energy_mj, o.energy_ratio, o.energy_low,"
                       " o.energy_high, printf('%032d', s.id), o.bound, o.floor_us, s.fraction, 0,"
                       " s.likely, s.upper FROM step s, outcomes o"
                       " WHERE s.id = ?1 AND o.candidate = 1"),
       }) {
    sqlite3_stmt*& statement = statements.emplace_back();
    if (sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      must_run(db, sql);  // prints the reason
    }
  }
  for (std::size_t i = 2; i <= steps.size(); ++i) {
    for (sqlite3_stmt* statement : statements) {
      sqlite3_bind_int64(statement, 1, static_cast<std::int64_t>(i));
      if (sqlite3_step(statement) != SQLITE_DONE) must_run(db, sqlite3_sql(statement));
      sqlite3_reset(statement);
    }
  }
  for (sqlite3_stmt* statement : statements) sqlite3_finalize(statement);
  must_run(db, "COMMIT");
  sqlite3_close(db);
}

std::int64_t file_bytes(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 ? info.st_size : 0;
}

double wall_s() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// The work of `kernelpro resume` before its first turn: opens and checks the store, rebuilds ledger
// and search, chooses and reads the first parent.
void resume(const std::string& run) {
  const double wall = wall_s();
  const double from = now_us();
  const std::int64_t before = live_bytes;
  const auto store = must(Store::open(run, Store::Mode::kWrite));
  const double opened = now_us();
  const RunHeader header = must(store->header());
  const RunSettings settings;
  BenchParts parts;
  parts.task = &header.task;
  parts.settings = &settings;
  parts.store = store.get();
  parts.machine = &header.machine;
  Bench bench(parts);
  const auto waiting = must(bench.restore());
  const Ledger& ledger = bench.ledger();
  const double restored = now_us();
  const std::int64_t held = live_bytes - before;
  Planted planted([] { return make_mcts(); });
  for (const KnownPtr& known : ledger.history()) {
    planted.place(known->candidate.origin.parent, known->id,
                  node_result(ledger, known->id, Feedback::kDiagnosed));
  }
  const auto turn = planted.start();
  if (!turn || must(bench.whole(turn->parent))->brief() || !waiting.empty()) std::abort();
  const double done = now_us();
  std::printf(
      "resume: opened and checked %.2f s, ledger %.2f s, search and first parent %.2f s; together "
      "%.2f s of processor time, %.2f s by the clock; %lld bytes a candidate in memory\n",
      (opened - from) / 1e6, (restored - opened) / 1e6, (done - restored) / 1e6,
      (done - from) / 1e6, wall_s() - wall,
      static_cast<long long>(held / std::max(1, ledger.evaluations())));
}

void measure_resume(const std::vector<Step>& steps) {
  const std::string recorded = KERNELPRO_SOURCE_DIR "/results/exchange/softmax.jsonl";
  const auto source = must(Store::open(recorded, Store::Mode::kRead));
  const RunHeader header = must(source->header());
  const StoredCandidate like = must(source->candidates()).at(1);
  for (const int sharing : {50, 1}) {
    const TempDir dir;
    const std::string run = join(dir.path(), "run");
    const double from = wall_s();
    fill(run, header, like, steps, sharing);
    std::printf("store written: %zu candidates, %d to a source, in %.1f s, %.0f MB\n", steps.size(),
                sharing, wall_s() - from, static_cast<double>(file_bytes(store_path(run))) / 1e6);
    for (int i = 0; i < 3; ++i) resume(run);
  }
}

}  // namespace
}  // namespace kernelpro

int main(int argc, char** argv) {
  using namespace kernelpro;
  const auto count = static_cast<std::size_t>(argc > 1 ? std::atoll(argv[1]) : 100000);
  const auto stored = static_cast<std::size_t>(argc > 2 ? std::atoll(argv[2]) : 100000);
  grow(count, 1);
  const std::vector<Step> steps = grow(count, 4);
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) times.push_back(restore_us(steps));
  std::sort(times.begin(), times.end());
  std::printf("restore of %zu nodes: %.0f ms (median of 5)\n", steps.size(), times[2] / 1000);
  if (stored > 0) {
    measure_resume({steps.begin(), steps.begin() + std::min(stored, steps.size())});
  }
  return 0;
}
