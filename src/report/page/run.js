// SPDX-License-Identifier: Apache-2.0
// A run's page. `host` says where its parts come from: detail(id) gives a promise of a candidate's
// detail, href(id) a link to it, picked(id) hears of a new choice; optional are buttons (nodes for
// the head) and calls() (a promise of the questions to models).
"use strict";
(function () {
  function makeRun(head, rows) {
    var run = {head: head, rows: rows, byId: {}};
    run.find = function (id) { return run.byId[id]; };
    run.all = function () { return run.rows.concat(run.head.waiting || []); };
    run.color = function (row) {
      return row.outcome === "correct" ? KP.speedClass(row.ratio, run.bestRatio) || "s1" : row.outcome;
    };
    run.settle = function () {
      var result = run.head.result || {};
      run.best = result.best;
      run.start = result.start;
      run.byId = {};
      run.bestRatio = 0;
      run.all().forEach(function (row) {
        run.byId[row.id] = row;
        if (row.ratio > run.bestRatio) run.bestRatio = row.ratio;
      });
    };
    run.settle();
    return run;
  }
  KP.makeRun = makeRun;

  function heading(head, host) {
    return [KP.el("div", {"class": "title"}, KP.el("h1", null, head.task),
                  head.state ? KP.el("span", {"class": "state " + head.state}, head.state) : null,
                  KP.el("span", {"class": "buttons"}, host.buttons ? host.buttons(head) : null)),
      head.summary ? KP.el("p", {"class": "summary"}, head.summary) : null,
      KP.el("p", {"class": "meta"}, KP.el("span", null, head.target + " target"), KP.el("span", null, head.machine.name),
            head.machine.versions ? KP.el("span", null, head.machine.versions) : null, KP.el("span", null, head.created),
            KP.el("span", null, "KernelPro " + head.version))];
  }

  function ceilingBar(result) {
    if (!(result.fraction > 0)) return null;
    function percent(x) { return (100 * Math.min(1, x)).toFixed(1); }
    return KP.el("div", null,
      KP.svg("svg", {"class": "ceiling-bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": result.fraction_words + " of the measured ceiling"},
             KP.svg("rect", {"class": "bar-back", width: 100, height: 10}),
             KP.svg("rect", {"class": "bar-fill", width: percent(result.fraction), height: 10}),
             result.baseline_fraction > 0 ? KP.svg("rect", {"class": "bar-mark", x: percent(result.baseline_fraction), width: 0.4, height: 10}) : null),
      KP.el("p", {"class": "bar-legend"}, result.baseline_fraction > 0 ? KP.el("span", null, result.baseline_words + " " + KP.share(result.baseline_fraction)) : KP.el("span", null),
            KP.el("span", null, KP.el("b", null, result.fraction_words), " of the measured ceiling")));
  }

  function verdict(head) {
    var result = head.result, won = result.best && result.best !== result.baseline;
    var interval = !won ? "" : result.low ? KP.ratio(result.low) + " \u2013 " + KP.ratio(result.high) + (result.confirmed ? ", 95 %" : ", not yet confirmed")
      : "not yet confirmed";
    return KP.el("section", {"class": "verdict"},
      KP.el("div", {"class": "headline"}, KP.el("div", {"class": "big"}, result.best ? KP.ratio(won ? result.speedup : 1) : "\u2013"),
            interval ? KP.el("div", {"class": "interval"}, interval) : null),
      KP.el("div", {"class": "story"}, KP.el("p", {"class": "sentence"}, result.verdict),
            result.credit ? KP.el("p", {"class": "credit"}, result.credit) : null,
            head.load ? KP.el("p", {"class": "quiet"}, head.load) : null, ceilingBar(result)));
  }

  function facts(head, link) {
    var result = head.result, failed = Object.keys(head.outcomes).filter(function (name) { return name !== "correct"; })
      .map(function (name) { return head.outcomes[name] + " " + name; }).join(", ");
    function fact(name, value, note) {
      return KP.el("div", {"class": "fact"}, KP.el("span", {"class": "fact-name"}, name), KP.el("b", null, value), note ? KP.el("span", {"class": "quiet"}, note) : null);
    }
    return KP.el("section", {"class": "facts"},
      fact(result.baseline_words || "start", KP.us(result.baseline_us)),
      fact("winner", KP.us(result.best_us), result.best ? link(result.best) : null),
      fact("evaluations", head.evaluated + (head.limit > 0 && !head.stopped_by ? " of " + head.limit : ""), failed || (head.evaluated ? "none failed" : null)),
      fact("run time", KP.seconds(head.run_seconds), head.stopped_by ? "stopped: " + head.stopped_by : null),
      head.questions ? fact("models", KP.count(head.questions, "question"), head.models) : null,
      head.own_ms > 0 ? fact("loop overhead", KP.digits(head.own_ms) + " ms", "per evaluation") : null);
  }

  function section(id, title, body, note) {
    if (!body) return null;
    return KP.el("section", {id: id}, KP.el("h2", null, title), note ? KP.el("p", {"class": "note"}, note) : null, body);
  }

  function path(run, link) {
    var ids = run.head.result.path || [];
    if (ids.length < 2) return KP.el("p", {"class": "quiet"}, "The start is still the best.");
    var before = 0;
    return KP.el("ol", {"class": "path"}, ids.map(function (id) {
      var row = run.find(id) || {id: id};
      var gain = before > 0 && row.ratio > 0 ? KP.el("span", {"class": row.ratio > before ? "gain" : "quiet"}, KP.ratio(row.ratio / before)) : null;
      if (row.ratio > 0) before = row.ratio;
      return KP.el("li", null, link(id), " ", row.us > 0 ? KP.us(row.us) : row.outcome, " ", gain, KP.el("br"),
                   id === run.start ? "the starting kernel" : KP.prose(row.idea),
                   row.answers ? KP.el("span", {"class": "quiet"}, " answers " + row.answers) : null);
    }));
  }

  function advice(head, link) {
    if (!head.steps.length) return null;
    return KP.table("plain", ["candidate", "tool", "advice", "#likely", "#at most", "#measured"], head.steps.map(function (step) {
      return [link(step[0]), step[1], KP.el("span", {"class": "tag"}, step[2]), KP.ratio(step[3]), KP.ratio(step[4]),
              step[5] > 0 ? KP.ratio(step[5]) : "not correct"];
    }));
  }

  function heldOut(held) {
    if (!held) return null;
    return [KP.table("plain", ["case", "the winner"], held.cases),
      held.speedup > 0 ? KP.el("p", null, KP.ratio(held.speedup) + " the start, geometric mean over held-out cases.") : null,
      !held.failed ? null : KP.el("p", null, KP.el("b", null, "The winner is valid only for the sizes that the search knew."), " Use it for those alone, or leave ",
        KP.el("code", null, "held_out"), " out of the case that failed and search again in a new run.")];
  }

  function replay(again, link) {
    if (!again) return null;
    function two(list, word) {
      var a = word(list[0]), b = word(list[1]);
      return a === b ? a : a + " \u2192 " + b;
    }
    return [KP.el("p", {"class": "note"}, again.summary),
      KP.table("plain", ["recorded", "now", "outcome", "#time", "#speed-up", "result"], again.rows.map(function (row) {
        return ["#" + row.then, row.now ? link(row.now) : "\u2013", two(row.outcomes, function (x) { return x || "\u2013"; }), two(row.us, KP.us), two(row.speedups, KP.ratio), row.change];
      })),
      KP.el("p", {"class": "quiet"}, "Recorded in ", KP.el("code", null, again.directory), " on " + again.machine +
            ". Times are compared as speed-ups over the start; " + KP.percent(again.tolerance) + " or more counts as a change.")];
  }

  function ceilings(machine) {
    return [KP.el("ul", null, KP.el("li", null, "copy bandwidth " + KP.scaled(machine.copy_bytes_per_s, "B/s") + ", read plus written"),
                  KP.el("li", null, "fp32 multiply-adds " + KP.scaled(machine.fma_flops_per_s, "FLOP/s")),
                  machine.tensor_flops_per_s > 0 ? KP.el("li", null, "half-precision matrix units " + KP.scaled(machine.tensor_flops_per_s, "FLOP/s")) : null),
      KP.el("p", {"class": "quiet"}, machine.how + (machine.basis ? "; " + machine.basis : ""))];
  }

  function missing(list) {
    if (!list.length) return null;
    return KP.el("ul", null, list.map(function (each) {
      return KP.el("li", null, KP.el("b", null, each[0]), ": " + each[1], each[2] ? KP.el("span", {"class": "quiet"}, ". " + each[2]) : null);
    }));
  }

  var kKeys = [["j, k", "next, previous candidate"], ["Enter", "read it"], ["p", "its parent"], ["b", "the best"],
               ["/", "filter"], ["Esc", "close, clear the filter"], ["?", "this list"]];
  function legend() {
    return KP.el("p", {"class": "legend"}, [["s0", "slower than the start"], ["s1", ""], ["s2", ""], ["s3", ""], ["s4", ""], ["s5", "as fast as the best"],
      ["compile-error", "compile error"], ["wrong-result", "wrong"], ["crashed", "crashed"], ["timed-out", "timed out"], ["rejected", "rejected"]]
      .map(function (each) { return KP.el("span", {"class": each[1] ? null : "step"}, KP.el("span", {"class": "dot " + each[0]}), each[1]); }));
  }

  // Returns {update(head, rows), pick(id)}; listens for keys until `leave()`.
  KP.runPage = function (root, head, rows, host) {
    var run = makeRun(head, rows), picked = 0, details = {}, selected = null;
    function link(id) { return KP.el("a", {href: host.href(id), "data-pick": id}, "#" + id); }
    var top = KP.el("header", null), charts = KP.el("div", {"class": "charts"}), tree = KP.el("div", null), after = KP.el("div", {"class": "after"});
    var panel = KP.el("div", {"class": "detail", tabindex: "-1", id: "picked"});
    var table = KP.candidateTable(run, {onPick: function (id, open) { pick(id, open); }});
    var help = KP.el("dialog", {"class": "help"}, KP.el("h2", null, "Keys"), KP.el("dl", null, kKeys.map(function (key) {
      return [KP.el("dt", null, KP.el("kbd", null, key[0])), KP.el("dd", null, key[1])];
    })), KP.el("form", {method: "dialog"}, KP.el("button", null, "Close")));

    function figure(title, note, chart) {
      return chart ? KP.el("figure", null, KP.el("figcaption", null, KP.el("b", null, title), note ? " " + note : null), chart) : null;
    }
    function drawTop() { KP.replace(top, heading(run.head, host), verdict(run.head), facts(run.head, link)); }
    function drawCharts() {
      KP.replace(charts, figure("Progress", "Marks on the axis failed.", KP.progressChart([run])),
                 figure("Roofline", "Ceilings measured on this machine.", KP.rooflineChart(run, selected)),
                 figure("Time and energy", "The line is the Pareto front.", KP.energyChart(run)));
    }
    function drawTree() {
      var box = tree.querySelector(".tree-box"), left = box ? box.scrollLeft : 0, down = box ? box.scrollTop : -1;
      KP.replace(tree, section("search", "Search tree", [legend(), KP.treeChart(run)], "The line leads to the winner. Faded candidates are dead ends."));
      box = tree.querySelector(".tree-box");
      var best = box && box.querySelector(".node.best");
      if (box && down >= 0) { box.scrollLeft = left; box.scrollTop = down; }
      else if (best) box.scrollTop = Math.max(0, Number(best.getAttribute("cy")) - box.clientHeight / 2);
      mark();
    }
    function drawAfter() {
      KP.replace(after, section("path", "The path to the winner", path(run, link)),
        section("held-out", "Held-out cases", heldOut(run.head.held_out), "Sizes that neither the search nor a writer saw, measured once at the end."),
        section("replay", "Compared with the recording", replay(run.head.replay, link)),
        section("advice", "How the advice turned out", advice(run.head, link), "Each step that answers a finding, with its estimated speed-up and the one measured against its parent."),
        host.calls && run.head.questions ? section("models", "Questions to models", callsList()) : null,
        section("missing", "What could not be measured", missing(run.head.missing)),
        section("ceilings", "Ceilings", ceilings(run.head.machine), "Measured on this machine, not taken from a datasheet."),
        KP.el("footer", null, "Run folder ", KP.el("code", null, run.head.directory), ". Continue with ", KP.el("code", null, "kernelpro resume " + run.head.directory),
              KP.copyButton("the command", "kernelpro resume " + run.head.directory)));
    }
    function callsList() {
      var box = KP.el("div", null, KP.el("p", null, run.head.models));
      box.appendChild(KP.el("button", {type: "button", onclick: function (event) {
        event.target.disabled = true;
        host.calls().then(function (calls) {
          event.target.remove();
          calls.forEach(function (call) {
            box.appendChild(KP.el("details", null, KP.el("summary", null, call.request + " " + call.role + " " + call.model + ": " + call.outcome, KP.el("span", {"class": "quiet"}, " " + KP.usage(call.usage) + " " + call.idea)),
                                  KP.callView(call)));
          });
        });
      }}, "Show them"));
      return box;
    }
    function mark() {
      root.querySelectorAll(".node.picked").forEach(function (node) { node.classList.remove("picked"); });
      root.querySelectorAll('.node[data-id="' + picked + '"]').forEach(function (node) { node.classList.add("picked"); });
    }
    function detailOf(id) {
      if (!id || !run.find(id)) return Promise.resolve(null);
      if (!details[id]) {
        details[id] = host.detail(id);
        details[id].catch(function () { delete details[id]; });
      }
      return details[id];
    }
    function showDetail(row) {
      var bar = KP.el("div", {"class": "detail-bar"}, KP.el("h2", null, "#" + row.id, row.id === run.best ? KP.el("span", {"class": "tag"}, "best") : null,
                                                            row.id === run.start ? KP.el("span", {"class": "tag"}, "start") : null),
        KP.copyButton("a link to this candidate", function () { return new URL(host.href(row.id), location.href).href; }),
        KP.el("button", {type: "button", "class": "close", "aria-label": "Close", onclick: close}, "\u2715"));
      bar.children[1].textContent = "Link";
      Promise.all([detailOf(row.id), detailOf(row.parent)]).then(function (both) {
        if (picked !== row.id) return;
        selected = {row: row, detail: both[0]};
        KP.replace(panel, bar, KP.detailView(run, row, both[0], both[1], link));
        panel.scrollTop = 0;
        if (both[0].dram_bytes) drawCharts();
        mark();
        document.documentElement.setAttribute("data-detail", String(row.id));
      }, function (error) { KP.replace(panel, bar, KP.el("p", {"class": "error"}, String(error.message || error))); });
    }
    function pick(id, open) {
      var row = run.find(id);
      if (!row) return;
      picked = id;
      table.pick(id);
      mark();
      if (open) root.classList.add("reading");
      showDetail(row);
      host.picked(id);
    }
    function close() { root.classList.remove("reading"); table.focus(); }

    function key(event) {
      var typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
      if (event.key === "Escape") {
        if (root.classList.contains("reading")) close();
        else if (typing || table.clearFilter()) { table.clearFilter(); table.focus(); }
        return;
      }
      if (typing || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
      var row = run.find(picked), inTable = event.target.classList && event.target.classList.contains("rows");
      if (event.key === "j" || (inTable && event.key === "ArrowDown")) pick(table.next(1));
      else if (event.key === "k" || (inTable && event.key === "ArrowUp")) pick(table.next(-1));
      else if (event.key === "Enter" && (inTable || event.target === document.body) && row) { pick(picked, true); panel.focus(); }
      else if (event.key === "p" && row && row.parent) pick(row.parent);
      else if (event.key === "b" && run.best) pick(run.best);
      else if (event.key === "/") table.focusFilter();
      else if (event.key === "?" && help.showModal) help.showModal();
      else return;
      event.preventDefault();
    }
    function click(event) {
      var node = event.target.closest ? event.target.closest("[data-pick], .node[data-id], line.failed[data-id]") : null;
      if (!node || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      pick(Number(node.getAttribute("data-pick") || node.getAttribute("data-id")), true);
    }
    document.addEventListener("keydown", key);
    root.addEventListener("click", click);

    KP.replace(root, top, charts, KP.el("section", {id: "all"}, KP.el("h2", null, "Candidates", KP.el("button", {type: "button", "class": "keys", title: "Keys", onclick: function () { help.showModal(); }}, "?")),
               KP.el("div", {"class": "two"}, table.node, panel)), tree, after, help);
    drawTop();
    table.update();
    // What is further down is drawn once the first picture is on the screen; a page in the
    // background gets no frames, only the time.
    var frame = 0, timer = 0, drawn = false;
    function later() {
      if (drawn) return;
      drawn = true;
      clearTimeout(timer);
      drawCharts();
      drawTree();
      drawAfter();
      if (!picked && run.best) pick(run.best);
      else if (!picked && run.rows.length) pick(run.rows[0].id);
      ready();
    }
    function ready() { document.documentElement.setAttribute("data-ready", String(run.all().length)); }
    frame = requestAnimationFrame(function () { setTimeout(later, 0); });
    timer = setTimeout(later, 200);

    return {
      run: run,
      pick: pick,
      // Only what a new candidate changes; a burst of them is drawn once a frame.
      update: function (nextHead, fresh) {
        fresh = fresh.filter(function (row) { return !run.find(row.id) || !run.find(row.id).order; });
        fresh.forEach(function (row) { row.fresh = true; });
        run.head = nextHead;
        run.rows = run.rows.concat(fresh);
        run.settle();
        drawTop();
        table.update();
        fresh.forEach(function (row) { row.fresh = false; });
        if (drawn) { drawCharts(); drawTree(); drawAfter(); ready(); }
      },
      leave: function () {
        drawn = true;
        cancelAnimationFrame(frame);
        clearTimeout(timer);
        document.removeEventListener("keydown", key);
        root.removeEventListener("click", click);
        root.classList.remove("reading");
      },
    };
  };
})();
