#pragma once
// The schema of the tuning database as SQL; explained in docs/database.md.

#include <cstdint>
#include <string_view>

namespace sylvite {

/// PRAGMA user_version. Raise it whenever the statements below change; a file of another version is not used.
inline constexpr int schema_version = 2;
/// PRAGMA application_id: "SYLV".
inline constexpr std::int64_t schema_application_id = 0x53594c56;

inline constexpr std::string_view schema_sql = R"sql(
CREATE TABLE meta(
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE kernels(
  id TEXT PRIMARY KEY,
  class TEXT NOT NULL,
  text TEXT NOT NULL
) STRICT;

CREATE TABLE keys(
  id INTEGER PRIMARY KEY,
  target TEXT NOT NULL,
  machine TEXT NOT NULL,
  threads INTEGER NOT NULL,
  versions TEXT NOT NULL,
  precision TEXT NOT NULL,
  UNIQUE(target, machine, threads, versions, precision)
) STRICT;

CREATE TABLE trials(
  id INTEGER PRIMARY KEY,
  kernel TEXT NOT NULL REFERENCES kernels(id),
  key INTEGER NOT NULL REFERENCES keys(id),
  candidate TEXT NOT NULL,
  verdict TEXT NOT NULL CHECK(verdict IN ('ok', 'compile_error', 'compile_timeout', 'run_crash', 'run_timeout',
                                          'wrong_result', 'noisy')),
  median_us REAL,
  samples TEXT NOT NULL,
  error REAL,
  message TEXT NOT NULL,
  compile_seconds REAL NOT NULL,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE(kernel, key, candidate)
) STRICT;

CREATE TABLE winners(
  id INTEGER PRIMARY KEY,
  kernel TEXT NOT NULL REFERENCES kernels(id),
  key INTEGER NOT NULL REFERENCES keys(id),
  candidate TEXT NOT NULL,
  median_us REAL,
  error REAL,
  origin TEXT NOT NULL,
  budget_seconds REAL NOT NULL,
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  UNIQUE(kernel, key)
) STRICT;

CREATE TABLE races(
  id INTEGER PRIMARY KEY,
  kernel TEXT NOT NULL REFERENCES kernels(id),
  key INTEGER NOT NULL REFERENCES keys(id),
  incumbent TEXT NOT NULL,
  challenger TEXT NOT NULL,
  incumbent_samples TEXT NOT NULL,
  challenger_samples TEXT NOT NULL,
  result TEXT NOT NULL CHECK(result IN ('won', 'tie', 'lost')),
  scope TEXT NOT NULL CHECK(scope IN ('kernel', 'model')),
  created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
) STRICT;

CREATE TABLE sweep_items(
  sweep TEXT NOT NULL,
  item TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('running', 'done', 'failed')),
  message TEXT NOT NULL,
  seconds REAL NOT NULL,
  updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
  PRIMARY KEY(sweep, item)
) STRICT;

CREATE VIEW v_best AS
SELECT k.id AS kernel, k.class AS class, y.target AS target, y.machine AS machine, y.threads AS threads,
       y.versions AS versions, y.precision AS precision, w.origin AS origin, w.median_us AS median_us,
       w.error AS error, w.candidate AS candidate, w.created_at AS created_at,
       (SELECT count(*) FROM trials t WHERE t.kernel = w.kernel AND t.key = w.key) AS trials,
       (SELECT max(t.median_us) FROM trials t WHERE t.kernel = w.kernel AND t.key = w.key AND t.verdict = 'ok')
         AS slowest_us
FROM winners w JOIN kernels k ON k.id = w.kernel JOIN keys y ON y.id = w.key;

CREATE VIEW v_history AS
SELECT t.id AS trial, t.created_at AS created_at, t.kernel AS kernel, k.class AS class, y.machine AS machine,
       y.threads AS threads, y.precision AS precision, t.verdict AS verdict, t.median_us AS median_us,
       min(t.median_us) FILTER (WHERE t.verdict = 'ok') OVER (PARTITION BY t.kernel, t.key ORDER BY t.id)
         AS best_so_far_us,
       t.error AS error, t.compile_seconds AS compile_seconds, t.candidate AS candidate, t.message AS message
FROM trials t JOIN kernels k ON k.id = t.kernel JOIN keys y ON y.id = t.key;
)sql";

/// Whether a winner `x` is a plain reference schedule only because the machine failed at other candidates, or because
/// nothing else was known when it was chosen; {0} is the database that holds its trials.
inline constexpr std::string_view spoilt_reference_sql = R"sql(
(x.origin = 'reference' AND EXISTS (
   SELECT 1 FROM {0}.trials t WHERE t.kernel = x.kernel AND t.key = x.key AND t.candidate <> x.candidate
     AND (t.verdict = 'ok' OR failed_by_machine(t.verdict, t.message))))
)sql";

}  // namespace sylvite
