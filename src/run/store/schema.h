// SPDX-License-Identifier: Apache-2.0
// The store's tables, version 9 (Store::kSchemaVersion). docs/run-store.md explains each column. A
// change here needs a new version and a step that upgrades old stores to it.
#pragma once

namespace kernelpro {

inline constexpr int kApplicationId = 0x4b50524f;  // "KPRO", in the file's header

inline constexpr const char* kSchema = R"sql(
CREATE TABLE meta(
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE sources(
  hash TEXT PRIMARY KEY,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE candidates(
  id           INTEGER PRIMARY KEY,
  content_hash TEXT NOT NULL UNIQUE,
  language     TEXT NOT NULL,
  source       TEXT NOT NULL REFERENCES sources(hash),
  knobs        TEXT NOT NULL,
  proposer     TEXT NOT NULL,
  parent       INTEGER REFERENCES candidates(id),
  idea         TEXT NOT NULL,
  answers      TEXT NOT NULL,
  repairs      INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE evaluations(
  candidate INTEGER PRIMARY KEY REFERENCES candidates(id),
  position  INTEGER NOT NULL UNIQUE,
  outcome   TEXT NOT NULL,
  score_us  REAL,
  at_s      REAL NOT NULL,
  json      TEXT NOT NULL
) STRICT;

CREATE TABLE evidence(
  candidate INTEGER PRIMARY KEY REFERENCES evaluations(candidate),
  json      TEXT NOT NULL
) STRICT;

CREATE TABLE diagnosis(
  candidate INTEGER PRIMARY KEY REFERENCES evaluations(candidate),
  json      TEXT NOT NULL
) STRICT;

CREATE TABLE confirmation(
  only       INTEGER PRIMARY KEY CHECK (only = 1),
  best       INTEGER NOT NULL REFERENCES evaluations(candidate),
  stopped_by TEXT NOT NULL,
  own_ms     REAL NOT NULL,
  json       TEXT NOT NULL
) STRICT;
)sql";

// Additions of later versions, for new stores and for upgrades: results of findings (3), requests
// to writers and their answers (4), each question to a model (5), what a resume needs of an
// evaluation (6; StoreFile::add_outcomes fills it in an older store), results of held-out cases
// (6), requests of the exchange (8), and lines that a proposer has exhausted (8). `labels` of
// `outcomes` came with 9: the table is filled anew.
inline constexpr const char* kLaterTables = R"sql(
CREATE TABLE IF NOT EXISTS tool_steps(
  candidate INTEGER PRIMARY KEY REFERENCES evaluations(candidate),
  tool      TEXT NOT NULL,
  tag       TEXT NOT NULL,
  likely    REAL NOT NULL,
  upper     REAL NOT NULL,
  measured  REAL NOT NULL,
  record    TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS writings(
  candidate INTEGER PRIMARY KEY REFERENCES candidates(id),
  request   TEXT NOT NULL,
  writer    TEXT NOT NULL,
  prompt    TEXT NOT NULL,
  reply     TEXT NOT NULL,
  usage     TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS calls(
  id      INTEGER PRIMARY KEY,
  request TEXT NOT NULL,
  role    TEXT NOT NULL,
  model   TEXT NOT NULL,
  parent  INTEGER NOT NULL,
  repairs INTEGER NOT NULL,
  idea    TEXT NOT NULL,
  outcome TEXT NOT NULL,
  prompt  TEXT NOT NULL,
  tools   TEXT NOT NULL,
  reply   TEXT NOT NULL,
  usage   TEXT NOT NULL,
  gave    TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS outcomes(
  candidate    INTEGER PRIMARY KEY REFERENCES evaluations(candidate),
  position     INTEGER NOT NULL UNIQUE,
  at_s         REAL NOT NULL,
  outcome      TEXT NOT NULL,
  score_us     REAL NOT NULL,
  incumbent    TEXT,
  ratio        REAL,
  low          REAL,
  high         REAL,
  energy_mj    REAL,
  energy_ratio REAL,
  energy_low   REAL,
  energy_high  REAL,
  code         TEXT NOT NULL,
  bound        INTEGER NOT NULL,
  floor_us     REAL NOT NULL,
  fraction     REAL NOT NULL,
  stop         INTEGER NOT NULL,
  likely       REAL NOT NULL,
  upper        REAL NOT NULL,
  labels       TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS requests(
  name    TEXT PRIMARY KEY,
  parent  INTEGER NOT NULL REFERENCES candidates(id),
  answers TEXT NOT NULL,
  prompt  TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS closed(
  id        INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL REFERENCES evaluations(candidate),
  after     INTEGER NOT NULL,
  proposer  TEXT NOT NULL
) STRICT;

CREATE TABLE IF NOT EXISTS held_out(
  position INTEGER PRIMARY KEY,
  name     TEXT NOT NULL,
  problem  TEXT NOT NULL,
  json     TEXT NOT NULL
) STRICT;
)sql";

// Before version 7 the id of a repaired candidate was part of the idea: "repair of 7: wider loads".
inline constexpr const char* kAddRepairs = R"sql(
ALTER TABLE candidates ADD COLUMN repairs INTEGER NOT NULL DEFAULT 0;
UPDATE candidates SET repairs = CAST(substr(idea, 11) AS INTEGER)
  WHERE idea GLOB 'repair of ' || CAST(substr(idea, 11) AS INTEGER) || ': *';
UPDATE candidates SET idea = substr(idea, length('repair of ' || repairs || ': ') + 1)
  WHERE repairs > 0;
)sql";

}  // namespace kernelpro
