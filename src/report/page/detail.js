// SPDX-License-Identifier: Apache-2.0
// One candidate in full: its result, where its time goes, what was found, its source and what
// changed against its parent, and the prompt and reply that it came from.
"use strict";
(function () {
  function part(title, body, more) {
    if (!body || (Array.isArray(body) && !body.length)) return null;
    return KP.el("section", {"class": "part"}, KP.el("h3", null, title, more), body);
  }
  function folded(title, open, body, more) {
    return KP.el("details", {open: open}, KP.el("summary", null, title, more), body);
  }

  // Knobs as chips; those that differ from the parent's with both values.
  function knobs(mine, parents) {
    var names = Object.keys(mine);
    if (!names.length) return null;
    return KP.el("p", {"class": "knobs"}, names.map(function (name) {
      var before = parents ? parents[name] : mine[name];
      var moved = before !== undefined && before !== mine[name];
      return KP.el("code", {"class": moved ? "moved" : null}, name + " " + (moved ? before + " \u2192 " : "") + mine[name]);
    }));
  }

  function accounts(account) {
    if (!account) return null;
    var nodes = [KP.accountBar(account.parts, account.us)];
    account.kernels.forEach(function (kernel) {
      nodes.push(KP.el("h4", null, kernel.name, kernel.launched_by ? [", launched by ", KP.prose(kernel.launched_by)] : null));
      nodes.push(KP.accountBar(kernel.parts, account.us));
      if (kernel.roles) nodes.push(KP.el("p", {"class": "quiet"}, KP.prose(kernel.roles)));
      if (kernel.mix) nodes.push(KP.el("p", {"class": "quiet"}, KP.prose(kernel.mix)));
      if (kernel.places.length) nodes.push(places(kernel.places));
    });
    if (account.operators.length) {
      nodes.push(KP.table("plain", ["operator", "#time", "#share", "#its floor"], account.operators.map(function (each) {
        return [KP.prose(each[0]), KP.us(each[1]), KP.percent(each[1] / account.us), KP.us(each[2])];
      })));
    }
    return nodes;
  }
  function places(list) {
    return KP.el("ol", {"class": "places"}, list.map(function (place) {
      return KP.el("li", null, KP.prose(place.where), ": " + KP.percent(place.share) + " of the kernel's time", KP.prose(place.why),
                   place.gain >= 1.005 ? "; " + KP.ratio(place.gain) + " if that went" : null,
                   place.condition ? [". It goes if ", KP.prose(place.condition)] : null, ".");
    }));
  }

  KP.findings = function (detail) {
    if (!detail.findings) return null;
    if (!detail.findings.length) return detail.nothing ? KP.el("p", {"class": "quiet"}, KP.prose(detail.nothing)) : null;
    return detail.findings.map(function (finding) {
      var gain = finding.stop ? "nothing left to gain"
        : "likely " + KP.ratio(finding.likely) + ", at most " + KP.ratio(finding.upper);
      return KP.el("div", {"class": "finding " + finding.severity},
        KP.el("h4", null, finding.tool, KP.el("span", {"class": "quiet"}, gain + " \u00b7 by " + finding.level)),
        KP.el("p", null, finding.kernel ? [KP.el("code", null, finding.kernel), ": "] : null, KP.prose(finding.cause)),
        finding.sites ? KP.el("p", {"class": "quiet"}, "at ", KP.prose(finding.sites)) : null,
        KP.el("ul", null, finding.steps.map(function (step) {
          return KP.el("li", null, KP.el("span", {"class": "tag"}, step[0]), " ", KP.prose(step[1]),
                       step[2] ? KP.el("span", {"class": "quiet"}, " Not when ", KP.prose(step[2]), ".") : null);
        })));
    });
  };

  KP.changeTable = function (change) {
    var words = KP.us(change.before_us) + " became " + KP.us(change.after_us) + " (" + KP.ratio(change.before_us / change.after_us) + ")";
    if (change.answers) {
      words += "; it answers " + change.answers;
      if (change.promised > 1) words += ", which promised " + KP.ratio(change.promised);
    }
    return [KP.el("p", null, words + "."),
      !change.moved.length ? KP.el("p", {"class": "quiet"}, "No part of the time moved by 2 % or more.")
        : KP.table("plain", ["part of the time", "#before", "#after", "#moved"], change.moved.map(function (each) {
          var by = each[2] - each[1];
          return [each[0], KP.us(each[1]), KP.us(each[2]), (by < 0 ? "-" : "+") + KP.us(Math.abs(by))];
        }))];
  };

  function difference(detail, parent, id) {
    if (!parent) return null;
    if (parent.language !== detail.language) {
      return KP.el("p", {"class": "quiet"}, "#" + id + " is " + parent.language + ", this one " + detail.language + ": the whole source is new.");
    }
    if (parent.source === detail.source) {
      return KP.el("p", {"class": "quiet"}, "The source text is unchanged; only knobs moved.");
    }
    var lines = KP.diffLines(parent.source, detail.source), count = KP.diffCounts(lines);
    if (!count.same) return KP.el("p", {"class": "quiet"}, "No line in common with #" + id + ": the whole source is new.");
    return [KP.el("p", {"class": "quiet"}, KP.el("span", {"class": "plus"}, "+" + count.add), " ",
                  KP.el("span", {"class": "minus"}, "\u2212" + count.del), " lines"), KP.diffTable(lines)];
  }

  KP.usage = function (usage) {
    if (!usage) return "";
    var words = [], tokens = (usage.input || 0) + (usage.output || 0);
    if (tokens) words.push(KP.count(tokens, "token") + (usage.estimated ? " (estimated)" : ""));
    if (usage.cost_usd > 0) words.push("$" + usage.cost_usd.toFixed(4));
    if (usage.seconds > 0) words.push(KP.seconds(usage.seconds));
    return words.join(", ");
  };
  function longText(title, text, open) {
    return !text ? null : folded(title, open, KP.el("pre", {tabindex: "0"}, text), KP.copyButton(title, text));
  }
  KP.callView = function (call) {
    return [longText("prompt", call.prompt), call.tools ? longText("looked up", call.tools) : null, longText("reply", call.reply)];
  };
  function writing(detail) {
    var nodes = [];
    if (detail.writing) {
      nodes.push(KP.el("p", {"class": "quiet"}, "request " + detail.writing.request + " to " + detail.writing.writer,
                       KP.usage(detail.writing.usage) ? ": " + KP.usage(detail.writing.usage) : null));
      nodes.push(longText("prompt", detail.writing.prompt), longText("reply", detail.writing.reply));
    }
    (detail.calls || []).forEach(function (call) {
      nodes.push(KP.el("p", {"class": "quiet"}, call.role + " " + call.model + ", request " + call.request + ": " + call.outcome +
                       (KP.usage(call.usage) ? ", " + KP.usage(call.usage) : "")), KP.callView(call));
    });
    return nodes;
  }

  function timings(detail) {
    if (!detail.timings || !detail.timings.length) return null;
    return [KP.table("plain", ["case", "#median", "#95 % interval", "#samples", "method"], detail.timings.map(function (t) {
      return [t[0], KP.us(t[1]), KP.us(t[2]) + " \u2013 " + KP.us(t[3]), String(t[4]), t[5]];
    })), KP.el("p", {"class": "quiet"}, "Largest error: " + KP.percent(detail.max_error) + " of the tolerance.")];
  }

  function tools(detail) {
    if (!detail.tools || !detail.tools.length) return null;
    return folded("What each tool did", false, KP.table("plain", ["tool", "state", "why"], detail.tools));
  }

  // Where the time goes and what was found: all that a diagnosis without a run has.
  KP.diagnosisView = function (detail) {
    return [
      detail.summary ? KP.el("p", null, detail.summary) : null,
      part("Where the time goes", accounts(detail.account)),
      part("Findings", KP.findings(detail)),
      part("Not known", (detail.missing || []).length ? KP.table("plain", ["what", "why", "what to do"], detail.missing) : null),
      tools(detail),
      detail.numbers ? folded("Every number", false, KP.el("pre", {tabindex: "0"}, detail.numbers)) : null,
    ];
  };

  // link(id): an anchor to a candidate. parent: its detail, or null.
  KP.detailView = function (run, row, detail, parent, link) {
    var children = run.all().filter(function (each) { return each.parent === row.id; });
    var dead = (run.head.dead || {})[row.id];
    var diff = difference(detail, parent, row.parent);
    return [
      KP.el("p", {"class": "facts-line"},
        KP.el("span", {"class": "dot " + run.color(row)}), KP.el("b", null, row.outcome === "correct" ? KP.us(row.us) : row.outcome),
        row.ratio > 0 ? KP.el("span", null, KP.ratio(row.ratio), row.low ? KP.el("span", {"class": "quiet"}, " " + KP.ratio(row.low) + " \u2013 " + KP.ratio(row.high)) : null) : null,
        row.fraction > 0 ? KP.el("span", null, KP.share(row.fraction) + " of the ceiling") : null,
        detail.energy ? KP.el("span", null, KP.digits(detail.energy.mj) + " mJ") : null,
        KP.el("span", {"class": "quiet"}, row.language + ", by " + row.by)),
      row.idea ? KP.el("p", null, KP.prose(row.idea)) : null,
      KP.el("p", {"class": "kin quiet"},
        row.parent ? ["from ", link(row.parent)] : null,
        detail.repairs ? [" \u00b7 repairs ", link(detail.repairs)] : null,
        row.answers ? " \u00b7 answers " + row.answers : null,
        children.length ? [" \u00b7 ", KP.count(children.length, "child", "children") + ": ", children.slice(0, 12).map(function (each) { return [link(each.id), " "]; }),
                           children.length > 12 ? "\u2026" : null] : null),
      dead ? KP.el("p", {"class": "quiet"}, "Dead end: " + dead + ".") : null,
      knobs(detail.knobs || {}, parent ? parent.knobs : null),
      detail.message ? part("Why it failed", KP.el("pre", {tabindex: "0"}, detail.message), KP.copyButton("the message", detail.message)) : null,
      detail.summary && !detail.message ? KP.el("p", null, detail.summary) : null,
      part("Where the time goes", accounts(detail.account)),
      part("What the change did", detail.change ? KP.changeTable(detail.change) : null),
      part("Findings", KP.findings(detail)),
      diff ? part("Difference to #" + row.parent, diff) : null,
      part("Source", folded(KP.count(detail.source.split("\n").length, "line"), !diff && detail.source.length < 20000,
                            KP.el("pre", {"class": "source", tabindex: "0"}, detail.source)), KP.copyButton("the source", detail.source)),
      part("Prompt and reply", writing(detail).filter(Boolean)),
      part("Timings", timings(detail)),
      tools(detail),
    ];
  };
})();
