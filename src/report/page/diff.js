// SPDX-License-Identifier: Apache-2.0
// Differences between two texts by lines, with what did not change and long deletions folded.
"use strict";
(function () {
  var kContext = 3;       // unchanged lines around a change
  var kLongDeletion = 12; // more deleted lines in a row than this are folded
  var kShown = 3;         // of those, at the start and at the end
  var kMost = 3000;       // edits; texts that differ by more have nothing in common

  // Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986: the furthest
  // point on each diagonal for 0, 1, 2, ... edits, then the way back.
  function script(a, b) {
    var n = a.length, m = b.length, most = Math.min(n + m, kMost);
    var reach = {1: 0}, trace = [];
    for (var d = 0; d <= most; d += 1) {
      var copy = {};
      for (var k = -d; k <= d; k += 2) {
        var down = k === -d || (k !== d && reach[k - 1] < reach[k + 1]);
        var x = down ? reach[k + 1] : reach[k - 1] + 1;
        while (x < n && x - k < m && a[x] === b[x - k]) x += 1;
        reach[k] = copy[k] = x;
        if (x >= n && x - k >= m) { trace.push(copy); return back(trace, n, m); }
      }
      trace.push(copy);
    }
    return null;
  }

  function back(trace, n, m) {
    var edits = [], x = n, y = m;
    for (var d = trace.length - 1; d > 0; d -= 1) {
      var before = trace[d - 1], k = x - y;
      var down = k === -d || (k !== d && before[k - 1] < before[k + 1]);
      var from = down ? before[k + 1] : before[k - 1];
      var fromY = from - (down ? k + 1 : k - 1);
      while (x > from + (down ? 0 : 1) && y > fromY + (down ? 1 : 0)) { x -= 1; y -= 1; edits.push("same"); }
      edits.push(down ? "add" : "del");
      x = from; y = fromY;
    }
    while (x > 0) { x -= 1; edits.push("same"); }
    return edits.reverse();
  }

  // Lines {kind: "same" | "add" | "del", a, b, text} with line numbers from 1 (0: not there).
  KP.diffLines = function (before, after) {
    var a = before.split("\n"), b = after.split("\n");
    if (a.length && a[a.length - 1] === "") a.pop();
    if (b.length && b[b.length - 1] === "") b.pop();
    var edits = script(a, b);
    if (edits === null) {
      edits = a.map(function () { return "del"; }).concat(b.map(function () { return "add"; }));
    }
    var i = 0, j = 0;
    return edits.map(function (kind) {
      var line = {kind: kind, a: 0, b: 0, text: ""};
      if (kind !== "add") { line.text = a[i]; i += 1; line.a = i; }
      if (kind !== "del") { line.text = b[j]; j += 1; line.b = j; }
      return line;
    });
  };

  // Puts folded lines into {kind: "fold", what, lines}.
  KP.foldDiff = function (lines) {
    var keep = lines.map(function () { return false; });
    lines.forEach(function (line, i) {
      if (line.kind === "same") return;
      for (var k = Math.max(0, i - kContext); k <= Math.min(lines.length - 1, i + kContext); k += 1) {
        keep[k] = true;
      }
    });
    for (var i = 0; i < lines.length;) {
      var end = i;
      while (end < lines.length && lines[end].kind === "del") end += 1;
      if (end - i > kLongDeletion) {
        for (var k = i + kShown; k < end - kShown; k += 1) keep[k] = false;
      }
      i = Math.max(end, i + 1);
    }
    var folded = [];
    for (var at = 0; at < lines.length;) {
      if (keep[at]) { folded.push(lines[at]); at += 1; continue; }
      var stop = at;
      while (stop < lines.length && !keep[stop] && lines[stop].kind === lines[at].kind) stop += 1;
      var deleted = lines[at].kind === "del";
      folded.push({kind: "fold", lines: lines.slice(at, stop),
                   what: KP.count(stop - at, (deleted ? "deleted" : "unchanged") + " line")});
      at = stop;
    }
    return folded;
  };

  KP.diffCounts = function (lines) {
    var count = {add: 0, del: 0, same: 0};
    lines.forEach(function (line) { count[line.kind] += 1; });
    return count;
  };

  function row(line) {
    var sign = {add: "+ ", del: "- ", same: "  "}[line.kind];
    return KP.el("tr", {"class": line.kind}, KP.el("td", null, line.a || ""),
                 KP.el("td", null, line.b || ""), KP.el("td", null, sign + line.text));
  }

  function fold(line) {
    var tr = KP.el("tr", {"class": "skip"}, KP.el("td", null), KP.el("td", null), KP.el("td", null,
      KP.el("button", {type: "button", onclick: function () {
        line.lines.forEach(function (each) { tr.parentNode.insertBefore(row(each), tr); });
        tr.remove();
      }}, "\u22ef " + line.what)));
    return tr;
  }

  KP.diffTable = function (lines) {
    return KP.el("div", {"class": "scroll code-box", tabindex: "0"}, KP.el("table", {"class": "diff"},
      KP.el("tbody", null, KP.foldDiff(lines).map(function (line) {
        return line.kind === "fold" ? fold(line) : row(line);
      }))));
  };
})();
