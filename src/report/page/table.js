// SPDX-License-Identifier: Apache-2.0
// The table of candidates: filtered, sorted, and with only the rows in sight in the document, so
// that thousands cost no more than dozens. Every row has the same height.
"use strict";
(function () {
  // A filter is words that must all occur in a row; "outcome:correct", "by:tuner", "#12" (that
  // candidate, its parent and its children), ">2x", "<1ms" ask for more than a word does.
  var kUnits = {ns: 1e-3, us: 1, ms: 1e3, s: 1e6};
  KP.parseFilter = function (text) {
    var tests = String(text).trim().toLowerCase().split(/\s+/).filter(Boolean).map(test);
    return function (row) { return tests.every(function (each) { return each(row); }); };
  };
  function test(word) {
    var number = /^#(\d+)$/.exec(word), field = /^(outcome|by|language|bound):(.*)$/.exec(word);
    var compare = /^([<>])([\d.]+)(x|ns|us|ms|s)$/.exec(word);
    if (number) {
      var id = Number(number[1]);
      return function (row) { return row.id === id || row.parent === id || (row.kin || []).indexOf(id) >= 0; };
    }
    if (field) return function (row) { return String(row[field[1]] || "").toLowerCase().indexOf(field[2]) === 0; };
    if (compare) {
      var limit = Number(compare[2]) * (kUnits[compare[3]] || 1), name = compare[3] === "x" ? "ratio" : "us";
      return function (row) { return row[name] > 0 && (compare[1] === ">" ? row[name] > limit : row[name] < limit); };
    }
    return function (row) { return haystack(row).indexOf(word) >= 0; };
  }
  function haystack(row) {
    if (row.hay === undefined) {
      row.hay = ["#" + row.id, row.outcome, row.by, row.idea, row.answers, row.knobs, row.language, row.bound]
        .filter(Boolean).join(" ").toLowerCase();
    }
    return row.hay;
  }

  var kColumns = [
    {key: "id", name: "#", css: "id"},
    {key: "parent", name: "from", css: "from"},
    {key: "us", name: "time", css: "num time", last: true},
    {key: "ratio", name: "speed-up", css: "speed", down: true},
    {key: "fraction", name: "of ceiling", css: "num ceiling", down: true},
    {key: "by", name: "by", css: "by"},
    {key: "idea", name: "change", css: "change"},
  ];

  KP.sortRows = function (rows, key, down) {
    var column = kColumns.filter(function (each) { return each.key === key; })[0];
    var missing = column.last ? Infinity : key === "ratio" || key === "fraction" ? -1 : "";
    function value(row) { return row[key] === undefined ? missing : row[key]; }
    return rows.slice().sort(function (a, b) {
      var x = value(a), y = value(b);
      var order = x < y ? -1 : x > y ? 1 : a.id - b.id;
      return down ? -order : order;
    });
  };

  function cells(run, row) {
    var width = row.ratio > 0 && run.bestRatio > 0 ? Math.min(1, row.ratio / run.bestRatio) : 0;
    var bar = KP.svg("svg", {"class": "speed-bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true"},
                     KP.svg("rect", {"class": run.color(row), width: (100 * width).toFixed(1), height: 6}));
    var correct = row.outcome === "correct";
    return [
      [KP.el("span", {"class": "dot " + run.color(row) + (row.id === run.best ? " best" : row.id === run.start ? " start" : "")}), String(row.id)],
      row.parent || "\u2013",
      correct ? KP.us(row.us) : KP.el("span", {"class": "outcome"}, row.outcome),
      correct && row.ratio > 0 ? [KP.el("span", {"class": "ratio"}, KP.ratio(row.ratio)), bar] : "",
      correct ? KP.share(row.fraction) : "",
      row.by,
      [row.idea || (row.id === run.start ? "the starting kernel" : ""),
       row.knobs ? KP.el("code", null, row.knobs) : null],
    ];
  }

  // options: onPick(id). Returns {node, update(), pick(id), move(by), focusFilter(), ...}.
  KP.candidateTable = function (run, options) {
    var sortKey = "id", down = true, shown = [], picked = 0, outcomes = {};
    var input = KP.el("input", {type: "search", placeholder: "Filter: words, outcome:correct, by:tuner, >2x, #12",
                                "aria-label": "Filter candidates", spellcheck: "false"});
    var count = KP.el("span", {"class": "quiet count", role: "status"});
    var chips = KP.el("span", {"class": "chips"});
    var heads = kColumns.map(function (column) {
      return KP.el("th", {"class": column.css, scope: "col"},
                   KP.el("button", {type: "button", onclick: function () { sortBy(column); }}, column.name));
    });
    var body = KP.el("tbody", null);
    var box = KP.el("div", {"class": "rows", tabindex: "0", "aria-label": "Candidates"},
                    KP.el("table", {"class": "candidates", id: "candidates"},
                          KP.el("thead", null, KP.el("tr", null, heads)), body));
    var node = KP.el("div", {"class": "candidate-table"},
                     KP.el("div", {"class": "filter"}, input, chips, count), box);

    function sortBy(column) {
      down = sortKey === column.key ? !down : Boolean(column.down);
      sortKey = column.key;
      refresh();
    }
    function height() {
      var row = body.querySelector("tr.row");
      return row ? row.getBoundingClientRect().height || 30 : 30;
    }
    function spacer(pixels) {
      var tr = KP.el("tr", {"class": "spacer", "aria-hidden": "true"}, KP.el("td", null));
      tr.firstChild.style.height = Math.max(0, pixels) + "px";
      return tr;
    }
    function rowNode(row) {
      return KP.el("tr", {"class": "row" + (row.id === picked ? " picked" : "") + (row.fresh ? " fresh" : ""), "data-id": row.id,
                          id: "c" + row.id, "aria-selected": row.id === picked ? "true" : null},
                   cells(run, row).map(function (cell, i) { return KP.el("td", {"class": kColumns[i].css}, cell); }));
    }
    var all = false;  // for printing
    function draw() {
      var line = height(), first = 0, last = shown.length;
      if (!all) {
        first = Math.max(0, Math.floor(box.scrollTop / line) - 10);
        last = Math.min(shown.length, first + Math.ceil((box.clientHeight || 600) / line) + 20);
      }
      KP.replace(body, spacer(first * line), shown.slice(first, last).map(rowNode), spacer((shown.length - last) * line));
    }
    function refresh() {
      var match = KP.parseFilter(input.value);
      var off = Object.keys(outcomes).filter(function (name) { return outcomes[name]; });
      shown = KP.sortRows(run.all().filter(function (row) {
        return match(row) && (!off.length || outcomes[row.outcome]);
      }), sortKey, down);
      heads.forEach(function (head, i) {
        if (kColumns[i].key === sortKey) head.setAttribute("aria-sort", down ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      });
      var total = run.all().length;
      count.textContent = shown.length === total ? KP.count(total, "candidate") : shown.length + " of " + total;
      draw();
    }
    function drawChips() {
      var counts = run.head.outcomes || {};
      KP.replace(chips, Object.keys(counts).map(function (name) {
        return KP.el("button", {type: "button", "class": "chip " + name, "aria-pressed": outcomes[name] ? "true" : "false",
                                onclick: function () { outcomes[name] = !outcomes[name]; drawChips(); refresh(); }},
                     KP.el("span", {"class": "dot " + (name === "correct" ? "s3" : name)}), name + " " + counts[name]);
      }));
    }
    function place(id) { return shown.findIndex(function (row) { return row.id === id; }); }
    function reveal() {
      var at = place(picked), line = height(), head = heads[0].getBoundingClientRect().height;
      if (at < 0) return;
      if (at * line < box.scrollTop) box.scrollTop = at * line;
      var low = (at + 1) * line + head - box.clientHeight;
      if (low > box.scrollTop) box.scrollTop = low;
    }
    var waiting = false;
    box.addEventListener("scroll", function () {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(function () { waiting = false; draw(); });
    });
    input.addEventListener("input", function () { box.scrollTop = 0; refresh(); });
    input.addEventListener("keydown", function (event) {
      if (event.key === "Enter") { box.focus(); if (shown.length) options.onPick(shown[0].id); }
    });
    body.addEventListener("click", function (event) {
      var row = event.target.closest("tr.row");
      if (row) options.onPick(Number(row.getAttribute("data-id")), true);
    });
    if (window.ResizeObserver) new ResizeObserver(function () { draw(); }).observe(box);
    window.addEventListener("beforeprint", function () { all = true; draw(); });
    window.addEventListener("afterprint", function () { all = false; draw(); });

    return {
      node: node,
      update: function () { drawChips(); refresh(); },
      pick: function (id) { picked = id; reveal(); draw(); },
      // The candidate so many rows further down.
      next: function (by) {
        if (!shown.length) return 0;
        var at = place(picked);
        return shown[at < 0 ? 0 : Math.max(0, Math.min(shown.length - 1, at + by))].id;
      },
      focusFilter: function () { input.focus(); input.select(); },
      clearFilter: function () {
        var had = input.value !== "" || Object.keys(outcomes).some(function (name) { return outcomes[name]; });
        input.value = "";
        outcomes = {};
        drawChips();
        refresh();
        return had;
      },
      focus: function () { box.focus({preventScroll: true}); },
    };
  };
})();
