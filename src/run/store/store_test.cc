// SPDX-License-Identifier: Apache-2.0
// The store against real SQLite files, full disks and SIGKILL.
#include "run/store/store.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "base/files.h"
#include "base/sqlite.h"
#include "base/text.h"
#include "measure/station/testing/fake_target.h"
#include "run/store/pack.h"

namespace kernelpro {
namespace {

RunHeader header() {
  RunHeader h;
  h.task = testing::fake_task();
  h.machine.name = "a machine";
  h.machine.target = "cpu";
  h.settings_json = "{}";
  return h;
}

Candidate candidate(int i, std::int64_t parent = 0) {
  Candidate c;
  c.source = "// @knob V 1 2\nint x;\n";
  c.knobs = {{"V", std::to_string(i)}};
  c.origin = {"tuner", parent, "V 1 -> 2, because.", {"scalar-code", "vectorize"}};
  return c;
}

Evaluation correct(double us) {
  Correct c;
  c.timings.push_back({"large", us, us - 1, us + 1, 20, "calls in turn"});
  c.versus = Correct::Versus{"abc", 1.5, 1.4, 1.6};
  Evaluation e;
  e.outcome = c;
  e.compile_ms = 12;
  e.trust = "in-process";
  return e;
}

std::unique_ptr<Store> create(const std::string& directory) {
  const RunHeader h = header();
  auto store = Store::open(directory, Store::Mode::kCreate, &h);
  EXPECT_TRUE(store) << store.error().text();
  return store ? std::move(*store) : nullptr;
}

// "ok" when SQLite finds nothing wrong.
std::string integrity(const std::string& directory) {
  sqlite3* db = nullptr;
  std::string verdict = "cannot be opened";
  if (sqlite3_open(store_path(directory).c_str(), &db) == SQLITE_OK) {
    sqlite3_exec(
        db, "PRAGMA integrity_check",
        [](void* out, int, char** values, char**) {
          *static_cast<std::string*>(out) = values[0];
          return 0;
        },
        &verdict, nullptr);
  }
  sqlite3_close(db);
  return verdict;
}

void patch_sql(const std::string& directory, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(store_path(directory).c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
}

TEST(Store, GivesBackWhatWasStored) {
  TempDir dir;
  const std::string run = join(dir.path(), "run");
  {
    auto store = create(run);
    ASSERT_NE(store, nullptr);
    auto ids = store->add({candidate(1), candidate(2, 1)});
    ASSERT_TRUE(ids) << ids.error().text();
    EXPECT_EQ(*ids, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(store->add({candidate(2, 1)})->front(), 0) << "the content is known";
    Evidence evidence;
    evidence.texts["loop"] = "vmulps";
    Diagnosis diagnosis;
    diagnosis.summary = "slow";
    ASSERT_TRUE(store->finish(2, correct(50), evidence, diagnosis, 1.5));
    EXPECT_FALSE(store->finish(2, correct(50), evidence, diagnosis, 1.6)) << "evaluated already";
    ASSERT_TRUE(store->finish(1, Evaluation{CompileError{"bad"}, 1, 0, "", ""}, {}, {}, 2.5));
    ASSERT_TRUE(store->confirm({2, correct(49), "the budget", 0.7}));
    ASSERT_TRUE(store->confirm({2, correct(48), "the larger budget", 0.8}));
    ASSERT_TRUE(store->save_settings("{\"seed\":3}"));
  }
  auto store = Store::open(run, Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto head = (*store)->header();
  ASSERT_TRUE(head);
  EXPECT_EQ(head->task.content_hash(), header().task.content_hash());
  EXPECT_EQ(head->machine.name, "a machine");
  EXPECT_EQ(head->settings_json, "{\"seed\":3}");
  EXPECT_FALSE(head->created.empty());
  const auto all = (*store)->candidates();
  ASSERT_TRUE(all) << all.error().text();
  ASSERT_EQ(all->size(), 2u);
  const StoredCandidate& second = (*all)[1];
  EXPECT_EQ(second.known.candidate.content_hash(), candidate(2).content_hash());
  EXPECT_EQ(second.known.candidate.origin.parent, 1);
  EXPECT_EQ(second.known.candidate.origin.answers.text(), "scalar-code: vectorize");
  EXPECT_EQ(second.order, 1);
  EXPECT_EQ(second.at_s, 1.5);
  EXPECT_DOUBLE_EQ(score_us(second.known.evaluation), 50);
  EXPECT_EQ(second.known.evaluation.correct()->versus->low, 1.4);
  EXPECT_EQ(second.evidence.texts.at("loop"), "vmulps");
  EXPECT_EQ(second.known.diagnosis.summary, "slow");
  EXPECT_EQ((*all)[0].order, 2);
  EXPECT_EQ(outcome_name((*all)[0].known.evaluation.outcome), "compile-error");
  EXPECT_EQ((*store)->run_seconds(), 2.5);
  const auto confirmation = (*store)->confirmation();
  ASSERT_TRUE(confirmation && *confirmation);
  EXPECT_EQ((*confirmation)->stopped_by, "the larger budget");
}

TEST(Store, OneWriterAndReadersBesideIt) {
  TempDir dir;
  auto store = create(dir.path());
  ASSERT_NE(store, nullptr);
  const auto second = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind, ErrorKind::kBusy);
  EXPECT_TRUE(contains(second.error().message, "process " + std::to_string(::getpid())))
      << second.error().text();
  ASSERT_TRUE(store->add({candidate(1)}));
  const auto reader = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->candidates()->size(), 0u) << "a proposal is stored with its result";
  ASSERT_TRUE(store->finish(1, correct(9), {}, {}, 0));
  EXPECT_EQ((*reader)->candidates()->size(), 1u);
  ASSERT_TRUE(store->add({candidate(2)})) << "an open reader must not block the writer";
  ASSERT_TRUE(store->finish(2, correct(8), {}, {}, 0)) << "nor its commits";
  EXPECT_EQ((*reader)->candidates()->size(), 2u);
}

TEST(Store, RefusesWhatIsNoRun) {
  TempDir dir;
  const auto missing = Store::open(join(dir.path(), "none"), Store::Mode::kWrite);
  ASSERT_FALSE(missing);
  EXPECT_TRUE(contains(missing.error().message, "there is no run")) << missing.error().text();
  EXPECT_FALSE(exists(join(dir.path(), "none")));
  ASSERT_TRUE(write_file(join(dir.path(), "notes.txt"), "mine"));
  const RunHeader h = header();
  const auto occupied = Store::open(dir.path(), Store::Mode::kCreate, &h);
  ASSERT_FALSE(occupied);
  EXPECT_EQ(occupied.error().kind, ErrorKind::kStore);
  EXPECT_TRUE(contains(occupied.error().message, "notes.txt")) << occupied.error().text();
  const auto file = Store::open(join(dir.path(), "notes.txt"), Store::Mode::kCreate, &h);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().kind, ErrorKind::kStore);
}

TEST(Store, RefusesANewerVersionAndLeavesItAlone) {
  TempDir dir;
  create(dir.path());
  patch_sql(dir.path(), "PRAGMA user_version = 99");
  for (const auto mode : {Store::Mode::kRead, Store::Mode::kWrite}) {
    const auto store = Store::open(dir.path(), mode);
    ASSERT_FALSE(store);
    EXPECT_EQ(store.error().kind, ErrorKind::kStore);
    EXPECT_TRUE(contains(store.error().message, "newer KernelPro")) << store.error().text();
    EXPECT_TRUE(contains(store.error().next, "upgrade"));
  }
  patch_sql(dir.path(), "PRAGMA application_id = 7");
  const auto foreign = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_FALSE(foreign);
  EXPECT_TRUE(contains(foreign.error().message, "not a KernelPro run store"));
}

TEST(Store, BringsAnEarlierVersionUp) {
  TempDir dir;
  create(dir.path());
  patch_sql(dir.path(),
            "DROP TABLE tool_steps; DROP TABLE writings; DROP TABLE calls; DROP TABLE outcomes;"
            "DROP TABLE held_out; ALTER TABLE candidates DROP COLUMN repairs;"
            "PRAGMA user_version = 2");
  {
    const auto store = Store::open(dir.path(), Store::Mode::kRead);
    ASSERT_TRUE(store) << store.error().text();
    const auto steps = (*store)->tool_steps();
    ASSERT_TRUE(steps) << steps.error().text();
    EXPECT_TRUE(steps->empty());
    const auto writing = (*store)->writing(1);
    ASSERT_TRUE(writing) << writing.error().text();
    EXPECT_FALSE(writing->has_value());
    const auto calls = (*store)->calls();
    ASSERT_TRUE(calls) << calls.error().text();
    EXPECT_TRUE(calls->empty());
  }
  auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  const auto ids = (*store)->add({candidate(1)});
  ASSERT_TRUE(ids);
  const ToolStep step{ids->at(0), "scalar-loads", "vectorize", 1.5, 2.5, 1.25, "hash"};
  ASSERT_TRUE((*store)->finish(ids->at(0), correct(10), Evidence(), Diagnosis(), 1, &step));
  const auto steps = (*store)->tool_steps();
  ASSERT_TRUE(steps) << steps.error().text();
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_EQ(steps->at(0).tool, "scalar-loads");
  EXPECT_EQ(steps->at(0).measured, 1.25);
  EXPECT_EQ(steps->at(0).record, "hash");
  EXPECT_TRUE((*store)->add_call(ModelCall()));
}

TEST(Store, TakesRepairsOutOfTheIdeasOfAnEarlierVersion) {
  TempDir dir;
  create(dir.path());
  {
    const auto store = Store::open(dir.path(), Store::Mode::kWrite);
    ASSERT_TRUE(store) << store.error().text();
    ASSERT_TRUE((*store)->add({candidate(1), candidate(2), candidate(3)}));
  }
  patch_sql(dir.path(),
            "ALTER TABLE candidates DROP COLUMN repairs;"
            "UPDATE candidates SET idea = 'repair of 12: wider: loads' WHERE id = 1;"
            "UPDATE candidates SET idea = 'repair of 2nd loads: no' WHERE id = 2;"
            "UPDATE candidates SET idea = 'repair of 7' WHERE id = 3;"
            "PRAGMA user_version = 6");
  const auto origins = [&](Store::Mode mode) {
    const auto store = Store::open(dir.path(), mode);
    EXPECT_TRUE(store) << store.error().text();
    const auto stored = (*store)->candidates();
    std::vector<Origin> all;
    for (const StoredCandidate& each : *stored) all.push_back(each.known.candidate.origin);
    return all;
  };
  const std::vector<Origin> before = origins(Store::Mode::kRead);
  ASSERT_EQ(before.size(), 3u);
  EXPECT_EQ(idea_text(before[0]), "repair of 12: wider: loads");
  const std::vector<Origin> after = origins(Store::Mode::kWrite);
  ASSERT_EQ(after.size(), 3u);
  EXPECT_EQ(after[0].repairs, 12);
  EXPECT_EQ(after[0].idea, "wider: loads");
  EXPECT_EQ(idea_text(after[0]), idea_text(before[0]));
  EXPECT_EQ(after[1].repairs, 0);
  EXPECT_EQ(after[1].idea, "repair of 2nd loads: no");
  EXPECT_EQ(after[2].idea, "repair of 7");
}

// A paid call is visible to other readers at once, with the proposals before it.
TEST(Store, KeepsQuestionsToModels) {
  TempDir dir;
  create(dir.path());
  const auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  ASSERT_TRUE((*store)->add({candidate(1)}));
  const ModelCall call{"0003.1",   "fixer",  "openai:m",       7,
                       2,          "wider",  "reply",          "mend it",
                       "### read", "int x;", "{\"output\":3}", "hash"};
  ASSERT_TRUE((*store)->add_call(call));
  ASSERT_TRUE((*store)->add_call(ModelCall()));
  const auto reader = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_TRUE(reader) << reader.error().text();
  EXPECT_EQ((*reader)->candidates()->size(), 1u);
  const auto calls = (*reader)->calls();
  ASSERT_TRUE(calls) << calls.error().text();
  ASSERT_EQ(calls->size(), 2u);
  EXPECT_EQ(calls->at(0).request, "0003.1");
  EXPECT_EQ(calls->at(0).role, "fixer");
  EXPECT_EQ(calls->at(0).parent, 7);
  EXPECT_EQ(calls->at(0).repairs, 2);
  EXPECT_EQ(calls->at(0).prompt, "mend it");
  EXPECT_EQ(calls->at(0).tools, "### read");
  EXPECT_EQ(calls->at(0).reply, "int x;");
  EXPECT_EQ(calls->at(0).usage, "{\"output\":3}");
  EXPECT_EQ(calls->at(0).gave, "hash");
}

TEST(Store, KeepsWhatWritersWereAskedAndAnswered) {
  TempDir dir;
  create(dir.path());
  auto store = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(store) << store.error().text();
  Proposal written{candidate(1), Writing{"0001", "exchange", "make it fast", "int x;", ""}};
  Proposal tuned{candidate(2), std::nullopt};
  const auto ids = (*store)->add_proposals({written, tuned, written});
  ASSERT_TRUE(ids) << ids.error().text();
  ASSERT_EQ(ids->size(), 3u);
  EXPECT_EQ(ids->at(2), 0) << "the same once more";
  const auto writing = (*store)->writing(ids->at(0));
  ASSERT_TRUE(writing && *writing);
  EXPECT_EQ((*writing)->request, "0001");
  EXPECT_EQ((*writing)->prompt, "make it fast");
  EXPECT_EQ((*writing)->reply, "int x;");
  const auto none = (*store)->writing(ids->at(1));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
}

TEST(Store, IsCopiedBesideItsWriter) {
  TempDir dir;
  TempDir other;
  create(dir.path());
  auto writer = Store::open(dir.path(), Store::Mode::kWrite);
  ASSERT_TRUE(writer);
  const auto ids = (*writer)->add({candidate(1), candidate(2)});
  ASSERT_TRUE(ids);
  ASSERT_TRUE((*writer)->finish(ids->at(0), correct(10), Evidence(), Diagnosis(), 1));
  const std::string to = join(other.path(), "copy");
  {
    const auto reader = Store::open(dir.path(), Store::Mode::kRead);
    ASSERT_TRUE(reader);
    const auto copied = (*reader)->copy_to(to);
    ASSERT_TRUE(copied) << copied.error().text();
    EXPECT_FALSE((*reader)->copy_to(to)) << "there is one already";
  }
  const auto copy = Store::open(to, Store::Mode::kWrite);
  ASSERT_TRUE(copy) << copy.error().text();
  const auto all = (*copy)->candidates();
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_TRUE(all->at(0).evaluated);
  EXPECT_FALSE(all->at(1).evaluated);
}

TEST(Store, SaysThatItIsDamaged) {
  TempDir dir;
  {
    auto store = create(dir.path());
    for (int i = 0; i < 40; ++i) {
      const auto ids = store->add({candidate(i)});
      ASSERT_TRUE(store->finish(ids->front(), correct(i + 1), {}, {}, i));
    }
  }
  const std::string whole = *read_file(store_path(dir.path()));
  std::minstd_rand random(7);
  int refused = 0;
  for (int round = 0; round < 30; ++round) {
    std::string bytes = whole;
    const std::size_t from = random() % bytes.size();
    for (std::size_t i = from; i < std::min(bytes.size(), from + 3000); ++i) {
      bytes[i] = static_cast<char>(random());
    }
    ASSERT_TRUE(write_file(store_path(dir.path()), bytes));
    auto store = Store::open(dir.path(), Store::Mode::kWrite);
    bool failed = !store;
    if (store) {
      const auto all = (*store)->candidates();
      failed = !all || !(*store)->header();
      if (!all) {
        EXPECT_EQ(all.error().kind, ErrorKind::kStore) << all.error().text();
      }
    } else {
      EXPECT_EQ(store.error().kind, ErrorKind::kStore) << store.error().text();
    }
    refused += failed;
  }
  EXPECT_GT(refused, 15);
  ASSERT_TRUE(write_file(store_path(dir.path()),
                         "this is no database, but it is long enough " + std::string(2000, 'x')));
  const auto garbage = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_FALSE(garbage);
  EXPECT_TRUE(contains(garbage.error().message, "damaged")) << garbage.error().text();
  ASSERT_TRUE(write_file(store_path(dir.path()), whole.substr(0, whole.size() / 2)));
  EXPECT_FALSE(Store::open(dir.path(), Store::Mode::kWrite)) << "cut off";
}

// A kernel in a language of a later version is not taken for one in another language.
TEST(Store, ALanguageThatIsUnknownCannotBeRead) {
  TempDir dir;
  {
    auto store = create(dir.path());
    const auto ids = store->add({candidate(1)});
    ASSERT_TRUE(store->finish(ids->front(), correct(1), {}, {}, 1));
  }
  Database db;
  ASSERT_EQ(db.open(store_path(dir.path()), Database::Mode::kWrite), SQLITE_OK);
  ASSERT_EQ(db.execute("UPDATE candidates SET language = 'latin'"), SQLITE_OK);
  db.close();
  const auto store = Store::open(dir.path(), Store::Mode::kRead);
  ASSERT_TRUE(store) << store.error().text();
  const auto all = (*store)->candidates(false);
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().kind, ErrorKind::kStore);
  EXPECT_FALSE((*store)->briefs([](StoredBrief) {}));
}

// A copy of a damaged store would look like a backup. SQLite alone does not notice a changed
// source.
TEST(Store, ADamagedStoreIsNotPacked) {
  TempDir dir;
  TempDir other;
  {
    auto store = create(dir.path());
    for (int i = 0; i < 40; ++i) {
      const auto ids = store->add({candidate(i)});
      ASSERT_TRUE(store->finish(ids->front(), correct(i + 1), {}, {}, i));
    }
  }
  const std::string to = join(other.path(), "copy");
  const auto whole = pack_run(dir.path(), to);
  ASSERT_TRUE(whole) << whole.error().text();
  const std::string path = store_path(dir.path());
  const std::string good = *read_file(path);
  Database db;
  ASSERT_EQ(db.open(path, Database::Mode::kWrite), SQLITE_OK);
  ASSERT_EQ(db.execute("UPDATE sources SET text = text || ' '"), SQLITE_OK);
  db.close();
  std::string changed = *read_file(path);
  // Rows that point to nothing, and pages that are noise from the second half on.
  std::string noise = good;
  for (std::size_t i = noise.size() / 2; i < noise.size(); ++i) noise[i] = static_cast<char>(i * 7);
  ASSERT_TRUE(write_file(path, good));
  ASSERT_EQ(db.open(path, Database::Mode::kWrite), SQLITE_OK);
  ASSERT_EQ(db.execute("PRAGMA foreign_keys = OFF; DELETE FROM candidates WHERE id = 7"),
            SQLITE_OK);
  db.close();
  std::string orphaned = *read_file(path);
  int n = 0;
  for (std::string* bytes : {&changed, &noise, &orphaned}) {
    ASSERT_TRUE(write_file(path, *bytes));
    const std::string target = join(other.path(), std::to_string(++n));
    const auto packed = pack_run(dir.path(), target);
    ASSERT_FALSE(packed) << n;
    EXPECT_EQ(packed.error().kind, ErrorKind::kStore);
    EXPECT_TRUE(contains(packed.error().message, "damaged")) << packed.error().text();
    EXPECT_FALSE(exists(store_path(target)));
  }
}

// Runs `body` in a child with its own mount namespace; returns its exit status, or -1 if this
// machine does not allow that.
int in_namespace(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      ::_exit(99);
    }
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
  return code == 99 ? -1 : code;
}

