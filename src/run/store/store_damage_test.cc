// SPDX-License-Identifier: Apache-2.0
// The store against damaged files, full disks, read-only folders and SIGKILL.
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
#include "run/store/pack.h"
#include "run/store/store.h"
#include "run/store/testing.h"

namespace kernelpro {
namespace {

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

TEST(Store, SaysThatItIsDamaged) {
  TempDir dir;
  {
    auto store = storing::create(dir.path());
    for (int i = 0; i < 40; ++i) {
      const auto ids = store->add({storing::candidate(i)});
      ASSERT_TRUE(store->finish(ids->front(), storing::correct(i + 1), {}, {}, i));
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
    auto store = storing::create(dir.path());
    const auto ids = store->add({storing::candidate(1)});
    ASSERT_TRUE(store->finish(ids->front(), storing::correct(1), {}, {}, 1));
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
    auto store = storing::create(dir.path());
    for (int i = 0; i < 40; ++i) {
      const auto ids = store->add({storing::candidate(i)});
      ASSERT_TRUE(store->finish(ids->front(), storing::correct(i + 1), {}, {}, i));
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
    auto store = storing::create(dir.path());
    if (!store) return 1;
    std::size_t stored = 0;
    for (int i = 0; i < 2000; ++i) {
      Candidate big = storing::candidate(i);
      big.source += std::string(3000, 'x') + std::to_string(i);
      const auto ids = store->add({big});
      const auto finished = ids ? store->finish(ids->front(), storing::correct(9), {}, {}, 0)
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
    auto store = storing::create(dir.path());
    ASSERT_TRUE(store->add({storing::candidate(1)}));
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
    const RunHeader h = storing::header();
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
    if (!(*store)->finish(each.known.id, storing::correct(1), {}, {}, 1)) ::_exit(3);
    if (::write(out, "x", 1) != 1) ::_exit(4);
  }
  for (;;) {
    Candidate c = storing::candidate(++next);
    c.source += std::string(20000, 'y') + std::to_string(next);
    const auto ids = (*store)->add({c});
    if (!ids || ids->front() == 0) ::_exit(5);
    if (!(*store)->finish(ids->front(), storing::correct(next), {}, {}, next)) ::_exit(6);
    if (::write(out, "x", 1) != 1) ::_exit(7);
  }
}

TEST(Store, SurvivesSigkillAtAnyMoment) {
  TempDir dir;
  storing::create(dir.path());
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
  EXPECT_NE(storing::create(dir.path()), nullptr);
}

}  // namespace
}  // namespace kernelpro
