// SPDX-License-Identifier: Apache-2.0
// The part of Store about writers: what they were asked, what they answered, what they exhausted.
#include "run/store/store.h"
#include "run/store/store_file.h"

namespace kernelpro {

Result<void> Store::close_line(const ClosedLine& closed) {
  const std::string doing = "write that a line is exhausted";
  int code = impl_->begin();
  if (code != SQLITE_OK) return impl_->failed(code, doing);
  Statement row =
      impl_->db.prepare("INSERT INTO closed(candidate, after, proposer) VALUES(?, ?, ?)");
  code = row.bind(0, closed.candidate).bind(1, closed.after).bind(2, closed.proposer).step();
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return {};
}

Result<void> Store::add_request(const ExchangeRequest& request) {
  const std::string doing = "write a request of the exchange";
  int code = impl_->begin();
  if (code != SQLITE_OK) return impl_->failed(code, doing);
  const std::string answers = request.answers.text();  // must outlive the binding
  {
    Statement row = impl_->db.prepare("INSERT INTO requests VALUES(?, ?, ?, ?)");
    row.bind(0, request.name).bind(1, request.parent).bind(2, answers);
    code = row.bind(3, request.prompt).step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

Result<void> Store::add_call(const ModelCall& c) {
  const std::string doing = "write a question to a model";
  if (const int code = impl_->begin(); code != SQLITE_OK) return impl_->failed(code, doing);
  int code = SQLITE_OK;
  {
    Statement row = impl_->db.prepare(
        "INSERT INTO calls(request, role, model, parent, repairs, idea, outcome, prompt, tools,"
        " reply, usage, gave) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    row.bind(0, c.request)
        .bind(1, model_role_name(c.role))
        .bind(2, c.model)
        .bind(3, c.parent)
        .bind(4, c.repairs)
        .bind(5, c.idea)
        .bind(6, call_outcome_name(c.outcome))
        .bind(7, c.prompt)
        .bind(8, c.tools)
        .bind(9, c.reply);
    code = row.bind(10, c.usage).bind(11, c.gave).step();
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return impl_->commit(doing);
}

Result<std::optional<Writing>> Store::writing(std::int64_t candidate) const {
  const std::string doing = "read what a writer answered";
  KP_ASSIGN(const auto table,
            impl_->has_table("SELECT count(*) FROM sqlite_master WHERE name = 'writings'", doing));
  if (!table) return std::optional<Writing>();
  Statement row = impl_->db.prepare(
      "SELECT request, writer, prompt, reply, usage FROM writings WHERE candidate = ?");
  const int code = row.bind(0, candidate).step();
  if (code == SQLITE_DONE) return std::optional<Writing>();
  if (code != SQLITE_ROW) return impl_->failed(code, doing);
  return std::optional<Writing>(
      Writing{row.text(0), row.text(1), row.text(2), row.text(3), row.text(4)});
}

Result<std::vector<ExchangeRequest>> Store::requests() const {
  const std::string doing = "read the requests of the exchange";
  std::vector<ExchangeRequest> all;
  KP_ASSIGN(const auto table,
            impl_->has_table("SELECT count(*) FROM sqlite_master WHERE name = 'requests'", doing));
  if (!table) return all;
  Statement rows =
      impl_->db.prepare("SELECT name, parent, answers, prompt FROM requests ORDER BY name");
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    all.push_back({rows.text(0), rows.integer(1), FindingRef::parse(rows.text(2)), rows.text(3)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return all;
}

// Leaves out rows that no run writes: of a candidate that was evaluated only later.
Result<std::vector<ClosedLine>> Store::closed_lines() const {
  const std::string doing = "read which lines are exhausted";
  std::vector<ClosedLine> all;
  KP_ASSIGN(const auto table,
            impl_->has_table("SELECT count(*) FROM sqlite_master WHERE name = 'closed'", doing));
  if (!table) return all;
  Statement rows = impl_->db.prepare(
      "SELECT c.candidate, c.after, c.proposer FROM closed c JOIN evaluations e"
      " ON e.candidate = c.candidate WHERE e.position <= c.after ORDER BY c.after, c.id");
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    all.push_back({rows.integer(0), rows.integer(1), rows.text(2)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return all;
}

Result<std::vector<ModelCall>> Store::calls() const {
  const std::string doing = "read the questions to models";
  std::vector<ModelCall> all;
  KP_ASSIGN(const auto table,
            impl_->has_table("SELECT count(*) FROM sqlite_master WHERE name = 'calls'", doing));
  if (!table) return all;
  Statement rows = impl_->db.prepare(
      "SELECT request, role, model, parent, repairs, idea, outcome, prompt, tools, reply, usage,"
      " gave FROM calls ORDER BY id");
  int code = rows.step();
  for (; code == SQLITE_ROW; code = rows.step()) {
    const auto role = model_role_from_name(rows.text(1));
    if (!role) return damaged_store(impl_->path, "a question to a model has no known role");
    all.push_back({rows.text(0), *role, rows.text(2), rows.integer(3), rows.integer(4),
                   rows.text(5), call_outcome_from_name(rows.text(6)), rows.text(7), rows.text(8),
                   rows.text(9), rows.text(10), rows.text(11)});
  }
  if (code != SQLITE_DONE) return impl_->failed(code, doing);
  return all;
}

}  // namespace kernelpro