TEST(Store, AFullDiskLeavesTheStoreWhole) {
  TempDir dir;
  const int code = in_namespace([&] {
    if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=256k") != 0) return 99;
    auto store = create(dir.path());
    if (!store) return 1;
    std::size_t stored = 0;
    for (int i = 0; i < 2000; ++i) {
      Candidate big = candidate(i);
      big.source += std::string(3000, 'x') + std::to_string(i);
      const auto ids = store->add({big});
      const auto finished = ids ? store->finish(ids->front(), correct(9), {}, {}, 0)
                                : tl::unexpected<Error>(ids.error());
      if (finished) {
        ++stored;
        continue;
      }
      const Error& error = finished.error();
      if (error.kind != ErrorKind::kStore) return 2;
      if (!contains(error.message, "full") && !contains(error.message, "disk")) return 3;
      const auto kept = store->candidates();
      if (!kept || kept->size() != stored) return 4;
      store.reset();
      return integrity(dir.path()) == "ok" ? 0 : 5;
    }
    return 6;
  });
  if (code == -1) GTEST_SKIP() << "mounting a small tmpfs is not allowed here";
  EXPECT_EQ(code, 0);
}

TEST(Store, AReadOnlyFolderCanBeReadOnly) {
  TempDir dir;
  {
    auto store = create(dir.path());
    ASSERT_TRUE(store->add({candidate(1)}));
  }
  const int code = in_namespace([&] {
    const char* path = dir.path().c_str();
    if (::mount(path, path, nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(path, path, nullptr, MS_BIND | MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
      return 99;
    }
    const auto reader = Store::open(dir.path(), Store::Mode::kRead);
    if (!reader || (*reader)->candidates()->size() != 1) return 1;
    const auto writer = Store::open(dir.path(), Store::Mode::kWrite);
    if (writer || writer.error().kind != ErrorKind::kStore) return 2;
    const RunHeader h = header();
    const auto fresh = Store::open(join(dir.path(), "new"), Store::Mode::kCreate, &h);
    return !fresh && fresh.error().kind == ErrorKind::kStore ? 0 : 3;
  });
  if (code == -1) GTEST_SKIP() << "bind mounts are not allowed here";
  EXPECT_EQ(code, 0);
}

// Adds and finishes forever; writes one byte to `out` after each committed evaluation.
[[noreturn]] void write_until_killed(const std::string& directory, int out) {
  auto store = Store::open(directory, Store::Mode::kWrite);
  if (!store) ::_exit(1);
  const auto before = (*store)->candidates();
  if (!before) ::_exit(2);
  int next = 0;
  for (const StoredCandidate& each : *before) {
    next = std::max(next, std::atoi(each.known.candidate.knobs.at("V").c_str()));
    if (each.evaluated) continue;
    if (!(*store)->finish(each.known.id, correct(1), {}, {}, 1)) ::_exit(3);
    if (::write(out, "x", 1) != 1) ::_exit(4);
  }
  for (;;) {
    Candidate c = candidate(++next);
    c.source += std::string(20000, 'y') + std::to_string(next);
    const auto ids = (*store)->add({c});
    if (!ids || ids->front() == 0) ::_exit(5);
    if (!(*store)->finish(ids->front(), correct(next), {}, {}, next)) ::_exit(6);
    if (::write(out, "x", 1) != 1) ::_exit(7);
  }
}

TEST(Store, SurvivesSigkillAtAnyMoment) {
  TempDir dir;
  create(dir.path());
  std::minstd_rand random(3);
  std::size_t acknowledged = 0;
  for (int round = 0; round < 20; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(dir.path(), ends[1]);
    ::close(ends[1]);
    // Mostly during its writes, however slow the machine is; sometimes before the first.
    pollfd first{ends[0], POLLIN, 0};
    if (round % 4 != 0) {
      ASSERT_EQ(::poll(&first, 1, 120'000), 1);
    }
    ::usleep(static_cast<useconds_t>(random() % 30000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer gave up: " << WEXITSTATUS(status);
    char buffer[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;) {
      acknowledged += static_cast<std::size_t>(n);
    }
    ::close(ends[0]);
    // A reader first: it must cope with the journal of the killed writer.
    const auto reader = Store::open(dir.path(), Store::Mode::kRead);
    ASSERT_TRUE(reader) << reader.error().text();
    const auto all = (*reader)->candidates();
    ASSERT_TRUE(all) << all.error().text();
    std::size_t evaluated = 0;
    for (const StoredCandidate& each : *all) evaluated += each.evaluated;
    EXPECT_GE(evaluated, acknowledged);
    EXPECT_LE(evaluated, acknowledged + static_cast<std::size_t>(round) + 1);
    ASSERT_EQ(integrity(dir.path()), "ok");
  }
  EXPECT_GE(acknowledged, 15u);
}

TEST(Store, AStartThatWasKilledIsNoRun) {
  TempDir dir;
  ASSERT_TRUE(write_file(join(dir.path(), "store.db.new"), "half"));
  ASSERT_TRUE(write_file(join(dir.path(), "lock"), "1\n"));
  EXPECT_FALSE(Store::open(dir.path(), Store::Mode::kWrite));
  EXPECT_NE(create(dir.path()), nullptr);
}

}  // namespace
}  // namespace kernelpro
