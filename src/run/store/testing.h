// SPDX-License-Identifier: Apache-2.0
// For tests: runs to store, and candidates with results.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <memory>
#include <string>

#include "measure/station/testing/fake_target.h"
#include "run/store/store.h"

namespace kernelpro::storing {

inline RunHeader header() {
  RunHeader h;
  h.task = testing::fake_task();
  h.machine.name = "a machine";
  h.machine.target = target_name(TargetKind::kCpu);
  h.settings_json = "{}";
  return h;
}

inline Candidate candidate(int i, std::int64_t parent = 0) {
  Candidate c;
  c.source = "// @knob V 1 2\nint x;\n";
  c.knobs = {{"V", std::to_string(i)}};
  c.origin = {"tuner", parent, "V 1 -> 2, because.", {"scalar-code", "vectorize"}};
  return c;
}

inline Evaluation correct(double us) {
  Correct c;
  c.timings.push_back({"large", us, us - 1, us + 1, 20, "calls in turn"});
  c.versus = Correct::Versus{"abc", 1.5, 1.4, 1.6};
  Evaluation e;
  e.outcome = c;
  e.compile_ms = 12;
  e.trust = "in-process";
  return e;
}

inline std::unique_ptr<Store> create(const std::string& directory) {
  const RunHeader h = header();
  auto store = Store::open(directory, Store::Mode::kCreate, &h);
  EXPECT_TRUE(store) << store.error().text();
  return store ? std::move(*store) : nullptr;
}

// Changes a store behind its back, as damage or another version would.
inline void patch(const std::string& directory, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(store_path(directory).c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  sqlite3_close(db);
}

}  // namespace kernelpro::storing
